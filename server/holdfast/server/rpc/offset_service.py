"""OffsetService: commit, fetch, delete. Translates, asks the actor or reads, answers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.model import replies
from holdfast.coordinator.model.text import readable
from holdfast.runtime.errors import Crashed
from holdfast.server.access.forbidden_things import tell_offsets
from holdfast.server.access.gate import sentence
from holdfast.server.access.table import need_of, topics_of
from holdfast.server.guard.answer_size import Encoded, Room
from holdfast.server.metrics.call_counts import UNKNOWN, code_of
from holdfast.server.rpc import ordered_stream
from holdfast.server.rpc.callers import Asker, Callers, Context, answered, named
from holdfast.server.rpc.errors import ENDED, ending
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import requests, responses, views
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o
from holdfast.v1 import offset_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from holdfast.runtime.groups.actors import Actors
    from holdfast.server.access.gate import Gate
    from holdfast.server.access.principal_limits import PrincipalLimits
    from holdfast.server.guard.pace import Pace
    from holdfast.server.metrics.call_counts import CallCounts
    from holdfast.server.rpc.calls.member_calls import MemberCalls
    from holdfast.server.rpc.reads import Reads

logger = logging.getLogger(__name__)

_FETCHED, _DELETED = need_of("OffsetService.OffsetFetch"), topics_of("OffsetService.OffsetDelete")
_ADVICE: Final = "name fewer groups, or topics and partitions of them"


class OffsetService(offset_pb2_grpc.OffsetServiceServicer):
    """Committed offsets."""

    def __init__(
        self,
        actors: Actors,
        reads: Reads,
        callers: Callers,
        calls: MemberCalls,
        pace: Pace,
        counts: CallCounts,
        gate: Gate,
        limits: PrincipalLimits,
    ) -> None:
        self._actors, self._reads, self._callers = actors, reads, callers
        self._calls, self._pace, self._gate, self._limits = calls, pace, gate, limits
        self._codes = counts.of("OffsetCommit")

    @answered(o.OffsetCommitResponse)
    async def OffsetCommit(
        self, request: o.OffsetCommitRequest, context: Context
    ) -> o.OffsetCommitResponse:
        """Commit the offsets of many partitions at once."""
        return await self._calls.ask(self._calls.commit, request, context)

    async def OffsetCommitStream(  # type: ignore[override]  # writes by itself
        self, requests: AsyncIterator[o.OffsetCommitRequest], context: Context
    ) -> None:
        """Commit offsets for a caller with many commits in flight; answers come in order."""
        peer, who = context.peer(), self._callers.asker(context)
        await ordered_stream.serve(
            requests,
            context,
            lambda request: self._pace.timed(peer, self._commit(request, who)),
            o.OffsetCommitRequest.ByteSize,
        )

    async def _commit(self, request: o.OffsetCommitRequest, who: Asker) -> o.OffsetCommitResponse:
        if self._limits.on:
            await self._limits.turn(who.principal(), request.ByteSize())
        try:
            commit = self._calls.commit
            response = await self._calls.ask_on("OffsetCommitStream", commit, request, who)
        except ENDED as error:
            self._codes[ending(error).status.name] += 1
            raise
        except Exception:
            logger.exception("a call failed inside", extra=named("OffsetCommit", request))
            self._codes[UNKNOWN] += 1
            raise Crashed("OffsetCommit") from None
        self._codes[code_of(response)] += 1
        return response

    @answered(o.OffsetFetchResponse)
    async def OffsetFetch(
        self, request: o.OffsetFetchRequest, context: Context
    ) -> o.OffsetFetchResponse:
        """Read offsets of several groups."""
        denied = self._denied(request, context)
        state, extras = await self._reads.state(request.holdfast)
        if denied:
            first = next(group.group_id for group in request.groups if group.group_id in denied)
            who = self._callers.principal(context)
            extras.message = readable(sentence(who, "OffsetFetch", _FETCHED, first))
        room, slices = Room(_ADVICE), Slices()
        response = Encoded(o.OffsetFetchResponse(holdfast=extras), room)
        for group in request.groups:
            await slices.done()
            if group.group_id in denied:
                response.add(o.OffsetFetchResponse.GROUPS_FIELD_NUMBER, _refused(group.group_id))
                continue
            found = await views.fetched(state, group, room, slices)
            response.put(o.OffsetFetchResponse.GROUPS_FIELD_NUMBER, found.encoded())
        return response.message(o.OffsetFetchResponse)

    @answered(o.OffsetDeleteResponse)
    async def OffsetDelete(
        self, request: o.OffsetDeleteRequest, context: Context
    ) -> o.OffsetDeleteResponse:
        """Delete offsets."""
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            topics = frozenset(topic.name for topic in request.topics)
            who = caller.principal
            forbidden = self._gate.denied(who, "OffsetDelete", _DELETED, topics, request)
            got = await call.ask(requests.delete_offsets(request, caller, forbidden))
        response = responses.delete_offsets(cast("replies.OffsetsReply", got.reply))
        tell_offsets(response, lambda name: sentence(who, "OffsetDelete", _DELETED, name))
        return response

    def _denied(self, request: o.OffsetFetchRequest, context: Context) -> frozenset[str]:
        """Return the groups whose offsets the caller may not read."""
        if self._gate.open:
            return frozenset()
        asked = {group.group_id for group in request.groups}
        principal = self._callers.principal(context)
        return self._gate.denied(principal, "OffsetFetch", _FETCHED, asked)


def _refused(group_id: str) -> o.OffsetFetchResponseGroup:
    return o.OffsetFetchResponseGroup(
        group_id=group_id, error_code=e.ERROR_CODE_GROUP_AUTHORIZATION_FAILED
    )
