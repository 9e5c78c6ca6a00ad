"""The two calls of the member that computes a target: what it needs, what it hands in (KIP-848).

Who may call at all was checked before; here it is which topics the caller may read: a picture of
the group names those of all its members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.described import PreparedAssignment
from holdfast.coordinator.model.rejections import TopicAuthorizationFailed
from holdfast.server.access.gate import refused
from holdfast.server.access.table import topics_of
from holdfast.server.rpc.slices import Slices, collected
from holdfast.server.translate import assignments, limits
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model import replies
    from holdfast.runtime.groups.actors import Actors
    from holdfast.server.access.gate import Gate
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.server.rpc.reads import Reads
    from holdfast.v1 import group_pb2 as g

_PREPARE: Final = "PrepareAssignment"
_INSTALL: Final = "InstallAssignment"


class Assignments:
    """Answers the member that was chosen to compute the target of its group."""

    def __init__(self, actors: Actors, reads: Reads, callers: Callers, gate: Gate) -> None:
        self._actors, self._reads, self._callers, self._gate = actors, reads, callers, gate

    async def prepare(
        self, request: g.PrepareAssignmentRequest, context: Context
    ) -> g.PrepareAssignmentResponse:
        """Give the chosen member the group as it is."""
        principal = self._callers.principal(context)
        member_id = limits.text("member_id", request.member_id)
        state, extras = await self._reads.state(x.RequestExtras())  # never a stale one
        found = queries.prepare_assignment(
            state, request.group_id, member_id, request.member_epoch, principal
        )
        if not isinstance(found, PreparedAssignment):
            return assignments.not_prepared(found)
        if self._denied(_PREPARE, _topics(found), principal, request):
            return assignments.not_prepared(TopicAuthorizationFailed(""))
        return await assignments.prepared(found, extras, Slices())

    async def install(
        self, request: g.InstallAssignmentRequest, context: Context
    ) -> g.InstallAssignmentResponse:
        """Take the target of the chosen member."""
        principal = self._callers.principal(context)
        named = (each.topic for member in request.members for each in member.topic_partitions)
        if denied := self._denied(_INSTALL, named, principal, request):
            need = topics_of(f"GroupService.{_INSTALL}")
            raise refused(principal, _INSTALL, need, min(denied))
        said = await collected(assignments.targets(request))
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            got = await call.ask(assignments.install(request, caller, said))
        response = assignments.installed(cast("replies.DoneReply", got.reply))
        if got.position is not None:
            position = response.holdfast.position
            position.index, position.ordinal = got.position
        return response

    def _denied(
        self,
        method: str,
        names: Iterable[str],
        principal: str,
        request: g.PrepareAssignmentRequest | g.InstallAssignmentRequest,
    ) -> frozenset[str]:
        """Return those of the topics that the caller may not read."""
        if self._gate.open:
            return frozenset()
        need = topics_of(f"GroupService.{method}")
        return self._gate.denied(principal, method, need, frozenset(names), request)


def _topics(found: PreparedAssignment) -> set[str]:
    """Return the topics that a picture of a group names, or would if they existed."""
    names = set(found.wanted)
    names.update(each.topic for member in found.members for each in member.target)
    return names
