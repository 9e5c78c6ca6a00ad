"""The server assignors on random groups: what K-P12 to K-P14 promise, whatever the code does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec, Target
from property.server_groups import (
    TOPICS,
    assignable,
    counts_of_topics,
    server_groups,
    slots,
    with_target,
)

uniform, both = ASSIGNORS["uniform"], pytest.mark.parametrize("assignor", ["uniform", "range"])


@both
@given(group=server_groups(), counts=counts_of_topics)
def test_each_partition_has_one_owner_who_subscribes(
    assignor: str, group: GroupSpec, counts: dict[str, int]
) -> None:
    """S1, K-P12, K-P13, K-P14."""
    target = ASSIGNORS[assignor](group, counts)
    given_out = [slot for topics in target.values() for slot in slots(topics)]
    assert target.keys() == group.members.keys()
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == assignable(group, counts)
    for member_id, topics in target.items():
        assert {topic for topic, _ in topics} <= group.members[member_id].topics


@both
@given(group=server_groups(), counts=counts_of_topics)
def test_a_target_has_each_topic_once_sorted_and_never_empty(
    assignor: str, group: GroupSpec, counts: dict[str, int]
) -> None:
    """K-P12 to K-P14: equal targets are equal values, and make equal records."""
    for topics in ASSIGNORS[assignor](group, counts).values():
        names = [topic for topic, _ in topics]
        assert names == sorted(set(names))
        for _, partitions in topics:
            assert partitions
            assert list(partitions) == sorted(partitions)


@both
@given(group=server_groups(), counts=counts_of_topics, seed=st.integers())
def test_the_order_of_the_mappings_does_not_matter(
    assignor: str, group: GroupSpec, counts: dict[str, int], seed: int
) -> None:
    """K-P12 to K-P14: replicas that learned of the members in another way compute the same."""
    members, topics = list(group.members.items()), list(counts.items())
    random.Random(seed).shuffle(members)
    random.Random(seed).shuffle(topics)
    shuffled = ASSIGNORS[assignor](group._replace(members=dict(members)), dict(topics))
    result = ASSIGNORS[assignor](group, counts)
    assert shuffled == result
    assert list(shuffled) == list(result)


@both
@given(group=server_groups(), counts=counts_of_topics)
def test_a_target_that_was_just_computed_stays_as_it_is(
    assignor: str, group: GroupSpec, counts: dict[str, int]
) -> None:
    """K-P12 to K-P14."""
    target = ASSIGNORS[assignor](group, counts)
    assert ASSIGNORS[assignor](with_target(group, target), counts) == target


@given(server_groups(homogeneous=True, fewest=1), counts_of_topics)
def test_p13_everybody_has_the_average_rounded_down_or_up(
    group: GroupSpec, counts: dict[str, int]
) -> None:
    loads = [len(slots(topics)) for topics in uniform(group, counts).values()]
    average = len(assignable(group, counts)) // len(loads)
    assert set(loads) <= {average, average + 1}


@given(server_groups(homogeneous=True, fewest=1), counts_of_topics)
def test_p13_keeps_all_but_the_extras_that_some_balance_could_keep(
    group: GroupSpec, counts: dict[str, int]
) -> None:
    """Who gets one more is decided by the order alone; each such choice costs one move at most."""
    everything = assignable(group, counts)
    target = uniform(group, counts)
    rest = len(everything) % len(group.members)
    assert _moved(group, target, everything) <= _fewest_moves(group, everything) + rest


def _moved(group: GroupSpec, target: Target, everything: frozenset[tuple[str, int]]) -> int:
    """How many partitions are not with the member that had them in its target before."""
    kept = sum(len(slots(spec.current) & slots(target[m])) for m, spec in group.members.items())
    return len(everything) - kept


def _fewest_moves(group: GroupSpec, everything: frozenset[tuple[str, int]]) -> int:
    """The least that any result within one moves: a member keeps its share at most."""
    average, rest = divmod(len(everything), len(group.members))
    held = [len(slots(spec.current) & everything) for spec in group.members.values()]
    keep_one_more = min(rest, sum(count > average for count in held))
    return len(everything) - sum(min(count, average) for count in held) - keep_one_more


PLAIN = st.sampled_from(range(30))


@given(st.sets(PLAIN, min_size=1, max_size=29), PLAIN, counts_of_topics)
def test_p13_who_joins_takes_its_share_and_nobody_else_gains(
    ids: set[int], newcomer: int, counts: dict[str, int]
) -> None:
    """One more than the least at most: if the order puts the newcomer among those with one more."""
    ids.discard(newcomer)
    before = uniform(_plain(ids), counts)
    group = with_target(_plain(ids | {newcomer}), before)
    target = uniform(group, counts)
    everything = assignable(group, counts)
    assert _moved(group, target, everything) <= _fewest_moves(group, everything) + 1
    for member_id, topics in before.items():
        assert slots(target[member_id]) <= slots(topics)


@given(st.sets(PLAIN, min_size=2, max_size=30), st.data(), counts_of_topics)
def test_p13_when_one_leaves_only_its_own_partitions_move(
    ids: set[int], data: st.DataObject, counts: dict[str, int]
) -> None:
    before = uniform(_plain(ids), counts)
    leaver = data.draw(st.sampled_from(sorted(ids)))
    target = uniform(with_target(_plain(ids - {leaver}), before), counts)
    for member_id, topics in target.items():
        assert slots(before[member_id]) <= slots(topics)


def _plain(ids: set[int]) -> GroupSpec:
    member = MemberSpec(None, None, frozenset(TOPICS))
    return GroupSpec({f"consumer-{number}": member for number in sorted(ids)}, homogeneous=True)


@given(server_groups(homogeneous=False), counts_of_topics)
def test_p14_no_topic_could_be_levelled_any_further(
    group: GroupSpec, counts: dict[str, int]
) -> None:
    """Nobody could hand a partition on to a subscriber that has two or more fewer."""
    target = uniform(group, counts)
    loads = {member_id: len(slots(topics)) for member_id, topics in target.items()}
    for giver, topics in target.items():
        for topic, _ in topics:
            takers = [m for m, spec in group.members.items() if topic in spec.topics]
            assert loads[giver] - min(loads[m] for m in takers) <= 1


@given(server_groups(homogeneous=False), counts_of_topics)
def test_p14_what_moves_goes_from_a_higher_load_to_a_lower_one(
    group: GroupSpec, counts: dict[str, int]
) -> None:
    """Who loses what it could have kept ends with at most one less than the one who has it."""
    target = uniform(group, counts)
    holder = {slot: m for m, topics in target.items() for slot in slots(topics)}
    loads = {member_id: len(slots(topics)) for member_id, topics in target.items()}
    for member_id, spec in group.members.items():
        for slot in slots(spec.current) & assignable(group, counts):
            if slot[0] in spec.topics and holder[slot] != member_id:
                assert loads[member_id] + 1 >= loads[holder[slot]]


@given(server_groups(), counts_of_topics)
def test_p12_each_topic_is_cut_into_runs_of_equal_length_or_one_more_in_front(
    group: GroupSpec, counts: dict[str, int]
) -> None:
    target = ASSIGNORS["range"](group, counts)
    for topic in {topic for topic, _ in assignable(group, counts)}:
        subscribers = [m for m, spec in group.members.items() if topic in spec.topics]
        subscribers.sort(key=lambda m: _range_key(m, group.members[m]))
        runs = [[n for t, n in sorted(slots(target[m])) if t == topic] for m in subscribers]
        assert [n for run in runs for n in run] == list(range(counts[topic]))
        lengths = [len(run) for run in runs]
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[0] - lengths[-1] <= 1


@given(server_groups(), counts_of_topics)
def test_p12_depends_on_the_subscriptions_alone(group: GroupSpec, counts: dict[str, int]) -> None:
    assert ASSIGNORS["range"](with_target(group, {}), counts) == ASSIGNORS["range"](group, counts)


def _range_key(member_id: str, spec: MemberSpec) -> tuple[bool, str]:
    return (spec.instance_id is None, spec.instance_id or member_id)
