"""S13, S19: nodes speak only if their disks come from the same restore; a blank one joins any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.wire.greeting import Greeting, decode_greeting, encode_greeting

if TYPE_CHECKING:
    from collections.abc import Callable


def told(number: int, *, blank: bool = False) -> Greeting:
    """What a peer says, as it arrives."""
    said = Greeting("c", "n2", "n1", recovery_number=number, blank=blank)
    return decode_greeting(encode_greeting(said))


def waiting(adopt: Callable[[int], None]) -> Lineage:
    """A disk that waits to be rebuilt."""
    lineage = Lineage(adopt=adopt)
    lineage.holds_nothing = lambda: True
    return lineage


@pytest.mark.parametrize("number", [0, 3])
def test_disks_of_one_restore_go_together(number: int) -> None:
    assert Lineage(number).problem("n1", "n2", told(number)) == ""


def test_a_disk_from_before_the_restore_is_refused_from_both_sides() -> None:
    """Its longer log and higher term would win against the restored nodes."""
    restored = Lineage(2).problem("n1", "n2", told(1))
    earlier = Lineage(1).problem("n1", "n2", told(2))

    assert "'n2' is from before the cluster was restored" in restored
    assert "'n1' is from before the cluster was restored" in earlier
    for sentence in (restored, earlier):
        assert "number is 1, and the cluster's is 2" in sentence
        assert "--rebuild" in sentence


def test_a_node_that_tells_no_number_was_never_restored() -> None:
    """A version that knows no restore says nothing."""
    assert "from before" in Lineage(1).problem("n1", "n2", Greeting("c", "n2", "n1"))


def test_a_blank_disk_is_taken_and_becomes_one_of_the_restore() -> None:
    taken: list[int] = []
    blank = waiting(taken.append)

    assert Lineage(2).problem("n1", "n2", told(0, blank=True)) == ""
    assert blank.problem("n1", "n2", told(0)) == ""
    assert taken == []
    assert blank.problem("n1", "n2", told(2)) == ""
    assert taken == [2]
    assert (blank.number, blank.blank) == (2, False)
    assert "from before" in blank.problem("n1", "n3", told(1))


def test_a_disk_that_has_got_something_becomes_one_of_no_other_restore() -> None:
    """S13: it was rebuilt from the nodes of before, in the process that still runs.

    Its log is from before the restore, and longer; the number would make it one of those after.
    """
    taken: list[int] = []
    rebuilt = waiting(taken.append)
    assert rebuilt.problem("n1", "n2", told(0)) == ""
    rebuilt.holds_nothing = lambda: False

    assert not rebuilt.blank, "nor does it say so, or the others would take it for a blank one"
    assert "'n1' is from before the cluster was restored" in rebuilt.problem("n1", "n3", told(1))
    assert taken == []


def test_who_is_of_a_later_restore_is_told_of() -> None:
    """A node that formed alone has nobody else who could tell it (docs/adr/0043)."""
    told_of: list[str] = []
    earlier = Lineage(1)
    earlier.on_later_restore = told_of.append
    for number in (0, 1):
        earlier.problem("n1", "n2", told(number))
    earlier.problem("n1", "n2", told(0, blank=True))
    assert told_of == []

    earlier.problem("n1", "n3", told(2))
    assert told_of == ["n3"]


def test_a_number_that_cannot_be_stored_is_not_taken() -> None:
    """Else the next process of the node would be refused with the data that this one fetched."""

    def full(number: int) -> None:
        raise OSError(28, f"no room for {number}")

    blank = waiting(full)
    with pytest.raises(OSError, match="no room"):
        blank.problem("n1", "n2", told(1))
    assert (blank.number, blank.blank) == (0, True)
