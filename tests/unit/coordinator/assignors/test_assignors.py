"""Assignors on small cases whose results are worked out by hand from Kafka's definitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.coordinator.assignors import (
    Assignment,
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

ALL: tuple[Assignor, ...] = (
    RangeAssignor(),
    RoundRobinAssignor(),
    StickyAssignor(),
    ByInstanceAssignor(),
    WeightedAssignor(),
    CooperativeAssignor(),
)


def dynamic(member_id: str, *topics: str, **owned: list[int]) -> MemberSubscription:
    return MemberSubscription(member_id=member_id, topics=frozenset(topics), owned=owned)


def static(member_id: str, instance_id: str, *topics: str) -> MemberSubscription:
    return MemberSubscription(
        member_id=member_id, instance_id=instance_id, topics=frozenset(topics)
    )


def test_kip345_static_members_come_first_by_instance_id_then_dynamic_ones_by_member_id() -> None:
    members = [dynamic("a"), static("z", "i-1"), dynamic("B"), static("y", "i-2")]
    assert [m.member_id for m in in_member_order(members)] == ["z", "y", "B", "a"]


def test_order_is_java_order_of_utf16_units() -> None:
    """U+FFFD is above the surrogates that stand for U+1F600, so Java puts it last."""
    members = [dynamic("\ufffd"), dynamic("\U0001f600")]
    assert [m.member_id for m in in_member_order(members)] == ["\U0001f600", "\ufffd"]


def test_range_gives_runs_and_the_remainder_to_the_first() -> None:
    members = [dynamic("c", "t"), dynamic("a", "t"), dynamic("b", "t")]
    assert RangeAssignor().assign(members, {"t": 8}) == {
        "a": {"t": [0, 1, 2]},
        "b": {"t": [3, 4, 5]},
        "c": {"t": [6, 7]},
    }


def test_range_goes_topic_by_topic_among_the_subscribers_of_each() -> None:
    members = [dynamic("a", "t"), dynamic("b", "t", "u"), dynamic("c", "u")]
    assert RangeAssignor().assign(members, {"t": 3, "u": 3, "unwanted": 9}) == {
        "a": {"t": [0, 1]},
        "b": {"t": [2], "u": [0, 1]},
        "c": {"u": [2]},
    }


def test_range_leaves_members_over_that_find_no_partition() -> None:
    members = [dynamic("a", "t"), dynamic("b", "t"), dynamic("c", "t")]
    assert RangeAssignor().assign(members, {"t": 2}) == {"a": {"t": [0]}, "b": {"t": [1]}, "c": {}}


def test_range_keeps_the_place_of_a_static_member_that_restarted() -> None:
    before = [static("m-9", "i-1", "t"), static("m-5", "i-2", "t")]
    after = [static("m-7", "i-1", "t"), static("m-5", "i-2", "t")]
    assert RangeAssignor().assign(before, {"t": 3})["m-9"] == {"t": [0, 1]}
    assert RangeAssignor().assign(after, {"t": 3})["m-7"] == {"t": [0, 1]}


def test_round_robin_deals_topics_in_turn() -> None:
    members = [dynamic("a", "t", "u"), dynamic("b", "t", "u")]
    assert RoundRobinAssignor().assign(members, {"u": 3, "t": 3}) == {
        "a": {"t": [0, 2], "u": [1]},
        "b": {"t": [1], "u": [0, 2]},
    }


def test_round_robin_passes_over_who_does_not_subscribe() -> None:
    """Kafka's own example: t0 has 1, t1 2, t2 3 partitions; C0 wants t0, C1 t0 t1, C2 all."""
    members = [dynamic("C0", "t0"), dynamic("C1", "t0", "t1"), dynamic("C2", "t0", "t1", "t2")]
    assert RoundRobinAssignor().assign(members, {"t0": 1, "t1": 2, "t2": 3}) == {
        "C0": {"t0": [0]},
        "C1": {"t1": [0]},
        "C2": {"t1": [1], "t2": [0, 1, 2]},
    }


