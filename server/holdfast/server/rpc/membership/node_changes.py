"""Changes of nodes for administrators: add a learner, promote it, remove a node (S25).

Each call may be repeated, since an answer can be lost: what is as it was asked for is answered as
done, without another change. The log says which nodes there are, and not who changed them, so the
audit notes that. Knows no rule of changes but whether one is done: those of the log are the log's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from holdfast.coordinator.model.levels import NODE_CHANGES
from holdfast.coordinator.model.rejections import UnsupportedVersion
from holdfast.coordinator.model.text import readable
from holdfast.raft.api import DiskLow, EngineStopped, NotLeader, OutcomeUnknown, Overloaded
from holdfast.raft.membership import (
    AddLearner,
    ChangeRefused,
    Promote,
    Remove,
    after,
)
from holdfast.runtime.errors import Exhausted, LeadershipLost, NotCoordinator, Stopping
from holdfast.server.rpc.callers import named
from holdfast.server.translate.refusals import sentence
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.membership import Change, Membership
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.membership.known_nodes import KnownNodes

    Audit = Callable[[str, str, str, str], None]
    """Notes a change: by which principal, the call, of what, and what became of it."""

logger = logging.getLogger(__name__)

RequestT = TypeVar("RequestT", a.AddNodeRequest, a.PromoteNodeRequest, a.RemoveNodeRequest)
ResponseT = TypeVar("ResponseT", a.AddNodeResponse, a.PromoteNodeResponse, a.RemoveNodeResponse)

_UNDER_WAY = (
    "the same change is on its way to the nodes, and not committed yet. Ask again in a moment"
)


class Fate(NamedTuple):
    """What became of a change. `problem`: why it was refused, as a sentence; "": it is in force."""

    already: bool = False
    problem: str = ""
    may_pass_later: bool = False
    code: e.ErrorCode.ValueType = e.ERROR_CODE_INVALID_REQUEST


class NodeChanges:
    """Asks the log of the leading node for changes of nodes."""

    def __init__(
        self, replica: ReplicaLike, actors: Actors, audit: Audit, known: KnownNodes
    ) -> None:
        """`audit`: is told who changed the nodes. `known`: where each of them is."""
        self._replica, self._actors, self._audit = replica, actors, audit
        self._known = known

    async def make(
        self,
        request: RequestT,
        change: Change,
        respond: Callable[..., ResponseT],
        principal: str,
    ) -> ResponseT:
        """Carry a change out, if it is not done yet; raises CommandFailed without an answer."""
        self._actors.check_serving()
        try:
            fate = self._known_fate(change) or await self._carried_out(change)
        except LeadershipLost:
            self._note(request, respond, principal, "whether it happened is unknown")
            raise
        if fate.problem:
            extras = x.ResponseExtras(message=readable(fate.problem))
            return respond(
                error_code=fate.code, may_pass_later=fate.may_pass_later, holdfast=extras
            )
        if not fate.already:
            self._note(request, respond, principal, "it is in force")
        return respond(already=fate.already)

    def _known_fate(self, change: Change) -> Fate | None:
        """Return the fate that needs no look at the other nodes; None: the log has to judge."""
        now, level = self._known.membership(), self._actors.state.level
        if level < NODE_CHANGES:
            told = sentence(UnsupportedVersion("a change of nodes", NODE_CHANGES, level))
            return Fate(problem=told, code=e.ERROR_CODE_UNSUPPORTED_VERSION)
        status = self._replica.status()
        may_be_undone = status.membership_index > status.commit_index
        if is_done(now, change):
            problem = _UNDER_WAY if may_be_undone else ""
            return Fate(not problem, problem, may_be_undone)
        try:
            after(now, change)
        except ChangeRefused as refused:
            return Fate(problem=str(refused), may_pass_later=may_be_undone)
        return None

    async def _carried_out(self, change: Change) -> Fate:
        """Have the log carry a change out that the membership allows."""
        try:
            await self._replica.change_nodes(change)
        except ChangeRefused as refused:  # for who is connected, caught up, or under way
            return Fate(problem=str(refused), may_pass_later=True)
        except NotLeader as error:
            raise NotCoordinator(self._actors.address_of(error.leader)) from error
        except OutcomeUnknown as error:
            raise LeadershipLost from error
        except (Overloaded, DiskLow) as error:
            raise Exhausted(str(error)) from error
        except EngineStopped as error:
            raise Stopping from error
        return Fate()

    def _note(
        self, request: RequestT, respond: Callable[..., ResponseT], principal: str, fate: str
    ) -> None:
        """Note in the audit and in the node's log who asked for which change."""
        call = respond.__name__.removesuffix("Response")
        self._audit(principal, call, f"node {request.name!r}", fate)
        logger.info(
            "%s of node %r by %r: %s",
            call, request.name, principal, fate, extra=named(call, request),
        )  # fmt: skip


def is_done(now: Membership, change: Change) -> bool:
    """Return whether the nodes are as a change would make them, as far as it is concerned."""
    match change:
        case AddLearner(node):
            return node in now.nodes
        case Promote(name):
            return name in now.voter_names
        case Remove(name):
            return name in now.removed
