"""Assignors under random subscriptions: each partition exactly once, balance, order, two rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.assignors import (
    Assignor,
    ByInstanceAssignor,
    CooperativeAssignor,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    WeightedAssignor,
)
from holdfast.coordinator.assignors.base import in_member_order
from property.groups import TOPICS, counts_of_topics, groups, slots

ASSIGNORS: tuple[Assignor, ...] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    ByInstanceAssignor(),
    WeightedAssignor(),
)
COOPERATIVE: tuple[CooperativeAssignor, ...] = (
    CooperativeAssignor(),
    CooperativeAssignor(WeightedAssignor()),
)
assignors = st.sampled_from(ASSIGNORS)


@given(assignors, groups(), counts_of_topics)
def test_every_partition_of_a_subscribed_topic_goes_to_exactly_one_subscriber(
    assignor: Assignor, members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    result = assignor.assign(members, counts)
    assert result.keys() == {member.member_id for member in members}
    wanted = frozenset().union(*(member.topics for member in members))
    expected = {(t, n) for t, count in counts.items() if t in wanted for n in range(count)}
    given_out = Counter(slot for m in members for slot in slots(result, m.member_id))
    assert given_out == Counter(expected)
    for member in members:
        assert result[member.member_id].keys() <= member.topics
        assert all(numbers == sorted(numbers) for numbers in result[member.member_id].values())


@given(assignors, groups(), counts_of_topics)
def test_the_order_of_the_members_in_the_input_plays_no_role(
    assignor: Assignor, members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    assert assignor.assign(members, counts) == assignor.assign(members[::-1], counts)


@given(
    st.sampled_from([a for a in ASSIGNORS if a.name != "range"]),
    groups(equal=True),
    counts_of_topics,
)
def test_equal_subscriptions_are_balanced_within_one(
    assignor: Assignor, members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    loads = [len(slots(assignor.assign(members, counts), m.member_id)) for m in members]
    assert max(loads, default=0) - min(loads, default=0) <= 1


@given(groups(weights=True), counts_of_topics)
def test_weighted_leaves_no_partition_that_another_could_carry_more_easily(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """Balance within one by weight: load(a) / weight(a) <= (load(b) + 1) / weight(b).

    For every pair in which b wants a topic of which a holds a partition. The products are exact.
    """
    result = WeightedAssignor().assign(members, counts)
    load = {m.member_id: len(slots(result, m.member_id)) for m in members}
    for giver, taker in permutations(members, 2):
        if any(topic in taker.topics for topic, _ in slots(result, giver.member_id)):
            most = (load[taker.member_id] + 1) * giver.weight
            assert load[giver.member_id] * taker.weight <= most


@given(groups(equal=True, weights=True), counts_of_topics)
def test_weighted_gives_at_least_the_whole_part_of_each_share(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """N partitions, a weight of w among W: at least the whole part of N x w / W."""
    result = WeightedAssignor().assign(members, counts)
    total = sum(len(slots(result, m.member_id)) for m in members)
    whole = sum(m.weight for m in members)
    for member in members:
        assert len(slots(result, member.member_id)) >= total * member.weight // whole


@given(groups(), counts_of_topics)
def test_weighted_with_equal_weights_is_sticky(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    assert WeightedAssignor().assign(members, counts) == StickyAssignor().assign(members, counts)


@given(groups(equal=True), st.integers(0, 20))
def test_range_is_balanced_within_one_in_each_topic(
    members: list[MemberSubscription], count: int
) -> None:
    result = RangeAssignor().assign(members, dict.fromkeys(TOPICS, count))
    for topic in TOPICS:
        loads = [len(result[m.member_id].get(topic, [])) for m in members]
        assert max(loads, default=0) - min(loads, default=0) <= 1


@given(groups(), counts_of_topics)
def test_sticky_leaves_no_pair_that_one_move_would_bring_nearer(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    result = StickyAssignor().assign(members, counts)
    for one, two in combinations(members, 2):
        for giver, taker in ((one, two), (two, one)):
            held = slots(result, giver.member_id)
            room = len(held) - len(slots(result, taker.member_id))
            assert room <= 1 or not any(topic in taker.topics for topic, _ in held)


@given(st.sampled_from(COOPERATIVE), groups(weights=True), counts_of_topics)
def test_kip429_nobody_gets_what_another_claims_and_all_else_goes_where_it_should(
    assignor: CooperativeAssignor, members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """The newest claim on a partition counts, whether or not its member may keep it."""
    target = assignor.toward.assign(members, counts)
    result = assignor.assign(members, counts)
    for member in members:
        mine = member.member_id
        for slot in slots(target, mine):
            claimants = [m for m in members if slot[1] in m.owned.get(slot[0], ())]
            newest = max((m.generation for m in claimants), default=-1)
            owner = next((m for m in in_member_order(claimants) if m.generation == newest), None)
            allowed = owner is None or owner.member_id == mine
            assert (slot in slots(result, mine)) == allowed
        assert slots(result, mine) <= slots(target, mine)


@given(st.sampled_from(COOPERATIVE), groups(weights=True), counts_of_topics)
def test_kip429_after_a_second_round_every_partition_has_its_one_owner(
    assignor: CooperativeAssignor, members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """All claim what the first round left them; then nothing is withheld, and nothing moves."""
    first = assignor.assign(members, counts)
    again = [claiming(m, first[m.member_id], 10) for m in members]
    second = assignor.assign(again, counts)
    wanted = frozenset().union(*(member.topics for member in members))
    expected = {(t, n) for t, count in counts.items() if t in wanted for n in range(count)}
    given_out = Counter(slot for m in members for slot in slots(second, m.member_id))
    kept = [slots(first, m.member_id) - slots(second, m.member_id) for m in members]
    if not any(kept):
        assert given_out == Counter(expected)
    third = assignor.assign([claiming(m, second[m.member_id], 11) for m in members], counts)
    given_out = Counter(slot for m in members for slot in slots(third, m.member_id))
    assert given_out == Counter(expected)


def claiming(
    member: MemberSubscription, owned: Mapping[str, list[int]], generation: int
) -> MemberSubscription:
    return replace(member, owned=owned, generation=generation)
