"""Assignors under random subscriptions: every partition exactly once, balance, fewest moves."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.assignors import (
    Assignment,
    Assignor,
    ByInstanceAssignor,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)

ASSIGNORS: tuple[Assignor, ...] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    ByInstanceAssignor(),
)
TOPICS = ("t", "u", "v")

counts_of_topics = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
assignors = st.sampled_from(ASSIGNORS)


@st.composite
def groups(draw: st.DrawFn, *, equal: bool = False) -> list[MemberSubscription]:
    """Members with random instance ids, subscriptions and (perhaps false) claims."""
    ids = draw(st.lists(st.integers(0, 40), unique=True, max_size=7))
    common = draw(st.frozensets(st.sampled_from(TOPICS)))
    members = []
    for number in ids:
        topics = common if equal else draw(st.frozensets(st.sampled_from(TOPICS)))
        claims = st.dictionaries(
            st.sampled_from(TOPICS), st.lists(st.integers(0, 10), unique=True, max_size=6)
        )
        member = MemberSubscription(
            member_id=f"m-{number}",
            instance_id=f"i-{number}" if draw(st.booleans()) else None,
            topics=topics,
            owned=draw(claims),
            generation=draw(st.integers(-1, 3)),
        )
        members.append(member)
    return members


def slots(assignment: Assignment, member_id: str) -> set[tuple[str, int]]:
    return {(topic, n) for topic, numbers in assignment[member_id].items() for n in numbers}


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


@given(groups(equal=True), counts_of_topics)
def test_sticky_with_equal_subscriptions_moves_as_little_as_balance_allows(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """Against a naive bound: shares differ by one, and a share can keep only what is claimed."""
    result = StickyAssignor().assign(members, counts)
    claims = valid_claims(members, counts)
    kept = sum(len(claims[m.member_id] & slots(result, m.member_id)) for m in members)
    topics = members[0].topics if members else frozenset()
    total = sum(count for topic, count in counts.items() if topic in topics)
    assert kept == best_kept([len(claims[m.member_id]) for m in members], total)


def valid_claims(
    members: list[MemberSubscription], counts: dict[str, int]
) -> dict[str, set[tuple[str, int]]]:
    """Who may claim what: the newest generation; among equals the first in member order."""

    def rank(member: MemberSubscription) -> tuple[int, bool, str]:
        return (
            -member.generation,
            member.instance_id is None,
            member.instance_id or member.member_id,
        )

    claims: dict[str, set[tuple[str, int]]] = {m.member_id: set() for m in members}
    taken: set[tuple[str, int]] = set()
    for member in sorted(members, key=rank):
        for topic in member.topics & member.owned.keys():
            fresh = {(topic, n) for n in member.owned[topic] if n < counts.get(topic, 0)} - taken
            claims[member.member_id] |= fresh
            taken |= fresh
    return claims


def best_kept(owned: list[int], total: int) -> int:
    """The most that any balanced result keeps, by trying who gets the larger shares."""
    if not owned:
        return 0
    quota, extra = divmod(total, len(owned))
    return max(
        sum(min(have, quota + (place in larger)) for place, have in enumerate(owned))
        for larger in combinations(range(len(owned)), extra)
    )