def test_sticky_moves_one_partition_to_a_newcomer_and_nothing_else() -> None:
    members = [dynamic("a", "t", t=[0, 1]), dynamic("b", "t", t=[2, 3]), dynamic("c", "t")]
    result = StickyAssignor().assign(members, {"t": 4})
    assert len(result["c"]["t"]) == 1
    assert set(result["a"]["t"]) <= {0, 1}
    assert set(result["b"]["t"]) <= {2, 3}


def test_sticky_lets_those_with_the_remainder_keep_it() -> None:
    members = [dynamic("a", "t", t=[0]), dynamic("b", "t", t=[1, 2])]
    assert StickyAssignor().assign(members, {"t": 3}) == {"a": {"t": [0]}, "b": {"t": [1, 2]}}


def test_sticky_believes_the_newer_of_two_claims_whatever_the_order() -> None:
    old = MemberSubscription(
        member_id="a", topics=frozenset({"t"}), owned={"t": [0, 1]}, generation=3
    )
    new = MemberSubscription(member_id="b", topics=frozenset({"t"}), owned={"t": [0]}, generation=4)
    expected = {"a": {"t": [1]}, "b": {"t": [0]}}
    assert StickyAssignor().assign([old, new], {"t": 2}) == expected
    assert StickyAssignor().assign([new, old], {"t": 2}) == expected


def test_sticky_drops_claims_on_what_is_gone_or_no_longer_wanted() -> None:
    members = [dynamic("a", "t", t=[0, 7], u=[0]), dynamic("b", "u")]
    assert StickyAssignor().assign(members, {"t": 1, "u": 1}) == {
        "a": {"t": [0]},
        "b": {"u": [0]},
    }


def test_sticky_evens_out_along_a_chain_of_mixed_subscriptions() -> None:
    """A can give only to b, b only to c: balance needs both moves at once."""
    members = [
        dynamic("a", "t", t=[0, 1, 2]),
        dynamic("b", "t", "u", u=[0, 1]),
        dynamic("c", "u"),
    ]
    loads = StickyAssignor().assign(members, {"t": 3, "u": 2})
    assert sorted(sum(map(len, topics.values())) for topics in loads.values()) == [1, 2, 2]


def test_weighted_shares_in_proportion() -> None:
    """12 partitions over weights 1, 2 and 3; then a fourth member of weight 6 takes half."""
    weights = {"a": 1, "b": 2, "c": 3}
    members = [
        MemberSubscription(member_id=name, topics=frozenset({"t"}), weight=weight)
        for name, weight in weights.items()
    ]
    result = WeightedAssignor().assign(members, {"t": 12})
    assert {name: len(topics["t"]) for name, topics in result.items()} == {"a": 2, "b": 4, "c": 6}
    owning = [replace(member, owned=result[member.member_id]) for member in members]
    large = MemberSubscription(member_id="d", topics=frozenset({"t"}), weight=6)
    after = WeightedAssignor().assign([*owning, large], {"t": 12})
    loads = {name: len(topics["t"]) for name, topics in after.items()}
    assert loads == {"a": 1, "b": 2, "c": 3, "d": 6}
    assert all(set(after[name]["t"]) <= set(result[name]["t"]) for name in weights)


def test_weighted_gives_what_cannot_be_divided_where_it_weighs_least() -> None:
    """4 partitions, weights 1 and 2: burdens of 1, 2 against 1/2, 1, 3/2; a tie keeps the order."""
    light = MemberSubscription(member_id="a", topics=frozenset({"t"}), weight=1)
    heavy = MemberSubscription(member_id="b", topics=frozenset({"t"}), weight=2)
    result = WeightedAssignor().assign([light, heavy], {"t": 4})
    assert {name: len(topics["t"]) for name, topics in result.items()} == {"a": 1, "b": 3}


