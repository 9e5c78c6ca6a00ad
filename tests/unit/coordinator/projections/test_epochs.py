"""What is remembered of a heartbeat group's last epochs: cause, author, moves, time to converge.

Operators explain a group by it, so it must be true of every way in which an epoch is raised; and it
never grows with the group. Each test also replays its log from cuts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.model.commands import (
    Caller,
    LeaveGroup,
    LeavingMember,
    TriggerRebalance,
)
from holdfast.coordinator.projections import history
from holdfast.coordinator.projections.history import Change, Move, Rebalance
from holdfast.coordinator.projections.stories import KEPT_MAX, LISTED_MAX
from unit.coordinator.consumer.talk import GROUP, Talk, parts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Four partitions; a second has passed, so that 0 is no time of anything."""
    made = Talk(t=4)
    made.core.advance(1_000)
    yield made
    made.core.check_replays()


def told(talk: Talk) -> tuple[Rebalance, ...]:
    return talk.core.histories.get(GROUP, ())


def epochs(talk: Talk) -> tuple[Rebalance, ...]:
    """The epochs that people are shown, the oldest first."""
    return history.epochs(talk.core.histories, GROUP, KEPT_MAX)[::-1]


def last(talk: Talk) -> Rebalance:
    return told(talk)[-1]


def joins(talk: Talk, name: str, **said: Any) -> None:  # noqa: ANN401 - a field of the command
    talk.told(talk.joins(name, "t", instance_id=f"i-{name}", **said))


def beats(talk: Talk, name: str, *owned: str) -> None:
    """A full heartbeat of the member's epoch that says what it owns."""
    epoch = talk.member(name).epoch
    talk.told(talk.says(name, epoch, owned=parts(*owned), instance_id=f"i-{name}"))


def two(talk: Talk) -> None:
    """`a` has two partitions and `b` the others: both epochs have converged."""
    joins(talk, "a")
    joins(talk, "b")
    beats(talk, "a", "t0", "t1", "t2", "t3")
    beats(talk, "a", "t0", "t1")
    beats(talk, "b")


def test_a_first_member_gets_all_and_nothing_moves(talk: Talk) -> None:
    joins(talk, "a", principal="alice")

    assert (last(talk).from_generation, last(talk).generation) == (1, 2)
    assert (last(talk).reason, last(talk).principal) == ("joined", "alice")
    assert (last(talk).command, last(talk).member_id) == ("ConsumerGroupHeartbeat", "a")
    assert last(talk).instance_id == "i-a"
    assert (last(talk).moved, last(talk).given, last(talk).dropped) == (0, 4, 0)
    assert last(talk).changes == (Change("i-a", "joined"),)
    assert (last(talk).closed_ms, last(talk).assigned_ms) == (1_000, 1_000)


def test_an_epoch_has_converged_when_everybody_owns_its_part(talk: Talk) -> None:
    """K-O5: what `b` gets, `a` has to give up first."""
    joins(talk, "a")
    talk.core.advance(10)
    joins(talk, "b")
    moves = last(talk).moves
    assert [(each.before, each.after) for each in moves] == [("i-a", "i-b")] * 2
    assert (last(talk).moved, last(talk).reassigned_names) == (2, ("i-a", "i-b"))
    assert (last(talk).closed_ms, last(talk).assigned_ms) == (1_010, 0)

    kept = sorted({f"t{n}" for n in range(4)} - {f"t{each.partition}" for each in moves})
    beats(talk, "a", "t0", "t1", "t2", "t3")
    talk.core.advance(5)
    beats(talk, "a", *kept)
    assert last(talk).assigned_ms == 0
    talk.core.advance(5)
    beats(talk, "b")
    assert (last(talk).generation, last(talk).assigned_ms) == (3, 1_020)


