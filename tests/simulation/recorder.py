"""Writes the history of a run: what was called, granted, written, recorded, broken.

Sees everything that happens, at the moment at which it happens; nobody whom it watches can tell.
The history is what the checkers of `holdfast.chaos` judge.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from holdfast.chaos.history import happenings as h
from holdfast.chaos.history.records import recorded
from holdfast.chaos.workload.messages import (
    OPERATIONS,
    Answer,
    answered,
    arguments_of,
    group_of,
    name_of,
    operation_of,
)
from holdfast.client._rpc.status import NOT_APPLIED, OUTCOME_KEY
from holdfast.raft.membership import Membership
from holdfast.storage.codec.state_image import Digest
from holdfast.v1.errors_pb2 import ErrorCode
from simulation.nodes import NAMES
from simulation.versions import beyond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import State
    from holdfast.runtime.replica.state_machine import StateMachine
    from holdfast.storage.journal.journal import NotedMembership
    from simulation.nodes import SimNode
    from simulation.schedule import Schedule
    from simulation.server_side import Status

DIGEST_EVERY: Final = 32
_PARKED: Final = frozenset({"JoinGroup", "SyncGroup"})
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.ERROR_CODE_NOT_COORDINATOR,
        ErrorCode.ERROR_CODE_COORDINATOR_NOT_AVAILABLE,
        ErrorCode.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def answer_of(op: str, request: Any, response: Any) -> Answer:  # noqa: ANN401 - any of the contract
    """What an answer says.

    That a node does not lead is no answer of the protocol; and a parked call that ends so may have
    been part of what was committed before (S5).
    """
    code = getattr(response, "error_code", ErrorCode.ERROR_CODE_NONE)
    if code in _ELSEWHERE:
        return Answer("unknown" if op in _PARKED else "not-applied", name_of(code), {})
    answer = answered(response)
    if request.holdfast.stale_ok:
        answer.result["index"] = response.holdfast.applied_index
    return answer


def failure_of(status: Status) -> Answer:
    """What a status says: nobody knows, unless the service says so (S5)."""
    known = dict(status.trailing).get(OUTCOME_KEY) == NOT_APPLIED
    return Answer("not-applied" if known else "unknown", status.code.name, {})


class Recorder:
    """Implements `client_side.Observer` and `nodes.Watcher`."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.history: list[h.Happening] = []
        self.counts: Counter[str] = Counter()
        self.acknowledged: set[tuple[int, int]] = set()
        self._calls = 0
        self._open: dict[int, tuple[str, str]] = {}
        self._request_ids: set[str] = set()
        self._last_index = 0
        self.beyond: list[tuple[int, str]] = []
        """When a node met what its version could not have read, and what."""
        self._digests: dict[str, Digest] = {}
        self.membership, self.membership_index = Membership.of(NAMES), 0
        """The newest committed membership that any node knows, and its entry; 0: the files'."""

    @property
    def last_index(self) -> int:
        """The newest entry that any node has applied."""
        return self._last_index

    @property
    def now_us(self) -> int:
        """The true time."""
        return self._schedule.now_us

    def add(self, happening: h.Happening) -> None:
        """Write something down."""
        self.history.append(happening)

    # --- calls ---

    def sent(self, who: str, request: Any) -> int:  # noqa: ANN401 - any request
        """A request was sent; the number of the call, 0 for one that no checker looks at."""
        op = operation_of(request)
        if op not in OPERATIONS:
            return 0
        self._calls += 1
        self._open[self._calls] = who, op
        arguments = arguments_of(request)
        request_id = arguments.get("request_id", "")
        if request_id in self._request_ids:
            arguments["duplicate"] = True
        elif request_id:
            self._request_ids.add(request_id)
        self.add(h.Invoked(self.now_us, self._calls, who, op, group_of(request), arguments))
        return self._calls

    def answered(self, call: int, request: Any, response: Any) -> None:  # noqa: ANN401 - any
        """It was answered."""
        found = self._open.pop(call, None)
        if found is None:
            return
        answer = answer_of(found[1], request, response)
        self.add(h.Returned(self.now_us, call, *answer))
        if answer.outcome == "ok" and "position" in answer.result:
            index, ordinal = answer.result["position"]
            self.acknowledged.add((index, ordinal))

    def failed(self, call: int, status: Status) -> None:
        """It ended without an answer."""
        if self._open.pop(call, None) is not None:
            self.add(h.Returned(self.now_us, call, *failure_of(status)))

    def died(self, who: str) -> None:
        """A caller is gone; nobody will ever hear what its calls came to."""
        for call in [call for call, (caller, _) in self._open.items() if caller == who]:
            del self._open[call]
            self.add(h.Returned(self.now_us, call, "unknown", "the caller died", {}))

    # --- nodes ---

    def opened(self, node: SimNode, machine: StateMachine) -> None:
        """A node has loaded its state."""
        self._begin_digest(node, machine.state)
        self._look_beyond(node, machine.state)
        if machine.state.applied_index and not node.disk.founded_alone:
            self._digest(node, machine, "restart")

    def installed(self, node: SimNode, machine: StateMachine) -> None:
        """A node goes on behind a snapshot of a peer."""
        self.counts["installs"] += 1
        self._look_beyond(node, machine.state)
        self._begin_digest(node, machine.state)
        self._digest(node, machine, "install")

    def _begin_digest(self, node: SimNode, state: State) -> None:
        digest = self._digests[node.name] = Digest()
        digest.advance(state)

    def _look_beyond(self, node: SimNode, state: State, records: Sequence[Record] = ()) -> None:
        if what := beyond(node.build, state.level, records):
            self.beyond.append((self.now_us, f"{node.name}: {what}"))

    def _digest(self, node: SimNode, machine: StateMachine, via: str) -> None:
        text = machine.digest().hex()
        index = machine.state.applied_index
        self.add(h.Applied(self.now_us, node.name, index, text, via))  # type: ignore[arg-type]  # a Literal

    def applied(self, node: SimNode, records: Sequence[Record], index: int) -> None:
        """A node has applied an entry."""
        if node.replica is not None:
            self._look_beyond(node, node.replica.state, records)
        if index > self._last_index:
            self._last_index = index
            term = node.engine.engine.overlay.journal.term_at(index) if node.engine else None
            for record in records:
                self.add(recorded(self.now_us, term or 0, record))
        if index % DIGEST_EVERY == 0:
            self.digest_now(node)

    def digest_now(self, node: SimNode) -> None:
        """What a node holds at this moment."""
        replica = node.replica
        if replica is not None:
            total = self._digests[node.name].advance(replica.state)
            text = (total.to_bytes(8, "big") + replica.chain_head).hex()
            self.add(h.Applied(self.now_us, node.name, replica.state.applied_index, text))

    def nodes_changed(self, node: SimNode, noted: NotedMembership, term: int) -> None:
        """A node knows that a change of nodes is committed."""
        told = Membership.decode(noted.text)
        if noted.index > self.membership_index:
            self.membership, self.membership_index = told, noted.index
            self.counts["node changes"] += 1
        voters, learners = (
            tuple(each.name for each in nodes) for nodes in (told.voters, told.learners)
        )
        names = (voters, learners, told.removed)
        self.add(h.NodesChanged(self.now_us, node.name, noted.index, term, *names))

    def role(self, node: SimNode, role: str, term: int) -> None:
        """A node leads, follows, or is down."""
        if role == "leader":
            self.counts["elections"] += 1
        self.add(h.Role(self.now_us, node.name, role, term))  # type: ignore[arg-type]  # a Literal
