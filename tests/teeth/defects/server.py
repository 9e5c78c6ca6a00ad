"""Defects of the node around the rules: what is answered when, read from where, told to whom."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.model.commands import Caller, TriggerRebalance
from holdfast.coordinator.model.effects import Answer, Arm, settled
from holdfast.coordinator.model.ids import Position
from holdfast.raft.api import NotLeader
from holdfast.runtime.backup.recovery_numbers import Wanted
from holdfast.runtime.groups import actor, batch
from holdfast.runtime.groups.actor import Actor
from holdfast.runtime.groups.actors import Actors
from holdfast.runtime.groups.heartbeat_cache import HeartbeatCache
from holdfast.runtime.replica.catch_up import CatchUp
from holdfast.runtime.replica.replica import Replica
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.runtime.time.deadline_dispatch import DeadlineDispatch
from holdfast.runtime.time.timers import Timers
from holdfast.server.rpc import log_service
from holdfast.server.rpc.nodes import Nodes, Upgrade
from holdfast.storage.codec.event_codec import decode_entry
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.raft.api import RoleChanged
    from holdfast.runtime.groups.batch import Batch
    from holdfast.runtime.replica.state_machine import AppliedEntry

ACTORS = "tests/unit/runtime/groups/test_actors.py::"
ONE_ACTOR = "tests/unit/runtime/groups/test_actor.py::"
SESSIONS = "tests/unit/runtime/groups/test_actors_sessions.py::"


# --- reads and the log ---


@seeded("S10 c", Simulated(("I7", "I1"), "frozen-leaders", seeds=16))
def read_without_a_barrier() -> Iterator[None]:
    """Whoever believes to lead answers at once: no lease is asked for, and no majority."""
    with replaced(Replica, "lease_valid", lambda self: bool(self.leading_term)):
        yield


@seeded(
    "S4",
    Scenario(
        "tests/unit/server/rpc/test_reads.py::"
        "test_s4_a_node_that_was_started_answers_no_read_before_it_has_caught_up[groups]"
    ),
)
def started_node_tells_at_once() -> Iterator[None]:
    """A node that was killed and started shows what its disk holds, older than what it showed."""
    with replaced(CatchUp, "is_done", lambda _self: True):
        yield


@seeded("S5", Simulated(("I11", "I2", "I7"), "failovers", seeds=6))
def proposal_settled_too_early() -> Iterator[None]:
    """At a step-down what is under way is called not applied, and committed by the next leader."""
    on_role: Any = Replica._on_role

    def hasty(self: Replica, item: RoleChanged) -> None:
        for proposal in item.unknown:
            self._settle(proposal, NotLeader(item.leader))
        on_role(self, item)

    with replaced(Replica, "_on_role", hasty):
        yield


@seeded("I2", Simulated(("I2", "I11", "I7"), "failovers", seeds=6))
def answered_before_the_commit() -> Iterator[None]:
    """A change is acknowledged when it is proposed: a leader that dies takes it along."""
    propose: Any = Actor._propose

    def hasty(self: Actor) -> None:
        propose(self)
        batch = self._batch
        if batch is None or not self._proposed:
            return
        at = self._desk.state.applied_index + 1
        answers = tuple(each for each in batch.effects if isinstance(each, Answer))
        self._carry_out(settled(answers, at), Position(at, 0), batch.commands)
        batch.effects = [each for each in batch.effects if not isinstance(each, Answer)]

    with replaced(Actor, "_propose", hasty):
        yield


@seeded(
    "S8",
    Scenario(
        "tests/unit/runtime/replica/test_replica.py::test_s8_log_time_continues_from_the_log_and_not_from_the_wall"
    ),
)
def log_time_from_the_wall() -> Iterator[None]:
    """A new leader begins with its wall clock: one that is a year ahead expires every offset."""
    with replaced(Replica, "_log_time_to_go_on_from", lambda self: int(self._clocks.wall() * 1000)):
        yield


@seeded("S2", Simulated(("alarm",), "calm"))
def actor_forgotten_amid_what_waits() -> Iterator[None]:
    """An actor that still has commands to decide is forgotten; the next command makes another.

    A defect that the product had: a topic just made was said to exist, a join never answered.
    """
    take: Any = Actor._take

    def forgetful(self: Actor, command: Any) -> None:
        take(self, command)
        if self._batch is None:
            self._desk.idle(self.group_id)

    with replaced(Actor, "_take", forgetful):
        yield


@seeded(
    "S2",
    Scenario("tests/unit/runtime/replica/test_replica.py::test_s2_each_part_is_told_its_own_fate"),
)
def fate_told_by_group() -> Iterator[None]:
    """Of two parts of a group in an entry the applied one is called skipped, and done once more."""
    apply: Any = StateMachine.apply

    def blurred(
        self: StateMachine, index: int, term: int, payload: bytes, known: Any = None
    ) -> AppliedEntry:
        outcome: AppliedEntry = apply(self, index, term, payload, known)
        if not outcome.skipped:
            return outcome
        parts = decode_entry(payload).parts
        rules = {parts[place].group_id: rule for place, rule in outcome.skipped.items()}
        named = ((place, part.group_id) for place, part in enumerate(parts))
        return outcome._replace(
            skipped={place: rules[group] for place, group in named if group in rules}
        )

    with replaced(StateMachine, "apply", blurred):
        yield


@seeded(
    "S5",
    Scenario(
        ONE_ACTOR + "test_a_stop_tells_who_has_a_change_on_its_way_that_nobody_knows_its_fate"
    ),
)
def stop_goes_on_deciding() -> Iterator[None]:
    """A node that stops calls what waits not applied, and proposes it all the same."""
    with replaced(Actor, "drop", lambda _self: None):
        yield


# --- elections and deadlines ---


@seeded("I9", Simulated(("I9",), "failovers"))
def assignment_recomputed_by_an_election() -> Iterator[None]:
    """A new leader lets every group rebalance, because it trusts nothing that it finds."""
    leading: Any = Actors.on_leading

    def distrust(self: Actors, term: int) -> None:
        leading(self, term)
        for group_id in self._replica.state.groups:
            self.submit(TriggerRebalance(Caller(0), group_id, "a new leader"))

    with replaced(Actors, "on_leading", distrust):
        yield


@seeded("S11", Scenario(ACTORS + "test_s11_a_rebalance_timer_runs_from_the_commit"))
def rebalance_timer_armed_when_proposed() -> Iterator[None]:
    """Deadlines run from the proposal: a slow commit gives partitions away too early."""
    propose: Any = Actor._propose
    adopt: Any = Actor._adopt
    since_ms: dict[int, int] = {}

    def now_ms(self: Any) -> int:
        return self._desk._timers._now_ms()  # type: ignore[no-any-return]  # a clock

    def note(self: Actor) -> None:
        propose(self)
        since_ms[id(self)] = now_ms(self)

    def shortened(self: Actor, batch: Batch, first: Position) -> None:
        gone_ms = now_ms(self) - since_ms[id(self)]
        batch.effects = [
            replace(each, after_ms=max(0, each.after_ms - gone_ms))
            if isinstance(each, Arm)
            else each
            for each in batch.effects
        ]
        adopt(self, batch, first)

    with replaced(Actor, "_propose", note), replaced(Actor, "_adopt", shortened):
        yield


@seeded("S9", Scenario(SESSIONS + "test_s9b_an_expiry_is_proposed_only_after_a_quorum_probe"))
def expiry_without_a_probe() -> Iterator[None]:
    """A deadline is acted on without asking whether anybody follows this leader still."""

    async def asked_nobody(_self: DeadlineDispatch, *_: object) -> bool:
        return True

    with replaced(DeadlineDispatch, "_is_followed", asked_nobody):
        yield


@seeded("S9", Scenario(SESSIONS + "test_s9_a_stall_of_the_process_puts_every_deadline_off"))
def stalls_not_noticed() -> Iterator[None]:
    """A process that stood still expires whom it could not hear meanwhile."""
    with replaced(Timers, "stalled", lambda _self, _for_ms: None):
        yield


@seeded(
    "S9",
    Scenario(
        "tests/unit/runtime/groups/test_actors.py::test_s9_a_replaced_members_heartbeat_waits_for_the_batch_that_replaces_it"
    ),
)
def heartbeat_overtakes_its_replacement() -> Iterator[None]:
    """A heartbeat is answered NONE while the batch that fences its sender is on its way."""
    with replaced(actor, "waits", lambda _batch, _command: False):
        yield


@seeded("I5", Simulated(("I5", "I1"), "calm"))
def heartbeat_answers_outlive_a_decision() -> Iterator[None]:
    """A heartbeat is answered as it was the last time, whatever was decided since."""
    with replaced(HeartbeatCache, "forget", lambda _self: None):
        yield


# --- watches ---


@seeded("I10", Simulated(("I10",), "calm"))
def watch_skips_an_event() -> Iterator[None]:
    """A watch that goes on after a page begins one record too far."""
    with _pages(lambda at: Position(at.index, at.ordinal + 1)):
        yield


@seeded("I10", Simulated(("I10",), "calm"))
def watch_doubles_an_event() -> Iterator[None]:
    """A watch that goes on after a page begins with the last record of the page before."""
    with _pages(lambda at: Position(at.index - (not at.ordinal), max(0, at.ordinal - 1))):
        yield


def _pages(moved: Any) -> Any:
    page: Any = log_service.LogService._page

    async def elsewhere(self: Any, *arguments: Any) -> Any:
        sent = await page(self, *arguments)
        return sent._replace(next=moved(sent.next)) if sent.records else sent

    return replaced(log_service.LogService, "_page", elsewhere)


@seeded(
    "S6",
    Scenario(
        "tests/unit/runtime/groups/test_actors.py::test_s6_a_batch_that_breaks_an_invariant_is_never_proposed"
    ),
)
def invariants_not_checked() -> Iterator[None]:
    """What a batch would break is not looked for before it is proposed."""
    with replaced(batch.Batch, "problems", lambda _self: ()):
        yield


# --- versions ---


@seeded("S3", Simulated(("level",), "upgrades", seeds=4))
def upgrade_ended_at_the_newest() -> Iterator[None]:
    """The end of an upgrade raises the level to what one node can run: others cannot read on."""

    def hasty(self: Nodes) -> Upgrade:
        return Upgrade(max(build.newest for build in self._met().values()), "")

    with replaced(Nodes, "upgrade", hasty):
        yield


# --- restores ---


@seeded(
    "S13",
    Scenario(
        "tests/unit/runtime/backup/test_verify.py::"
        "test_s13_a_restore_makes_nothing_until_its_number_is_said"
    ),
)
def restore_takes_the_next_number() -> Iterator[None]:
    """A restore takes the number after those that its backup knows, as every other one did."""
    with replaced(Wanted, "said", property(lambda _: True)):
        yield
