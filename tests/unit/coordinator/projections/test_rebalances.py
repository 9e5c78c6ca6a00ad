"""What is remembered of a group's last rebalances: why, who, when, and what moved (KIP-345, K-D10).

Operators explain a cluster by it, so it must be true of every way in which members come and go;
and it never grows with the group. Each test also replays its log from cuts.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.calls import Calls
from harness.consumers import READS_T, Consumers, owning
from holdfast.coordinator.groups import usage
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.commands import DeleteGroup, LeavingMember, TriggerRebalance
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.projections.history import (
    TEXT_BYTES_MAX,
    Change,
    Move,
    Rebalance,
    cut,
    newest,
    weight,
)
from holdfast.coordinator.projections.rebalances import COMPARED_BYTES_MAX
from holdfast.coordinator.projections.stories import (
    HISTORY_BYTES_MAX,
    KEPT_MAX,
    LISTED_MAX,
    PARTED_MAX,
    REBALANCE_BYTES_MAX,
)
from holdfast.storage.codec.event_codec import StateItem, encode_state


@pytest.fixture
def consumers(calls: Calls) -> Consumers:
    return Consumers(calls)


def test_a_first_generation_gives_and_moves_nothing(consumers: Consumers) -> None:
    consumers.form(a=owning(0, 1), b=owning(2))
    last = consumers.last

    assert (last.number, last.from_generation, last.generation) == (1, 0, 1)
    assert (last.moved, last.given, last.dropped, last.counted) == (0, 3, 0, True)
    assert last.changes == (Change("a", "joined"), Change("b", "joined"))
    assert (last.members, last.came, last.went) == (0, 2, 0)


def test_who_caused_it_is_named_also_if_it_came_with_it(consumers: Consumers) -> None:
    """RebalanceStarted comes before MemberJoined, which tells who the member is."""
    consumers.form(a=owning(0, 1))
    consumers.calls.core.advance(5)
    consumers.join("b")
    last = consumers.last

    assert (last.member_id, last.instance_id, last.client_id) == ("b-1", "b", "c")
    assert (last.principal, last.command, last.rule) == ("user", "JoinGroup", "B1")
    assert (last.wall_time_ms, last.log_time_ms) == (5, 5), "the entry's wall time, not a clock's"


def test_what_moved_is_told_between_the_two_last_assignments(consumers: Consumers) -> None:
    consumers.form(a=owning(0, 1, 2))
    consumers.join("b")
    consumers.calls.core.advance(7)
    consumers.rejoin()
    consumers.assign(a=owning(0), b=owning(2, 3))
    last = consumers.last

    assert last.moves == (Move("t", 1, "a", ""), Move("t", 2, "a", "b"), Move("t", 3, "", "b"))
    assert (last.moved, last.given, last.dropped) == (1, 1, 1)
    assert (last.reassigned, last.reassigned_names) == (2, ("a", "b"))
    assert (last.closed_ms, last.assigned_ms) == (7, 7)


def test_partitions_of_members_that_went_move_from_them(consumers: Consumers) -> None:
    """Their records are gone by then, so what they held is kept until the next assignment."""
    consumers.form(a=owning(0), b=owning(1), c=owning(2))
    consumers.calls.leave(LeavingMember("", "b"), LeavingMember("", "c"), operator=True)
    assert len(consumers.last.parted) == 2
    consumers.rejoin()
    consumers.assign(a=owning(0, 1, 2))
    last = consumers.last

    assert last.moves == (Move("t", 1, "b", "a"), Move("t", 2, "c", "a"))
    assert last.changes == (Change("b", "removed"), Change("c", "removed"))
    assert last.parted == ()


@pytest.mark.parametrize("how", ["left", "expired"])
def test_how_a_member_went_is_told(consumers: Consumers, how: str) -> None:
    consumers.form(a=owning(0), b=owning(1))
    if how == "left":
        consumers.calls.leave(LeavingMember("b-1", "b"))
    else:
        consumers.calls.core.advance(9_000)
        consumers.calls.heartbeat("a-1")
        consumers.calls.core.advance(1_000)

    assert consumers.last.changes == (Change("b", how),)
    assert consumers.last.instance_id == "b"


def test_who_missed_the_join_phase_has_expired(calls: Calls) -> None:
    """K-D5: a dynamic member that does not come in time is in no event of its own."""
    for name in ("m1", "m2"):
        calls.join(fresh=name)
        calls.join(member_id=name)
    calls.core.advance(0)
    leader = str(calls.group.body.leader)
    other = "m1" if leader == "m2" else "m2"
    calls.sync(other)
    calls.sync(leader, {})
    calls.join(member_id=leader)
    calls.core.advance(9_000)
    calls.heartbeat(other)
    calls.core.advance(6_000)
    last = calls.history[-1]

    assert last.changes == (Change(other, "expired"),)


def test_a_swap_moves_nothing_and_begins_nothing(consumers: Consumers) -> None:
    """KIP-345: names outlive the member id, so a restart is no move."""
    consumers.form(a=owning(0), b=owning(1))
    consumers.calls.join("b", fresh="b-2", protocols=READS_T, protocol_type="consumer")
    assert consumers.last.number == 1
    consumers.calls.submit(TriggerRebalance(consumers.calls.caller(), "g", "new disks"))
    consumers.rejoin()
    consumers.assign(a=owning(0), b=owning(1))
    last = consumers.last

    assert (last.reason, last.number, last.moved, last.reassigned) == ("new disks", 2, 0, 0)
    assert (last.came, last.went, last.changes) == (0, 0, ())


def test_an_abandoned_assignment_still_counts_as_the_last_one(consumers: Consumers) -> None:
    """K-D10 wipes what members held when a join phase opens while the assignment is awaited."""
    consumers.form(a=owning(0, 1))
    consumers.join("b")
    consumers.rejoin()
    consumers.join("c")  # the assignment of generation 2 never came
    assert consumers.calls.member("a-1").assignment == b""
    consumers.rejoin()
    consumers.assign(a=owning(0), b=owning(1), c=owning())

    earlier, last = consumers.calls.history[-2:]
    assert (earlier.generation, earlier.assigned_ms) == (2, 0)
    assert last.moves == (Move("t", 1, "a", "b"),)
    assert consumers.calls.member("a-1").abandoned == b""


def test_who_went_before_an_abandoned_assignment_is_not_forgotten(consumers: Consumers) -> None:
    consumers.form(a=owning(0), b=owning(1))
    consumers.calls.leave(LeavingMember("", "b"))
    consumers.rejoin()
    consumers.join("c")
    consumers.rejoin()
    consumers.assign(a=owning(0), c=owning(1))

    assert consumers.last.moves == (Move("t", 1, "b", "c"),)
    assert all(each.parted == () for each in consumers.calls.history)


def test_opaque_assignments_tell_whose_bytes_changed(calls: Calls) -> None:
    """Of any other protocol type nobody knows what the bytes mean."""
    calls.stable("i1", "i2")
    calls.submit(TriggerRebalance(calls.caller(), "g", "why not"))
    calls.join("i1", "i1-1")
    calls.join("i2", "i2-1")
    calls.sync("i2-1")
    calls.sync("i1-1", {"i1-1": b"i1-1", "i2-1": b"other"})
    last = calls.history[-1]

    assert (last.counted, last.reassigned, last.reassigned_names) == (False, 1, ("i2",))
    assert last.moves == ()


def test_unreadable_assignments_are_not_counted(consumers: Consumers) -> None:
    """Nobody checks an assignment's bytes when it is stored, and telling must never raise."""
    consumers.form(a=b"\xff")

    assert (consumers.last.counted, consumers.last.reassigned) == (False, 1)


