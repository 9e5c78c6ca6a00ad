"""Commits of one member: the identity they are sent under, and the report of refusals.

The session decides what a refusal means to the membership; `_rpc` decides on retries.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.client._rpc.clock import boot_ms, left_ms
from holdfast.client._rpc.request_ids import id_of_part
from holdfast.client._session.fatal_error import fatal_error
from holdfast.client._session.member_session import SubscribingSession
from holdfast.client._session.session_io import Stage
from holdfast.client._session.unknown_commits import UnknownCommits
from holdfast.client._translate import offset_messages
from holdfast.client._translate.call_arguments import check_timeout
from holdfast.client.errors import OutcomeUnknown, Unavailable
from holdfast.v1 import offset_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from holdfast.client._rpc.caller import Caller
    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.session_io import Identity, TopicPartition
    from holdfast.client._translate.call_arguments import Offset
    from holdfast.client.errors import HoldfastError
    from holdfast.v1.errors_pb2 import ErrorCode

_AGAIN_MS: Final = 100


class Commits:
    """The commits of one member."""

    def __init__(self, session: MemberSession, caller: Caller, pump: Callable[[], None]) -> None:
        """`pump` performs what the session decides when it hears of a refusal."""
        self._session = session
        self._caller = caller
        self._pump = pump
        self._unknown = UnknownCommits()

    async def commit(
        self,
        offsets: Mapping[tuple[str, int], Offset | int],
        request_id: str | None,
        timeout_ms: int,
    ) -> HoldfastError | None:
        """Commit as `Member.commit`; a refusal is returned instead of raised."""
        check_timeout(timeout_ms)
        deadline = boot_ms() + timeout_ms
        parts = offset_messages.to_commit(offsets)
        session = self._session
        identity = self._unknown.identity_of(request_id) or session.identity
        if not identity.can_heartbeat:
            raise Unavailable(
                "The member has stopped; a commit needs one that runs."
                if session.stage is Stage.STOPPED
                else "The member is in no generation; commit when it is assigned again."
            )
        chosen_id = request_id or await self._caller.new_request_id(timeout_ms)
        number = 0
        while number < len(parts):
            part, part_id = parts[number], id_of_part(chosen_id, number)
            request = offset_messages.commit_request(session.settings, identity, part, part_id)
            try:
                response = await self._caller.call(
                    request, offset_pb2.OffsetCommitResponse, timeout_ms=left_ms(deadline)
                )
            except OutcomeUnknown as error:
                self._unknown.keep(chosen_id, identity)
                error.request_id = error.request_id and chosen_id
                if number:
                    rest = f"of the next one nothing is known: {error}"
                    error.args = (_told_in_part(number, len(parts), rest),)
                raise
            except Unavailable as error:
                if not number:
                    raise
                self._unknown.keep(chosen_id, identity)
                told = _told_in_part(number, len(parts), f"the next one is not: {error}")
                raise OutcomeUnknown(told, request_id=chosen_id or None) from error
            refused = offset_messages.refusals(response)
            if not refused:
                number += 1
                continue
            refusal = self._refusal(response, refused, identity)
            newer = await self._newer(refused, identity, part, deadline)
            if newer is None:
                self._unknown.answered(chosen_id)
                return refusal
            identity = newer
        self._unknown.answered(chosen_id)
        return None

    async def _newer(
        self,
        refused: Mapping[TopicPartition, ErrorCode.ValueType],
        identity: Identity,
        part: Mapping[TopicPartition, Offset],
        deadline_ms: int,
    ) -> Identity | None:
        """Return as whom a part is committed again (T-19); None: the refusal stands.

        If the session knows of nothing newer yet, a heartbeat is under way that brings it.
        """
        self._pump()
        session, code = self._session, next(iter(refused.values()))
        if not isinstance(session, SubscribingSession):
            return None
        newer = session.commit_again(code, identity, part.keys())
        if newer == identity:
            if left_ms(deadline_ms) <= _AGAIN_MS:
                return None
            await asyncio.sleep(_AGAIN_MS / 1000)
        return newer

    def _refusal(
        self,
        response: offset_pb2.OffsetCommitResponse,
        refused: Mapping[TopicPartition, ErrorCode.ValueType],
        identity: Identity,
    ) -> HoldfastError:
        """Report a refusal to the session; return the error for it."""
        session, extras = self._session, response.holdfast
        code = next(iter(refused.values()))
        names = ", ".join(f"{topic}/{number}" for topic, number in refused)
        log_time_ms = self._caller.ids.log_time_ms(boot_ms())
        session.refused(code, identity, extras, boot_ms())
        about = f", commit of {names}"
        return fatal_error(code, extras, session.settings, identity, log_time_ms, about=about)

    async def committed(
        self, partitions: Iterable[tuple[str, int]], timeout_ms: int
    ) -> dict[TopicPartition, Offset]:
        """Return committed offsets, as `Member.committed`."""
        check_timeout(timeout_ms)
        response = await self._caller.call(
            offset_messages.fetch_request(self._session.settings.group, partitions),
            offset_pb2.OffsetFetchResponse,
            timeout_ms=timeout_ms,
        )
        return offset_messages.fetched(response)


def _told_in_part(number: int, parts: int, rest: str) -> str:
    return (
        f"{number} of {parts} parts of the commit are recorded, and {rest} Call again with this "
        "request id."
    )
