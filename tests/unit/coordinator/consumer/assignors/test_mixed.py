"""The uniform assignor for different subscriptions: Kafka's rule (K-P14), worked out by hand.

Members are walked as in a Java hash map: m-a, m-c, m-b, m-e, m-d.
"""

from __future__ import annotations

from unit.coordinator.consumer.assignors.written import assign


def test_p14_the_topic_with_most_partitions_for_a_subscriber_is_given_out_first() -> None:
    """Topic u has 3 for its only subscriber, t has 1 for each: m-a has 3 when t's turn comes."""
    result = assign("uniform", ["m-a: t u", "m-b: t"], {"t": 2, "u": 3})
    assert result == {"m-a": "u-0 u-1 u-2", "m-b": "t-0 t-1"}


def test_p14_of_equally_tight_topics_the_one_with_fewer_subscribers_is_first() -> None:
    """Both have 2 for each. u is first, so m-b takes t until it has 2 too, then they take turns."""
    result = assign("uniform", ["m-a: t u", "m-b: t"], {"t": 4, "u": 2})
    assert result == {"m-a": "t-3 u-0 u-1", "m-b": "t-0 t-1 t-2"}


def test_p14_the_most_loaded_hand_their_last_partitions_on_to_the_least_loaded() -> None:
    """The new topic u brings m-a to 6; three of its t go to m-b, then both have 3."""
    result = assign("uniform", ["m-a: t u", "m-b: t"], {"t": 4, "u": 2}, {"m-a": "t-0 t-1 t-2 t-3"})
    assert result == {"m-a": "t-0 u-0 u-1", "m-b": "t-1 t-2 t-3"}


def test_p14_levelling_goes_on_until_a_whole_round_moves_nothing() -> None:
    """Loads at first: a 4, b 0, c 1, e 4.

    u is level. In t, m-e has nothing to give, so m-a gives t-3 and t-2 to m-b (2, 2, 1, 4). Then
    m-e gives u-3 to m-a (3, 2, 1, 3), and in the next round m-a gives t-1 to m-c (2, 2, 2, 3).
    """
    members = ["m-a: t u", "m-b: t", "m-c: t", "m-e: t u"]
    current = {"m-a": "t-0 t-1 t-2 t-3", "m-c": "t-4", "m-e": "u-0 u-1 u-2 u-3"}
    assert assign("uniform", members, {"t": 5, "u": 4}, current) == {
        "m-a": "t-0 u-3",
        "m-b": "t-2 t-3",
        "m-c": "t-1 t-4",
        "m-e": "u-0 u-1 u-2",
    }


def test_p14_subscribers_of_one_topic_are_level_though_a_chain_of_them_is_not() -> None:
    """9, 10, 11: no topic can be levelled further on its own, so nothing moves."""
    current = {
        "m-a": " ".join(f"t-{n}" for n in range(9)),
        "m-b": " ".join([*(f"t-{n}" for n in range(9, 15)), *(f"u-{n}" for n in range(4))]),
        "m-c": " ".join(f"u-{n}" for n in range(4, 15)),
    }
    members = ["m-a: t", "m-b: t u", "m-c: u"]
    assert assign("uniform", members, {"t": 15, "u": 15}, current) == current


def test_p14_members_keep_what_they_still_subscribe_to_and_what_is_there() -> None:
    """m-b turns from t to u; t-3, that no longer exists, counts for nothing."""
    current = {"m-a": "t-1 t-3", "m-b": "t-0 t-2", "m-c": "u-0"}
    members = ["m-a: t", "m-b: u", "m-c: u later"]
    assert assign("uniform", members, {"t": 3, "u": 2}, current) == {
        "m-a": "t-0 t-1 t-2",
        "m-b": "u-1",
        "m-c": "u-0",
    }


def test_p14_of_two_members_with_one_partition_the_first_that_is_walked_keeps_it() -> None:
    """Two members of a converted classic group may claim the same partition."""
    current = {"m-a": "t-0", "m-b": "t-0 t-1"}
    assert assign("uniform", ["m-a: t", "m-b: t u"], {"t": 2}, current) == {
        "m-a": "t-0",
        "m-b": "t-1",
    }


def test_p14_levelling_ends_after_sixteen_rounds() -> None:
    """A surplus of one wanders along a chain of members, one link a round, and stays halfway.

    Each member shares topic t-<n> with the next one, which holds it, and has a topic of its own
    that gives it one partition more than the one before has; the last one has two more. Topics are
    levelled by name, from the far end, so a round carries the surplus over one link: the first one
    over t-38, the sixteenth over t-23.
    """
    members, counts, current = ["m-00: own-00 t-00"], {"own-00": 10}, {"m-00": _own(0, 10)}
    for n in range(1, 40):
        own = 8 + n + (n == 39)
        members.append(f"m-{n:02}: own-{n:02} t-{n - 1:02}" + f" t-{n:02}" * (n < 39))
        counts |= {f"own-{n:02}": own, f"t-{n - 1:02}": 2}
        current[f"m-{n:02}"] = f"{_own(n, own)} t-{n - 1:02}-0 t-{n - 1:02}-1"
    result = assign("uniform", members, counts, current)
    carried = [n for n in range(39) if f"t-{n:02}-1" in result[f"m-{n:02}"].split()]
    assert carried == list(range(23, 39))


def _own(member: int, partitions: int) -> str:
    return " ".join(f"own-{member:02}-{n}" for n in range(partitions))
