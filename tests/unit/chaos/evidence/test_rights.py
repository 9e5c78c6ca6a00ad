"""Rights are told apart by partition and token: when each begins, goes on and ends (S11 to S13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.rights import rights
from holdfast.chaos.history.happenings import Surrendered
from unit.chaos.scribe import MS, Scribe, joined, opened, replaced, started

if TYPE_CHECKING:
    from collections.abc import Iterable


def told(scribe: Scribe) -> list[tuple[str, int, int, float, float | None]]:
    """Process, number, token, from and to in milliseconds (None: open), in this order."""
    found = (
        (
            right.holder[0],
            right.partition[2],
            right.token,
            right.start_us / MS,
            None if right.end_us == NEVER else right.end_us / MS,
        )
        for right in rights(scribe.history)
    )
    return sorted(found, key=lambda each: each[:4])


def numbers(found: Iterable[tuple[str, int, int, float, float | None]]) -> list[int]:
    return [number for _, number, *_ in found]


def test_a_partition_that_is_named_again_under_its_token_goes_on() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 5})
    s.wait(10).has("w1", "a", {0: 5})
    s.wait(10).has("w1", "a", {0: 5, 1: 9})

    assert told(s) == [("w1", 0, 5, 0, None), ("w1", 1, 5, 0, 10), ("w1", 1, 9, 20, None)]


def test_another_token_is_another_right() -> None:
    """S13: somebody else may have had the partition in between."""
    s = Scribe()
    s.has("w1", "a", {0: 5})
    s.wait(10).has("w1", "a", {0: 9})

    assert told(s) == [("w1", 0, 5, 0, 10), ("w1", 0, 9, 10, None)]


def test_another_member_id_is_another_right() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5})
    s.wait(10).has("w1", "b", {0: 5})

    assert told(s) == [("w1", 0, 5, 0, 10), ("w1", 0, 5, 10, None)]


def test_s11_a_grant_after_the_end_by_the_clock_begins_anew() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 5}, until_ms=8)
    s.wait(10).has("w1", "a", {0: 5}, until_ms=5)

    assert told(s) == [("w1", 0, 5, 0, 8), ("w1", 0, 5, 10, 15), ("w1", 1, 5, 0, 8)]


def test_s11_a_renewal_moves_the_end_of_every_partition() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 9}, until_ms=8)
    s.wait(5).renew("w1", "a", for_ms=8)

    assert told(s) == [("w1", 0, 5, 0, 13), ("w1", 1, 9, 0, 13)]


def test_s11_a_renewal_after_the_end_begins_every_right_anew() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 9}, until_ms=8)
    s.wait(10).renew("w1", "a", for_ms=5)

    assert [each[3:] for each in told(s)] == [(0, 8), (10, 15), (0, 8), (10, 15)]
    assert numbers(told(s)) == [0, 0, 1, 1]


def test_a_death_ends_all() -> None:
    s = Scribe()
    s.has("w1", "a", {0: 5, 1: 9})
    s.wait(3).say(Surrendered(s.now_us, "w1", "", "", "crashed"))

    assert told(s) == [("w1", 0, 5, 0, 3), ("w1", 1, 9, 0, 3)]


def test_s12_a_swap_ends_each_right_of_the_old_holder_at_its_commit() -> None:
    s = Scribe()
    s.create()
    s.entry(opened(), joined("a.1"), started(1, "a.1"))
    s.has("w1", "a.1", {0: 2, 1: 2})
    s.wait(5).entry(replaced("a.1", "a.2"))
    s.wait(5).has("w1", "a.1", {0: 2})

    assert told(s) == [("w1", 0, 2, 0, 5), ("w1", 1, 2, 0, 5)]