def test_more_bytes_than_may_be_compared_count_members_only(consumers: Consumers) -> None:
    """The work is bounded too: a projection must not stand still for a large group."""
    large = owning(*range(COMPARED_BYTES_MAX // 2))
    assert len(large) > COMPARED_BYTES_MAX
    consumers.form(a=large)

    assert (consumers.last.counted, consumers.last.reassigned) == (False, 1)


def test_a_group_that_empties_closes_its_rebalance(consumers: Consumers) -> None:
    consumers.form(a=owning(0))
    consumers.calls.leave(LeavingMember("", "a"))

    assert (consumers.last.generation, consumers.last.from_generation) == (2, 1)
    assert consumers.last.changes == (Change("a", "removed"),)


def test_a_record_is_bounded_whatever_the_groups_size(consumers: Consumers) -> None:
    members = PARTED_MAX + 7
    names = [f"m{number:03d}" for number in range(members)]
    consumers.form(**{name: owning(at) for at, name in enumerate(names)})
    first = consumers.last
    assert (first.came, len(first.changes)) == (members, LISTED_MAX)
    assert (first.given, len(first.moves)) == (members, LISTED_MAX)
    assert (first.reassigned, len(first.reassigned_names)) == (members, LISTED_MAX)

    leaving = [LeavingMember("", name) for name in names[1:]]
    consumers.calls.leave(*leaving, operator=True)
    last = consumers.last
    assert (last.went, len(last.changes), len(last.parted)) == (members - 1, LISTED_MAX, PARTED_MAX)


def test_the_last_few_are_kept(calls: Calls) -> None:
    calls.stable("i1")
    for _ in range(KEPT_MAX + 3):
        calls.submit(TriggerRebalance(calls.caller(), "g", "again"))
        calls.join("i1", "i1-1")
        calls.sync("i1-1", {"i1-1": b"work"})

    numbers = [each.number for each in calls.history]
    assert numbers == list(range(5, KEPT_MAX + 5))
    assert [each.number for each in newest(calls.core.histories, "g", 2)] == [14, 13]


def test_a_history_is_bounded_in_bytes_too(calls: Calls) -> None:
    """S7: a node keeps one of each group; of larger rebalances of an older version fewer stay."""
    calls.stable("i1")
    names = tuple("n" * 1_000 for _ in range(LISTED_MAX))
    large = Rebalance(1, "why", "m", Position(1, 0), 5, reassigned_names=names)
    history = tuple(large._replace(number=number) for number in range(1, KEPT_MAX + 1))
    calls.core.histories = calls.core.histories.set("g", history)
    calls.submit(TriggerRebalance(calls.caller(), "g", "again"))

    assert calls.history[-1].number == KEPT_MAX + 1
    assert len(calls.history) < KEPT_MAX
    most = HISTORY_BYTES_MAX - REBALANCE_BYTES_MAX
    assert sum(map(weight, calls.history[:-1])) <= most
    assert sum(map(weight, calls.history[:-1])) + weight(large) > most
    calls.core.log.clear()  # what was put in by hand is in no log


def test_a_deleted_groups_history_goes_with_it(consumers: Consumers) -> None:
    """Whoever makes a group of the same name must not be told of another one's life."""
    consumers.form(a=owning(0))
    consumers.calls.leave(LeavingMember("", "a"))
    consumers.calls.submit(DeleteGroup(consumers.calls.caller(), "g"))

    assert "g" not in consumers.calls.core.histories
    consumers.join("a")
    assert consumers.last.number == 1


def test_a_history_is_no_part_of_the_state(consumers: Consumers) -> None:
    """S3: states are compared between nodes; what only people read must not tell them apart."""
    consumers.form(a=owning(0))
    assert consumers.calls.history
    assert consumers.last.at.index > 0
    assert "rebalances" not in type(consumers.calls.group)._fields


def test_memory_is_counted_for_as_many_rebalances_as_are_told_of(calls: Calls) -> None:
    """S23: what a node has room for is decided by the state alone, which knows no history."""
    calls.stable("i1")
    for _ in range(KEPT_MAX + 3):
        before, known = calls.core.state, len(calls.history)
        calls.submit(TriggerRebalance(calls.caller(), "g", "again"))
        calls.join("i1", "i1-1")
        calls.sync("i1-1", {"i1-1": b"i1-1"})
        grown = usage.difference(before, calls.core.state, TYPES).state_bytes
        assert grown == (len(calls.history) - known) * usage.REBALANCE_BYTES


def test_a_long_topic_of_an_assignment_does_not_fill_the_memory(consumers: Consumers) -> None:
    """S23: nobody checks an assignment's bytes; each of 32 moves named a topic of 60,000 signs."""
    consumers.form(a=owning(*range(LISTED_MAX), topic="t" * 60_000))
    last = consumers.last

    assert last.given == LISTED_MAX, "all are counted"
    assert last.moves, "and some are listed"
    assert weight(last) <= REBALANCE_BYTES_MAX


_TEXTS = st.text("aé\U0001f600", min_size=1) | st.sampled_from("xé\U0001f600").map(
    lambda sign: sign * 3_000
)
_NAMES = st.lists(
    st.text("abc", min_size=1, max_size=4) | st.text("d", min_size=240, max_size=249),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(
    names=_NAMES,
    topics=st.lists(_TEXTS, min_size=1, max_size=3),
    said=_TEXTS,
    crowd=st.integers(0, 70),
)
@settings(max_examples=12, deadline=None)
def test_each_rebalance_has_a_hard_bound(
    names: list[str], topics: list[str], said: str, crowd: int
) -> None:
    """S23: at any moment and with any texts; in memory as it is weighed, and as it is stored."""
    consumers = Consumers()
    names += [f"{number:0249d}" for number in range(crowd)]
    owned = {name: _owning_of(topics, place) for place, name in enumerate(names)}
    consumers.form(**owned)
    _is_bounded(consumers)
    consumers.calls.submit(TriggerRebalance(consumers.calls.caller(client_id=said), "g", said))
    consumers.calls.leave(*(LeavingMember("", name) for name in names[1:]), operator=True)
    _is_bounded(consumers)
    consumers.rejoin()
    consumers.assign(**{names[0]: b"".join(owned.values())})
    _is_bounded(consumers)


def _owning_of(topics: list[str], place: int) -> bytes:
    """Parts of a repeated field may stand one behind the other."""
    return b"".join(owning(*range(place, place + 9), topic=topic) for topic in topics)


def _is_bounded(consumers: Consumers) -> None:
    for told in consumers.calls.history:
        assert weight(told) <= REBALANCE_BYTES_MAX
        assert len(encode_state(StateItem(("g", "1"), told))) <= REBALANCE_BYTES_MAX


def test_ten_of_the_largest_rebalances_are_kept(calls: Calls) -> None:
    """S23: no names make a history tell of fewer; the one under way has its room, too."""
    calls.stable("i1")
    small = Rebalance(1, "why", "m", Position(1, 0), 5)
    rest = REBALANCE_BYTES_MAX - weight(small) - usage.LISTED_BYTES
    large = small._replace(reassigned_names=("n" * rest,))
    assert weight(large) == REBALANCE_BYTES_MAX
    history = tuple(large._replace(number=number) for number in range(1, KEPT_MAX + 1))
    calls.core.histories = calls.core.histories.set("g", history)
    calls.submit(TriggerRebalance(calls.caller(), "g", "again"))

    assert [each.number for each in calls.history] == list(range(2, KEPT_MAX + 2))
    calls.core.log.clear()  # what was put in by hand is in no log


def test_histories_take_at_most_five_times_what_the_ceiling_counts_for_them() -> None:
    """S23: docs/errors/POLICY_VIOLATION.md says how much memory a node needs beside the ceiling."""
    assert REBALANCE_BYTES_MAX <= 5 * usage.REBALANCE_BYTES


def test_a_cut_name_keeps_what_tells_it_from_others() -> None:
    """Member ids begin with the client's id, which may be long, and end with what is unique."""
    cut_names = {cut("c" * 3_000 + f"-{number:035d}") for number in range(3)}

    assert len(cut_names) == 3
    assert all(len(name) == TEXT_BYTES_MAX for name in cut_names)


def test_the_client_id_of_a_member_that_comes_with_its_rebalance_is_cut_too() -> None:
    """The bound on a rebalance holds for each of its texts, by whichever event it came."""
    calls = Calls()
    calls.join("b", client_id="c" * (TEXT_BYTES_MAX + 6))

    assert calls.history[-1].client_id == cut("c" * (TEXT_BYTES_MAX + 6))


def test_a_member_that_comes_with_its_rebalance_is_known_by_a_long_id_too(calls: Calls) -> None:
    """A member id begins with a client id of up to 255 characters, so a history cuts it."""
    client_id = "c" * 255
    calls.join(client_id=client_id)
    calls.join(member_id=calls.joined().member_id, client_id=client_id)

    assert calls.history[-1].client_id == cut(client_id)


def test_a_static_member_with_the_longest_instance_id_is_named_as_the_cause(calls: Calls) -> None:
    """Its member id is longer than what a history keeps of a text; its instance id is not."""
    instance_id = "i" * TEXT_BYTES_MAX
    calls.join(instance_id)

    assert calls.history[-1].instance_id == instance_id


@pytest.mark.parametrize("sign", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_a_reason_is_told_whole_in_every_script(calls: Calls, sign: str) -> None:
    """It is what an operator wrote for others: one letter beyond ASCII must not cost its middle."""
    reason = sign * 255
    calls.stable("a")
    calls.submit(TriggerRebalance(calls.caller(), "g", reason))

    assert calls.history[-1].reason == reason
