"""All group actors of this node, and the leadership that they depend on.

Actors exist while this node leads, one a group, made on demand and for every group when the
leadership begins. When it ends, every waiting call is failed and nothing is decided any more (S1,
S5). This is the replica's listener; it knows no gRPC and no rules.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Self

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.kernel.decide import on_leading
from holdfast.coordinator.kernel.queries import groups_to_clear
from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.effects import ComputeTarget, ResolveRegexes
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    PartitionsAdded,
    RecoveryNumberRaised,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey
from holdfast.raft.api import NotLeader
from holdfast.runtime.errors import (
    CommandFailed,
    Loading,
    NotCoordinator,
    StoppedMeanwhile,
    Stopping,
)
from holdfast.runtime.groups.actor import Actor
from holdfast.runtime.groups.batch import call_of
from holdfast.runtime.groups.hearing import Hearing
from holdfast.runtime.groups.moments import ADMITTED, CURRENT
from holdfast.runtime.groups.pending_calls import Calls
from holdfast.runtime.groups.regex_resolver import RegexResolver, anybodys
from holdfast.runtime.groups.tally import Tally
from holdfast.runtime.groups.target_maker import TargetMaker, in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.coordinator.model.effects import Effect, Renew
    from holdfast.coordinator.model.events import Part, Record
    from holdfast.coordinator.model.ids import CallId, GroupId, MemberId
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.usage import Usage
    from holdfast.runtime.groups.moments import Moments
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.groups.regex_resolver import Readable
    from holdfast.runtime.ports import Committed, ComputesTargets, ReplicaLike
    from holdfast.runtime.time.timers import Timers

logger = logging.getLogger(__name__)

NEVER_RECOVERED: Final = c.RaiseRecoveryNumber(0, 0)
"""For a node whose disk was never restored."""
RESTORED: Final = "the cluster was restored to an earlier position, so everybody joins anew"
_SHAKING: Final = frozenset(
    {TopicsCreated, PartitionsAdded, TopicsDeleted, SettingsChanged, AclsChanged, AccessModeChanged}
)
"""Events of the cluster on which the answers to heartbeats of the heartbeat protocol depend."""
_DEAF: Final = Hearing({})
"""Answers nothing from a cache: without the lease each heartbeat has to be decided (S10 c)."""
_PARKED: Final = (c.JoinGroup, c.SyncGroup)
"""Commands whose calls may be parked."""


class Call:
    """A call that a service has opened, for one command.

    As a context it is closed if the command cannot be made or submitted, and un-parked if the task
    that waits in it is cancelled (S17).
    """

    __slots__ = ("_actors", "_parks_in", "future", "number")

    def __init__(self, actors: Actors, number: CallId, future: asyncio.Future[Answered]) -> None:
        self.number, self.future = number, future
        self._actors = actors
        self._parks_in: GroupId | None = None

    async def ask(self, command: c.Command) -> Answered:
        """Submit a command and await its answer; raises what ends a call without one."""
        self.submit(command)
        return await self.future

    def submit(self, command: c.Command, when_parked: Callable[[], None] | None = None) -> None:
        """Submit a command without waiting: `future` gets the answer.

        `when_parked`: called if the command is decided and has to wait for other members.
        """
        if isinstance(command, _PARKED):
            self._parks_in = command.group_id
        if when_parked is not None:
            self._actors.calls.when_parked(self.number, when_parked)
        if (moments := self._actors.calls.traced.get(self.number)) is not None:
            caller: c.Caller | None = getattr(command, "caller", None)
            moments.request_id = caller.request_id if caller is not None else ""
            moments.note(ADMITTED)
        self._actors.submit_leased(command)

    def give_up(self) -> None:
        """Close a call for which nobody waits, and un-park it: the session runs on (S17)."""
        self._actors.calls.close(self.number)
        if self.future.done() and not self.future.cancelled():
            self.future.exception()  # mark its error as read: it ended in this very turn
        if self._parks_in is not None:
            self._actors.submit(c.CallBroken(self._parks_in, self.number))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            self.give_up()
        elif kind is not None:
            self._actors.calls.close(self.number)


class Actors:
    """The actors of all groups on this node."""

    def __init__(
        self,
        replica: ReplicaLike,
        timers: Timers,
        nodes: Mapping[str, str],
        forming: Callable[[], c.FormCluster],
        recovering: c.RaiseRecoveryNumber = NEVER_RECOVERED,
        readable: Readable = anybodys,
        compute: ComputesTargets = in_child,
    ) -> None:
        """`nodes`: each node's client address, as it is at each look: nodes come and go (S25).

        `forming`: makes what creates the cluster. `recovering`: what this node's disk says of its
        last restore (S13). `readable`: which topics count for whose expressions (K-P9).
        `compute`: computes targets beside the work of this node.
        """
        self.calls = Calls()
        self._replica, self._timers = replica, timers
        self._nodes, self._forming = nodes, forming
        self._recovering = recovering
        self._actors: dict[GroupId, Actor] = {}
        self._hearing = Hearing(self._actors)
        self._regexes = RegexResolver(lambda: self.state, self.submit, readable)
        self._targets = TargetMaker(self.submit, compute)
        self._tally = Tally()
        self._tally.follow(replica.state)
        self._unleased: list[c.Command] = []
        self._confirming: asyncio.Future[None] | None = None
        self._stopped = False

    # --- for services ---

    def open(self, moments: Moments | None = None) -> Call:
        """Open a call for a command; raises CommandFailed unless calls are served here.

        `moments`: of a traced call of a stream; a unary one has them in `CURRENT`.
        """
        if self._stopped:
            raise Stopping  # clients repeat it at another node, and members keep their sessions
        self.check_serving()
        return Call(self, *self.calls.open(moments or CURRENT.get()))

    def hearing(self) -> Hearing:
        """Return what answers plain heartbeats from the caches, for this turn of the loop only."""
        return self._hearing if self._replica.lease_valid() else _DEAF

    def submit_leased(self, command: c.Command) -> None:
        """Submit a command at once while the lease holds, else after a read barrier (S10 c).

        An answer without events is a read: a leader that was deposed without knowing it must not
        confirm a member's session, or two members would own one partition (S11).
        """
        if self._replica.lease_valid():
            self.submit(command)
            return
        self._unleased.append(command)
        if self._confirming is None or self._confirming.done():
            self._confirming = asyncio.ensure_future(self._confirm())

    def submit_fired(self, command: c.DeadlineFired) -> None:
        """Submit a deadline that fired, behind calls that wait for a barrier.

        They had arrived before it, so what they say counts first (S9 a).
        """
        if self._confirming is None or self._confirming.done():
            self.submit(command)
        else:
            self._unleased.append(command)

    def overtakes(self) -> bool:
        """Return whether a command submitted now would overtake one that waits for a barrier."""
        confirming = self._confirming is not None and not self._confirming.done()
        return confirming and self._replica.lease_valid()

    async def in_order(self) -> None:
        """Wait until a command submitted next overtakes none that was submitted before.

        For a caller whose commands stand in an order that it was promised.
        """
        while self._confirming is not None and self.overtakes():
            await asyncio.wait([self._confirming])

    async def _confirm(self) -> None:
        """Submit waiting commands after a barrier; commands that come later need another barrier.

        A command of another term is dropped: its call was failed when the leadership was lost.
        """
        while waiting := self._unleased:
            self._unleased, term = [], self._replica.leading_term
            try:
                await self._replica.read_barrier()
            except NotLeader as error:
                for command in waiting:
                    told = NotCoordinator(self.address_of(error.leader))
                    self.calls.fail(call_of(command), told)
                continue
            for command in waiting:
                wanted = isinstance(command, c.DeadlineFired) or call_of(command) in self.calls
                if self._replica.leading_term == term and wanted:
                    self.submit(command)

    def stop(self) -> None:
        """Fail all calls; those with a proposed change have an unknown outcome (S5).

        All others are failed as on a node that lost the leadership. So nothing more is proposed,
        though this node may lead until its process ends.
        """
        self._stopped = True
        for call in self._drop_actors():
            self.calls.fail(call, StoppedMeanwhile())
        self.calls.fail_all(Stopping)

    def check_serving(self) -> None:
        """Raise CommandFailed unless this node leads and is ready (S10 d)."""
        if not self._replica.leading_term:
            if self._replica.leader == self._replica.node_id:
                raise Loading  # elected, but its own no-op is not applied yet
            raise NotCoordinator(self.leader_address)
        if not self._replica.state.cluster_id or self.must_recover:
            raise Loading

    @property
    def is_serving(self) -> bool:
        """Whether this node leads and is ready, for health: what `check_serving` says."""
        try:
            self.check_serving()
        except CommandFailed:
            return False
        return True

    @property
    def must_recover(self) -> bool:
        """Whether the first entry after a restore is missing: no token may be given yet (S13)."""
        return self._replica.state.recovery_number < self._recovering.number

    @property
    def leader_address(self) -> str:
        """`host:port` of the node that leads, for clients; "" if unknown."""
        return self.address_of(self._replica.leader)

    def address_of(self, node: str | None) -> str:
        """Return the `host:port` at which clients reach a node; "" if unknown."""
        return self._nodes.get(node or "", "")

    def number_of(self, node: str | None) -> int:
        """Return a node's place among the nodes by name, from 1; -1 for an unknown one."""
        return sorted(self._nodes).index(node) + 1 if node and node in self._nodes else -1

    def submit(self, command: c.Command) -> None:
        """Pass a command to its group's actor; drop it if this node does not lead, or stops.

        After a restore nothing is decided before the recovery number is raised; what is dropped
        until then is about members that are removed right after it.
        """
        if not self._replica.leading_term or self._stopped:
            return
        if self.must_recover and command is not self._recovering:
            return
        group_id = "" if isinstance(command, c.ClusterCommand) else command.group_id
        actor = self._actors.get(group_id)
        if actor is None:
            actor = self._actors[group_id] = Actor(group_id, self)
        actor.submit(command)

    def actor(self, group_id: GroupId) -> Actor | None:
        """Return the group's actor, if there is one at the moment."""
        return self._actors.get(group_id)

    def session_left_ms(self, group_id: GroupId, member_id: MemberId) -> int | None:
        """Return the ms until a member expires; None: suspended, or this node does not lead."""
        return self._timers.left_ms(group_id, DeadlineKey(SESSION, member_id))

    # --- what actors need (desk.Desk) ---

    @property
    def state(self) -> State:
        """The newest applied state."""
        return self._replica.state

    @property
    def term(self) -> int:
        """The term in which this node leads; 0: it does not."""
        return self._replica.leading_term

    @property
    def log_time_ms(self) -> int:
        """The cluster's log time now (S8)."""
        return self._replica.log_time_ms()

    def propose(self, part: Part) -> asyncio.Future[Committed]:
        """Propose a part; the future has its fate."""
        return self._replica.propose(part)

    def used(self) -> Usage:
        """Return the usage of the whole cluster, with the growth that groups have proposed."""
        state = self._replica.state
        return self._tally.used(state, settings.of_cluster(state).ceilings)

    def claim(self, group_id: GroupId, growth: Usage, handed_out: int) -> None:
        """Count the growth that a group has proposed, and its unused member ids."""
        self._tally.claim(group_id, growth, handed_out)

    def carry_out(self, group_id: GroupId, effect: Effect) -> None:
        """Start, stop or renew a deadline, look topics up, or compute a target."""
        if isinstance(effect, ResolveRegexes):
            self._regexes.ask(group_id, effect.regexes)
        elif isinstance(effect, ComputeTarget):
            self._targets.ask(group_id, effect)
        else:
            self._timers.carry_out(group_id, effect)

    def renew(self, group_id: GroupId, renewal: Renew) -> None:
        """Renew a session."""
        self._timers.renew(group_id, renewal)

    def idle(self, group_id: GroupId) -> None:
        """Drop the actor of a group that does not exist and has nothing parked or armed."""
        if group_id in self._replica.state.groups:
            return
        actor = self._actors.get(group_id)
        if actor is not None and not actor.keeps_something:
            del self._actors[group_id]

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_leading=self.on_leading,
            on_not_leading=self.on_not_leading,
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_leading(self, term: int) -> None:
        """Take over every group: deadlines in full, nobody parked, nobody rejoined (S9, S16)."""
        if self._stopped:
            return
        state = self._replica.state
        logger.info("leading in term %d with %d groups", term, len(state.groups))
        self._tally.follow(state)
        for group_id in state.groups:
            actor = self._actors[group_id] = Actor(group_id, self)
            actor.take_over(on_leading(state, group_id))
        if not state.cluster_id:
            self.submit(self._forming())
        elif self.must_recover:
            logger.warning("restored: everything after entry %s is lost", self._recovering.kept)
            self.submit(self._recovering)
        else:
            self._clear_groups()

    def _clear_groups(self) -> None:
        """Remove the members from before the last recovery, before any call is decided (S13)."""
        for group_id in groups_to_clear(self._replica.state):
            nobody = c.Caller(0)
            self.submit(
                c.LeaveGroup(nobody, group_id, (), operator=True, everyone=True, reason=RESTORED)
            )

    def on_not_leading(self) -> None:
        """Fail all waiting calls; decide nothing more."""
        logger.info("not leading any more; %d calls are told", len(self.calls))
        unsettled = self._drop_actors()
        self._timers.clear()
        address = self.leader_address
        self.calls.fail_all(lambda: NotCoordinator(address), unsettled)

    def _drop_actors(self) -> set[CallId]:
        """Drop all actors; return the calls with a proposed change (S5)."""
        unsettled: set[CallId] = set()
        for actor in self._actors.values():
            unsettled |= actor.unsettled
            actor.drop()
        self._actors.clear()
        self._regexes.clear()
        self._targets.clear()
        self._tally.clear()
        self._unleased.clear()
        return unsettled

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Count what these groups had proposed as part of the state from now on."""
        del index
        for record in records:
            self._tally.landed(record.group_id)
        self._tally.applied(self._replica.state)
        if any(type(record.event) in _SHAKING for record in records):
            for actor in self._actors.values():
                actor.forget_beats()
        if any(isinstance(record.event, RecoveryNumberRaised) for record in records):
            self._clear_groups()

    def on_stopped(self, reason: str) -> None:
        """Fail all calls: the node's log stopped."""
        del reason
        if self._replica.leading_term:
            self.on_not_leading()
