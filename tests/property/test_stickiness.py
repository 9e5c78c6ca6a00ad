"""How much the sticky assignors keep in place: against Kafka's sticky, and against all there is.

What is counted, always: partitions that stay with the member whose claim on them counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise, permutations, product

from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.assignors import MemberSubscription, StickyAssignor, WeightedAssignor
from property.groups import TOPICS, by_topic, counts_of_topics, groups, slots, valid_claims
from property.kafka_sticky import kafka_sticky
from property.kafka_sticky_mixed import kafka_sticky_mixed


@given(groups(equal=True, weights=True), counts_of_topics)
def test_weighted_moves_as_little_as_its_balance_allows(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """Against every way of sharing that is balanced by weight, found by trying all."""
    result = WeightedAssignor().assign(members[:4], counts)
    claims = valid_claims(members[:4], counts)
    kept = sum(len(claims[m.member_id] & slots(result, m.member_id)) for m in members[:4])
    total = sum(len(slots(result, m.member_id)) for m in members[:4])
    weights = [m.weight for m in members[:4]]
    owned = [len(claims[m.member_id]) for m in members[:4]]
    balanced = [loads for loads in ways(total, len(owned)) if is_balanced(loads, weights)]
    best = max((sum(map(min, loads, owned)) for loads in balanced), default=0)
    assert kept == best


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


@given(groups(equal=True), counts_of_topics)
def test_sticky_keeps_no_less_than_kafkas_sticky_on_the_same_input(
    members: list[MemberSubscription], counts: dict[str, int]
) -> None:
    """What is counted: partitions that stay with the member whose claim on them counts.

    Compared are the two results for one and the same input, of equal subscriptions (Kafka's
    constrained case). Both are balanced within one.
    """
    ours, kafkas = StickyAssignor().assign(members, counts), kafka_sticky(members, counts)
    claims = valid_claims(members, counts)
    kept = sum(len(claims[m.member_id] & slots(ours, m.member_id)) for m in members)
    kept_by_kafka = sum(len(claims[m.member_id] & kafkas[m.member_id]) for m in members)
    assert kept >= kept_by_kafka
    loads = [len(kafkas[m.member_id]) for m in members]
    assert max(loads, default=0) - min(loads, default=0) <= 1  # else the model is no judge


CHANGES = st.lists(
    st.tuples(st.sampled_from(["joins", "leaves", "grows"]), st.integers(0, 100)), max_size=12
)


@given(st.integers(1, 6), st.integers(0, 12), CHANGES)
def test_over_a_sequence_of_changes_sticky_keeps_no_less_than_kafkas_at_each_step(
    count: int, partitions: int, changes: list[tuple[str, int]]
) -> None:
    """Members come and go and a topic grows; each step starts from what Kafka's has assigned.

    And once more from what ours has assigned: the same input for both at every step.
    """
    for follow_ours in (False, True):
        members = [subscriber(f"m-{n}", 0, set()) for n in range(count)]
        numbers = partitions
        for step, (change, chosen) in enumerate(changes, start=1):
            if change == "joins":
                members.append(subscriber(f"new-{step}", 0, set()))
            elif change == "leaves" and len(members) > 1:
                members.pop(chosen % len(members))
            elif change == "grows":
                numbers += chosen % 5
            ours = StickyAssignor().assign(members, {"t": numbers})
            kafkas = kafka_sticky(members, {"t": numbers})
            had = {m.member_id: {("t", n) for n in m.owned.get("t", ())} for m in members}
            kept = sum(len(had[m] & slots(ours, m)) for m in had)
            assert kept >= sum(len(had[m] & kafkas[m]) for m in had)
            members = [
                subscriber(m, step, slots(ours, m) if follow_ours else kafkas[m]) for m in had
            ]


MIXED_CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["joins", "leaves", "grows", "wants others"]),
        st.integers(0, 100),
        st.frozensets(st.sampled_from(TOPICS), min_size=1),
    ),
    max_size=6,
)


@given(
    st.lists(st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=2, max_size=6),
    st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 8), min_size=1),
    MIXED_CHANGES,
    st.booleans(),
)
def test_over_a_sequence_with_mixed_subscriptions_sticky_is_never_worse_than_kafkas(
    wants: list[frozenset[str]],
    counts: dict[str, int],
    changes: list[tuple[str, int, frozenset[str]]],
    follow_ours: bool,  # noqa: FBT001 - a table of cases
) -> None:
    """At each step, for the same input: better balanced, or as well balanced and keeping no less.

    Balance is measured by the sum of squared loads. Kafka's result may be less balanced, and then
    keep more: the two cannot be compared by what they keep.
    """
    members = [MemberSubscription(member_id=f"m-{n}", topics=t) for n, t in enumerate(wants)]
    for step, (change, chosen, topics) in enumerate(changes, start=1):
        place = chosen % len(members)
        if change == "joins":
            members.append(MemberSubscription(member_id=f"new-{step}", topics=topics))
        elif change == "leaves" and len(members) > 2:
            members.pop(place)
        elif change == "wants others":
            members[place] = replace(members[place], topics=topics)
        elif change == "grows":
            counts = {topic: count + (topic in topics) for topic, count in counts.items()}
        given_out = StickyAssignor().assign(members, counts)
        ours = {m.member_id: slots(given_out, m.member_id) for m in members}
        kafkas = kafka_sticky_mixed(members, counts)
        had = valid_claims(members, counts)
        squares, kafkas_squares = (
            sum(len(held) ** 2 for held in result.values()) for result in (ours, kafkas)
        )
        assert squares <= kafkas_squares
        if squares == kafkas_squares:
            kept, kafkas_kept = (sum(len(had[m] & r[m]) for m in had) for r in (ours, kafkas))
            assert kept >= kafkas_kept
        followed = ours if follow_ours else kafkas
        members = [
            replace(m, owned=by_topic(followed[m.member_id]), generation=step) for m in members
        ]


@given(
    st.lists(st.frozensets(st.sampled_from("tu"), min_size=1), min_size=1, max_size=4),
    st.integers(0, 3),
    st.integers(0, 3),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
)
def test_with_mixed_subscriptions_the_most_is_kept_that_any_balanced_result_can_keep(
    wants: list[frozenset[str]], t: int, u: int, owners: list[int], weights: list[int]
) -> None:
    """Against every way of giving up to six partitions to four members, by weight.

    The most balanced results are those with the least sum of the burdens at which each partition
    was taken on: load x (load + 1) / weight over all members, here times six to be whole.
    """
    every = [("t", n) for n in range(t)] + [("u", n) for n in range(u)]
    owned: list[set[tuple[str, int]]] = [set() for _ in wants]
    for slot, owner in zip(every, owners, strict=False):
        if owner < len(wants):
            owned[owner].add(slot)
    members = [
        MemberSubscription(
            member_id=f"m-{n}", topics=topics, owned=by_topic(owned[n]), weight=weights[n]
        )
        for n, topics in enumerate(wants)
    ]
    given_out = WeightedAssignor().assign(members, {"t": t, "u": u})
    ours = tuple(
        next(n for n, m in enumerate(members) if slot in slots(given_out, m.member_id))
        for slot in every
        if any(slot[0] in m.topics for m in members)
    )
    wanted = [slot for slot in every if any(slot[0] in m.topics for m in members)]

    def rank(way: tuple[int, ...]) -> tuple[int, int]:
        loads = Counter(way)
        burden = sum(load * (load + 1) * 6 // members[n].weight for n, load in loads.items())
        return burden, -sum(slot in owned[n] for slot, n in zip(wanted, way, strict=True))

    choices = [[n for n, m in enumerate(members) if slot[0] in m.topics] for slot in wanted]
    assert rank(ours) == min(map(rank, product(*choices)))


def subscriber(member_id: str, generation: int, owned: set[tuple[str, int]]) -> MemberSubscription:
    claimed = {"t": sorted(n for _, n in owned)}
    return MemberSubscription(
        member_id=member_id, topics=frozenset({"t"}), owned=claimed, generation=generation
    )


def ways(total: int, members: int) -> Iterator[list[int]]:
    """Every way of sharing so many partitions out among so many members."""
    for bars in combinations(range(total + members - 1), members - 1) if members else ():
        edges = [-1, *bars, total + members - 1]
        yield [after - before - 1 for before, after in pairwise(edges)]


def is_balanced(loads: list[int], weights: list[int]) -> bool:
    pairs = permutations(range(len(loads)), 2)
    return all(loads[a] * weights[b] <= (loads[b] + 1) * weights[a] for a, b in pairs)


def best_kept(owned: list[int], total: int) -> int:
    """The most that any balanced result keeps, by trying who gets the larger shares."""
    if not owned:
        return 0
    quota, extra = divmod(total, len(owned))
    return max(
        sum(min(have, quota + (place in larger)) for place, have in enumerate(owned))
        for larger in combinations(range(len(owned)), extra)
    )