def test_partitions_of_a_member_that_left_move_from_it(talk: Talk) -> None:
    """A leave computes nothing; the next heartbeat does (K-M28)."""
    two(talk)
    talk.told(talk.says("b", -1, instance_id="i-b"))
    assert (last(talk).reason, last(talk).changes) == ("left", (Change("i-b", "left"),))
    assert (last(talk).member_id, last(talk).closed_ms) == ("b", 0)

    talk.core.advance(7)
    beats(talk, "a", "t0", "t1")
    assert (last(talk).generation, last(talk).closed_ms, last(talk).assigned_ms) == (
        4,
        1_007,
        1_007,
    )
    assert last(talk).moves == (Move("t", 2, "i-b", "i-a"), Move("t", 3, "i-b", "i-a"))


def test_an_epoch_that_the_next_overtakes_leaves_to_it_who_parted(talk: Talk) -> None:
    two(talk)
    joins(talk, "c")
    for name in ("b", "c"):
        talk.told(talk.says(name, -1, instance_id=f"i-{name}"))
    *_, joined, first, second = told(talk)

    assert [each.reason for each in (joined, first, second)] == ["joined", "left", "left"]
    assert (first.closed_ms, first.parted) == (0, ())
    assert [each.name for each in second.parted] == ["i-b", "i-c"]
    beats(talk, "a", "t0", "t1")
    assert {each.before for each in last(talk).moves} <= {"i-b", "i-c"}
    assert last(talk).moved == 2


def test_who_was_removed_and_by_whom_is_told(talk: Talk) -> None:
    """K-G23: by an operator, who names the instance and no member."""
    two(talk)
    talk.send(LeaveGroup(Caller(99, "ops"), GROUP, (LeavingMember("", "i-b"),)))

    assert (last(talk).reason, last(talk).changes) == ("removed", (Change("i-b", "removed"),))
    assert (last(talk).principal, last(talk).command) == ("ops", "LeaveGroup")


def test_an_operator_may_ask_for_an_epoch_that_moves_nothing(talk: Talk) -> None:
    two(talk)
    talk.send(TriggerRebalance(Caller(99, "ops"), GROUP, "a look"))
    beats(talk, "a", "t0", "t1")
    beats(talk, "b", "t2", "t3")

    assert (last(talk).reason, last(talk).principal) == ("asked", "ops")
    assert (last(talk).changes, last(talk).moved, last(talk).counted) == ((), 0, True)
    assert last(talk).assigned_ms > 0


def test_a_topic_that_grows_is_a_cause_and_what_it_has_more_is_given(talk: Talk) -> None:
    """K-M27: a heartbeat finds it."""
    two(talk)
    talk.grow(t=6)
    beats(talk, "a", "t0", "t1")

    assert (last(talk).reason, last(talk).moved, last(talk).given) == ("topics", 0, 2)


def test_what_a_member_says_anew_without_another_target_is_no_epoch(talk: Talk) -> None:
    """K-M16: another timeout asks for none; the epoch that comes later has another cause."""
    two(talk)
    before = told(talk)
    said = {"owned": parts("t0", "t1"), "instance_id": "i-a", "rebalance_timeout_ms": 70_000}
    talk.told(talk.says("a", talk.member("a").epoch, **said))
    assert tuple(each for each in told(talk) if each.generation) == before

    talk.core.advance(3)
    talk.send(TriggerRebalance(Caller(99, "ops"), GROUP, "a look"))
    assert told(talk)[:-1] == before
    assert (last(talk).number, last(talk).member_id, last(talk).log_time_ms) == (3, "", 1_003)


def test_only_the_last_epochs_and_the_first_names_are_kept(talk: Talk) -> None:
    for number in range(LISTED_MAX + 8):
        joins(talk, f"m{number:02}")

    assert len(told(talk)) == KEPT_MAX
    assert last(talk).generation == LISTED_MAX + 9
    assert len(last(talk).moves) <= LISTED_MAX


