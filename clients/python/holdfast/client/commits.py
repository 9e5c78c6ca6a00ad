"""Commits of one member: as whom they go out, and what a refusal means to the membership."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client import offsets as offset_messages
from holdfast.client.call_arguments import check_timeout
from holdfast.client.clock import boot_ms
from holdfast.client.errors import OutcomeUnknown, Unavailable
from holdfast.client.final import final_error
from holdfast.client.phases import Phase
from holdfast.client.uncertain import Uncertain
from holdfast.v1 import offset_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.client.caller import Caller
    from holdfast.client.errors import HoldfastError
    from holdfast.client.partition import Offset
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.session import Session


class Commits:
    """What one member has committed, or may have."""

    def __init__(self, session: Session, caller: Caller) -> None:
        self._session = session
        self._caller = caller
        self._uncertain = Uncertain()

    async def commit(
        self,
        offsets: Mapping[tuple[str, int], Offset | int],
        request_id: str | None,
        timeout_ms: int,
    ) -> HoldfastError | None:
        """As `Member.commit`; what it was refused with is not raised but answered."""
        check_timeout(timeout_ms)
        topics = offset_messages.to_commit(offsets)
        session = self._session
        identity = self._uncertain.identity_of(request_id) or session.identity
        if not identity.can_heartbeat:
            raise Unavailable(
                "The member has stopped; a commit needs one that runs."
                if session.phase is Phase.STOPPED
                else "The member is in no generation; commit when it is assigned again."
            )
        chosen_id = request_id or await self._caller.new_request_id(timeout_ms)
        request = offset_messages.commit_request(session.settings, identity, topics, chosen_id)
        try:
            response = await self._caller.call(
                request, offset_pb2.OffsetCommitResponse, timeout_ms=timeout_ms
            )
        except OutcomeUnknown:
            self._uncertain.keep(chosen_id, identity)
            raise
        self._uncertain.settle(chosen_id)
        refused = offset_messages.refusals(response)
        if not refused:
            return None
        code = next(iter(refused.values()))
        names = ", ".join(f"{topic}/{number}" for topic, number in refused)
        log_time_ms = self._caller.ids.log_time_ms(boot_ms())
        session.refused(code, identity, response.holdfast, boot_ms())
        extras, about = response.holdfast, f", commit of {names}"
        return final_error(code, extras, session.settings, identity, log_time_ms, about=about)

    async def committed(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int
    ) -> dict[TopicPartition, Offset]:
        """As `Member.committed`."""
        check_timeout(timeout_ms)
        response = await self._caller.call(
            offset_messages.fetch_request(self._session.settings.group, partitions),
            offset_pb2.OffsetFetchResponse,
            timeout_ms=timeout_ms,
        )
        return offset_messages.fetched(response)
