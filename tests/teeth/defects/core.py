"""Defects of the rules of groups: who may speak, what is decided, and how it is folded."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.classic import (
    answers,
    deadlines,
    heartbeat,
    leave,
    parked_calls,
    rebalance,
    rejoin,
)
from holdfast.coordinator.classic import evolve as evolve_members
from holdfast.coordinator.cluster import requests
from holdfast.coordinator.kernel import apply as replay
from holdfast.coordinator.kernel import decide, evolve
from holdfast.coordinator.model.events import (
    GenerationStarted,
    OffsetsCommitted,
    StaticMemberReplaced,
)
from holdfast.coordinator.offsets import commits
from simulation.process import running
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import entered, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.groups.draft import Draft

SCENARIOS = "tests/unit/coordinator/test_safety_scenarios.py::"
RELEASE = "tests/unit/coordinator/classic/test_heartbeat.py::"
APPLY = "tests/unit/coordinator/kernel/test_apply.py::"
TOKEN_STEP = 64


# --- fences ---


@seeded("S12", Simulated(("I5",), "frozen-clients"))
def member_id_check_skipped() -> Iterator[None]:
    """Whoever names an instance id is taken for its holder: a replaced process speaks on."""
    decided: Any = decide._decide

    def as_the_holder(draft: Draft, command: Any) -> None:
        named: str = getattr(command, "instance_id", None) or ""
        speaks: str = getattr(command, "member_id", "")
        holder = draft.found.body.instances.get(named) if draft.found else None
        if holder is not None and speaks:
            command = replace(command, member_id=holder)
        decided(draft, command)

    with replaced(decide, "_decide", as_the_holder):
        yield


@seeded("I5", Simulated(("I5",), "frozen-clients"))
def generation_check_skipped() -> Iterator[None]:
    """A heartbeat of an older generation is answered NONE: its sender acts on what others have."""
    beat: Any = heartbeat.heartbeat

    def of_any_generation(draft: Draft, command: Any) -> None:
        if draft.found is not None:
            command = replace(command, generation=draft.found.generation)
        beat(draft, command)

    with replaced(heartbeat, "heartbeat", of_any_generation):
        yield


@seeded("I5", Simulated(("I5",), "failovers", 12))
def commits_of_any_generation() -> Iterator[None]:
    """A commit of an older generation is taken: it overwrites what the next owner has committed."""
    refusal: Any = commits._commit_refusal

    def whatever_it_says(draft: Draft, command: Any) -> Any:
        if draft.found is not None:
            command = replace(command, generation=draft.found.generation)
        return refusal(draft, command)

    with replaced(commits, "_commit_refusal", whatever_it_says):
        yield


@seeded("I4", Simulated(("I4", "I5", "alarm"), "calm"))
def swap_keeps_the_old_id() -> Iterator[None]:
    """A static swap binds the new id and leaves the old one a member: two hold one instance."""
    swapped: Any = evolve_members.FOLDS[StaticMemberReplaced]

    def keep(group: Any, event: Any, record: Any) -> Any:
        after = swapped(group, event, record)
        old = group.body.members[event.old_member_id]
        members = after.body.members.set(old.member_id, old)
        return after._replace(body=after.body._replace(members=members))

    with entered(evolve_members.FOLDS, StaticMemberReplaced, keep):
        yield


@seeded("S12", Scenario(RELEASE + "test_s12_a_release_does_not_hide_an_earlier_holder"))
def predecessor_forgotten() -> Iterator[None]:
    """A grant never says that an old holder may still run: nobody waits for it."""
    with replaced(rejoin, "_predecessor_ms", lambda _draft, _old: 0):
        yield


@seeded("S13", Simulated(("I3", "I5"), "calm"))
def token_reused() -> Iterator[None]:
    """Tokens are rounded: two grants that follow each other closely have the same one."""

    def rounded(recovery_number: int, index: int) -> int:
        return (recovery_number << 48) + index - index % TOKEN_STEP

    with replaced(answers, "fencing_token", rounded):
        yield


@seeded(
    "S11", Scenario("tests/unit/coordinator/classic/test_heartbeat.py::test_f_heartbeats_by_state")
)
def rebalance_hidden_from_heartbeats() -> Iterator[None]:
    """A heartbeat in the join phase is answered NONE: what was missed by push is never heard."""
    with replaced(heartbeat, "RebalanceInProgress", lambda: None):
        yield


# --- generations and rebalances ---


@seeded("S13", Simulated(("I3",), "failovers"))
def generation_reissued_after_a_failover() -> Iterator[None]:
    """The number of a generation is not remembered across a failover, and given out again."""
    taken_over: set[str] = set()
    take_over: Any = deadlines.take_over
    start: Any = rebalance._start_generation

    def forget(draft: Draft) -> None:
        take_over(draft)
        taken_over.add(draft.group_id)

    def again(draft: Draft, *rest: Any) -> None:
        behind = draft.group_id in taken_over and draft.group.generation > 0
        taken_over.discard(draft.group_id)

        def numbered(generation: int, **fields: Any) -> Any:
            return GenerationStarted(generation=generation - behind, **fields)

        with replaced(rebalance, "GenerationStarted", numbered):
            start(draft, *rest)

    with (
        replaced(deadlines, "take_over", forget),
        replaced(rebalance, "_start_generation", again),
        replaced(evolve_members, "_next_generation", lambda _group, _generation: None),
    ):
        yield


@seeded("S16", Simulated(("I12",), "failovers"))
def deadlines_not_armed_after_a_failover() -> Iterator[None]:
    """A new leader arms nothing: who dies around a failover lives for ever."""
    with replaced(deadlines, "take_over", lambda _draft: None):
        yield


@seeded(
    "S16",
    Scenario(
        "tests/unit/coordinator/classic/test_deadlines.py::test_s16_a_sync_is_expected_of_everyone_who_rejoined"
    ),
)
def owed_syncs_forgotten() -> Iterator[None]:
    """A new leader does not expect the syncs that are owed: a group waits for one for ever."""
    take_over: Any = deadlines.take_over

    def forget(draft: Draft) -> None:
        with replaced(deadlines, "COMPLETING", "never"):
            take_over(draft)

    with replaced(deadlines, "take_over", forget):
        yield


@seeded(
    "I9",
    Scenario(
        "tests/unit/coordinator/classic/test_leave.py::test_g14_a_batch_is_one_rebalance_and_one_event"
    ),
)
def batch_leave_one_by_one() -> Iterator[None]:
    """A list of leaving members is taken out one by one, each with an event of its own."""
    go: Any = leave._go

    def one_by_one(draft: Draft, command: Any, going: dict[str, bool], reason: str) -> None:
        for member_id, own in going.items():
            go(draft, command, {member_id: own}, reason)

    with replaced(leave, "_go", one_by_one):
        yield


# --- time ---


@seeded(
    "S9", Scenario(SCENARIOS + "test_s9_early_an_expiry_in_flight_ends_no_member_that_was_heard")
)
def expiry_in_spite_of_a_heartbeat() -> Iterator[None]:
    """An expiry that has fired is carried out although the member was heard since."""
    over: Any = deadlines._session_over

    def deaf(draft: Draft, member_id: str, *, heard: bool) -> None:
        del heard
        over(draft, member_id, heard=False)

    with replaced(deadlines, "_session_over", deaf):
        yield


@seeded(
    "S17",
    Scenario(
        "tests/unit/coordinator/classic/test_heartbeat.py::test_a_parked_member_heartbeats_and_its_session_stays_suspended"
    ),
)
def parked_member_expires() -> Iterator[None]:
    """A parked call does not suspend the session: who waits as it was told to is thrown out."""
    park: Any = parked_calls.park_join

    def park_and_tick(draft: Draft, caller: Any, member_id: str, *, is_new: bool = False) -> None:
        park(draft, caller, member_id, is_new=is_new)
        draft.arm_session(member_id)

    with replaced(parked_calls, "park_join", park_and_tick):
        yield


# --- requests ---


@seeded("S15", Simulated(("I11",), "lost-answers"))
def dedupe_table_dropped() -> Iterator[None]:
    """Nobody remembers what was served: a repeated request is carried out once more."""
    with replaced(requests, "_served", lambda _state, _command: None):
        yield


@seeded("S14", Simulated(("I11", "I9"), "lost-answers"))
def retried_join_is_a_new_one() -> Iterator[None]:
    """The repetition of a join is not known again: it makes another member, or another swap."""
    with replaced(rejoin, "_is_retry", lambda _command, _member: False):
        yield


# --- the fold ---


@seeded(
    "S2",
    Scenario(SCENARIOS + "test_s2_what_was_decided_on_a_dead_group_does_not_touch_its_namesake"),
)
def version_guard_off() -> Iterator[None]:
    """A part is applied to whatever its group has become since it was decided."""

    def term_only(_fold: Any, term: int, part: Any) -> str | None:
        return "S1" if part.term != term else None

    with replaced(replay, "guard", term_only):
        yield


@seeded("S6", Scenario(f"{APPLY}test_s6_a_part_that_cannot_be_true_leaves_no_trace"))
def half_a_part_is_folded() -> Iterator[None]:
    """What a part changed before the event that cannot be true stays in the state."""
    with replaced(evolve.Fold, "drop", lambda _fold: None):
        yield


@seeded("I6", Simulated(("I6", "alarm"), "calm"))
def evolve_depends_on_the_node() -> Iterator[None]:
    """One node folds an event otherwise than its peers: what it answers is its own invention."""
    committed: Any = evolve.OF_ANY[OffsetsCommitted]

    def otherwise(group: Any, event: Any, record: Any) -> Any:
        process = running.process
        if process is not None and process.machine == "node-2":
            record = record._replace(log_time_ms=record.log_time_ms + 1)
        return committed(group, event, record)

    with entered(evolve.OF_ANY, OffsetsCommitted, otherwise):
        yield