def all_but_one_step(talk: Talk) -> None:
    """`b` has come, `a` has given up what `b` is to own, and `b` need only take it."""
    joins(talk, "a")
    joins(talk, "b")
    beats(talk, "a", "t0", "t1", "t2", "t3")
    kept = {f"t{number}" for each in talk.member("a").owned for number in each.partitions}
    beats(talk, "a", *sorted(kept))
    talk.core.advance(5)


def test_an_epoch_converges_by_a_step_that_says_something_new_beside_it(talk: Talk) -> None:
    """K-M16: what asks for no epoch must not hide that everybody owns its part."""
    all_but_one_step(talk)
    epoch, said = talk.member("b").epoch, {"owned": (), "rebalance_timeout_ms": 70_000}
    talk.told(talk.says("b", epoch, instance_id="i-b", **said))

    assert (talk.group.state, epochs(talk)[-1].assigned_ms) == ("Stable", 1_005)


def test_an_epoch_converges_after_somebody_else_has_said_something_new(talk: Talk) -> None:
    """K-M16, the same in entries of their own."""
    all_but_one_step(talk)
    talk.told(talk.says("a", 3, instance_id="i-a", rebalance_timeout_ms=70_000))
    beats(talk, "b")

    assert (talk.group.state, epochs(talk)[-1].assigned_ms) == ("Stable", 1_005)


def test_who_joins_by_an_expression_is_told_of_with_the_epoch_that_follows(talk: Talk) -> None:
    """K-P1: the epoch is raised later, when it is known which topics match."""
    joins(talk, "b")
    talk.told(talk.joins("a", topics=None, regex="t.*", instance_id="i-a"))
    assert [each.generation for each in epochs(talk)] == [2]
    talk.core.advance(10)  # it is looked up
    talk.told(talk.says("a", talk.member("a").epoch, instance_id="i-a"))

    told = epochs(talk)[-1]
    assert (told.generation, told.reason, told.members) == (3, "regex", 1)
    assert (told.came, told.changes) == (1, (Change("i-a", "joined"),))


def test_who_was_heard_and_gave_nothing_up_is_told_by_its_rule(talk: Talk) -> None:
    """K-M25 is not K-M24: a member that beats all the time is expelled, too."""
    joins(talk, "a", rebalance_timeout_ms=10_000)
    joins(talk, "b")
    for _ in range(11):
        beats(talk, "a", "t0", "t1", "t2", "t3")
        beats(talk, "b")
        talk.core.advance(1_000)
        if "a" not in talk.group.body.members:
            break

    assert (last(talk).changes, last(talk).rule) == ((Change("i-a", "expired"),), "M25")


def test_who_need_not_move_and_has_not_heard_of_the_epoch_keeps_nobody_waiting(talk: Talk) -> None:
    """K-O5: the time until everybody owned its part is not that of the slowest heartbeat."""
    two(talk)
    joins(talk, "c")
    (giver,) = {each.before[-1] for each in last(talk).moves}
    beats(talk, giver, *_owned(talk, giver))
    talk.core.advance(4)
    beats(talk, giver, *_owned(talk, giver))
    assert last(talk).assigned_ms == 0
    talk.core.advance(5)
    beats(talk, "c")

    assert (len(_owned(talk, "a", "b", "c")), talk.group.state) == (4, "Reconciling")
    assert last(talk).assigned_ms == 1_009


def test_an_epoch_is_over_though_a_process_has_stopped_before_it_heard_of_it(talk: Talk) -> None:
    """K-N2: who is away for a while has what it is to have."""
    two(talk)
    talk.core.advance(2)
    talk.send(TriggerRebalance(Caller(99, "ops"), GROUP, "a look"))
    talk.told(talk.says("b", -2, instance_id="i-b"))
    beats(talk, "a", *_owned(talk, "a"))

    assert talk.group.state == "Reconciling"
    assert (last(talk).closed_ms, last(talk).assigned_ms) == (1_002, 1_002)


def _owned(talk: Talk, *names: str) -> list[str]:
    held = [each for name in names for each in talk.member(name).owned]
    return [f"t{number}" for each in held for number in each.partitions]