def test_kip429_cooperative_withholds_what_moves_until_its_owner_has_let_go() -> None:
    assert CooperativeAssignor().name == "cooperative-sticky"  # Kafka's name of it
    owner, newcomer = dynamic("a", "t", t=[0, 1]), dynamic("b", "t")
    first = CooperativeAssignor().assign([owner, newcomer], {"t": 2})
    assert first == {"a": {"t": [0]}, "b": {}}
    after = dynamic("a", "t", t=[0])
    assert CooperativeAssignor().assign([after, newcomer], {"t": 2}) == {
        "a": {"t": [0]},
        "b": {"t": [1]},
    }


def test_kip429_what_is_free_is_given_out_at_once() -> None:
    members = [dynamic("a", "t", t=[0]), dynamic("b", "t")]
    result = CooperativeAssignor().assign(members, {"t": 4})
    assert sum(len(topics.get("t", [])) for topics in result.values()) == 4


def test_by_instance_hangs_on_the_instance_ids_alone() -> None:
    first = [static(f"m-{n}", f"i-{n}", "t") for n in range(5)]
    again = [static(f"new-{9 - n}", f"i-{n}", "t") for n in reversed(range(5))]
    assigned = ByInstanceAssignor().assign(first, {"t": 40})
    reassigned = ByInstanceAssignor().assign(again, {"t": 40})
    for n in range(5):
        assert assigned[f"m-{n}"] == reassigned[f"new-{9 - n}"]


def test_by_instance_moves_little_when_an_instance_goes() -> None:
    members = [static(f"m-{n}", f"i-{n}", "t") for n in range(10)]
    before = owners(ByInstanceAssignor().assign(members, {"t": 1_000}))
    after = owners(ByInstanceAssignor().assign(members[:-1], {"t": 1_000}))
    moved = sum(before[number] != after[number] for number in range(1_000))
    assert 100 <= moved <= 300  # a hundred must; modulo or range would move nearly all


def test_by_instance_is_balanced_within_one_whatever_the_remainder() -> None:
    for members in range(1, 12):
        group = [static(f"m-{n}", f"i-{n}", "t") for n in range(members)]
        for count in range(40):
            result = ByInstanceAssignor().assign(group, {"t": count})
            loads = [len(topics.get("t", [])) for topics in result.values()]
            assert max(loads) - min(loads) <= 1


@pytest.mark.parametrize("assignor", [StickyAssignor(), WeightedAssignor(), ByInstanceAssignor()])
def test_a_thousand_members_of_mixed_subscriptions(assignor: Assignor) -> None:
    """Size, not speed: a search over all members for each of 10,000 partitions would not end."""
    members = [
        dynamic(f"m-{n}", *(f"t-{(n * 7 + k * 13) % 100}" for k in range(20))) for n in range(1_000)
    ]
    result = assignor.assign(members, {f"t-{n}": 100 for n in range(100)})
    assert sum(len(ns) for topics in result.values() for ns in topics.values()) == 10_000


def owners(assignment: Assignment) -> dict[int, str]:
    return {number: member for member, topics in assignment.items() for number in topics["t"]}


@pytest.mark.parametrize("assignor", ALL, ids=lambda assignor: assignor.name)
def test_no_member_no_topic_no_partition(assignor: Assignor) -> None:
    assert assignor.assign([], {"t": 3}) == {}
    assert assignor.assign([dynamic("a")], {"t": 3}) == {"a": {}}
    assert assignor.assign([dynamic("a", "t")], {}) == {"a": {}}
    assert assignor.assign([dynamic("a", "t")], {"t": 0}) == {"a": {}}


@pytest.mark.parametrize("assignor", ALL, ids=lambda assignor: assignor.name)
def test_a_thousand_members_and_ten_thousand_partitions(assignor: Assignor) -> None:
    """Size, not speed: quadratic work here would take minutes, not the fraction of a second."""
    members = [static(f"m-{n}", f"i-{n}", "t", "u") for n in range(1_000)]
    result = assignor.assign(members, {"t": 5_000, "u": 5_000})
    assert {sum(map(len, topics.values())) for topics in result.values()} == {10}
