"""INV-1: the intervals in which members may act never overlap for one partition (S11, S12).

An interval begins with a grant and ends with the earliest of: the surrender, the next grant of the
same member without the partition, the moment until which its own clock lets it act. All on the one
true clock. A static swap and an operator's removal are not leases: there the replaced holder's
interval ends with the commit, and what it writes later is the token's business (INV-5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import NEVER
from holdfast.chaos.evidence.fences import NOT_LEASES, Fence, fences
from holdfast.chaos.evidence.log_view import label, seconds
from holdfast.chaos.history.happenings import Granted, Happening, Partitions, Renewed, Surrendered

INVARIANT: Final = "I1"

Holder: TypeAlias = tuple[str, str, str]
"""Process, group and member id."""


class Hold(NamedTuple):
    """One holder may act on one partition from `start_us` until before `end_us`."""

    partition: tuple[str, str, int]
    holder: Holder
    start_us: int
    end_us: int


class _Right(NamedTuple):
    """A holder's right to act, as far as it has been followed. `until_us`: 0 is not known."""

    holder: Holder
    partitions: Partitions
    since_us: int
    until_us: int

    def ends(self, at_us: int) -> int:
        """Its end if nothing but `at_us` ends it."""
        return min(at_us, self.until_us) if self.until_us else at_us

    def lapsed(self, at_us: int) -> bool:
        """Whether it had run out before `at_us`."""
        return 0 < self.until_us < at_us


def check(history: Sequence[Happening]) -> Verdict:
    """No two holders at once."""
    timelines: dict[tuple[str, str, int], list[Hold]] = defaultdict(list)
    for hold in holds(history):
        timelines[hold.partition].append(hold)
    found = [clash for timeline in timelines.values() for clash in _overlaps(timeline)]
    count = sum(map(len, timelines.values()))
    return Verdict({"intervals": count, "partitions": len(timelines)}, found)


def holds(history: Sequence[Happening]) -> Iterator[Hold]:
    """Every interval in which somebody might act, swaps and removals taken into account."""
    fenced = fences(history, NOT_LEASES)
    for right, end_us in _rights(history):
        holder = right.holder
        cut_us = min(end_us, fenced.get(holder[1:], _UNFENCED).from_us)
        if right.since_us < cut_us:
            for topic, number in right.partitions:
                yield Hold((holder[1], topic, number), holder, right.since_us, cut_us)


_UNFENCED: Final = Fence(0, NEVER, NEVER, "")


def _rights(history: Iterable[Happening]) -> Iterator[tuple[_Right, int]]:
    """Each right with its end. One process is one member of a group at a time."""
    rights: dict[tuple[str, str], _Right] = {}
    for at in history:
        if isinstance(at, Granted):
            yield from _ended(rights.get((at.who, at.group)), at.at_us)
            holder = (at.who, at.group, at.member_id)
            rights[at.who, at.group] = _Right(holder, at.partitions, at.at_us, at.until_us)
        elif isinstance(at, Renewed) and (at.who, at.group) in rights:
            right = rights[at.who, at.group]
            if right.lapsed(at.at_us):  # it was interrupted in between (S11)
                yield from _ended(right, at.at_us)
                right = right._replace(since_us=at.at_us)
            rights[at.who, at.group] = right._replace(until_us=at.until_us)
        elif isinstance(at, Surrendered):
            groups = [group for who, group in rights if who == at.who and at.group in {"", group}]
            for group in groups:
                yield from _ended(rights.pop((at.who, group)), at.at_us)
    for right in rights.values():
        yield from _ended(right, NEVER)


def _ended(right: _Right | None, at_us: int) -> Iterator[tuple[_Right, int]]:
    if right is not None:
        yield right, right.ends(at_us)


def _overlaps(timeline: list[Hold]) -> Iterator[Violation]:
    """Sweep one partition in time; whoever holds longest so far must not be met by another."""
    longest: Hold | None = None
    for hold in sorted(timeline, key=lambda each: (each.start_us, each.end_us)):
        if longest is not None and hold.start_us < longest.end_us:
            if hold.holder != longest.holder:
                yield Violation(INVARIANT, hold.start_us, _clash(longest, hold))
            longest = max(longest, hold, key=lambda each: each.end_us)
        else:
            longest = hold


def _clash(first: Hold, second: Hold) -> str:
    return (
        f"{label(second.partition)} is owned twice from {seconds(second.start_us)} to "
        f"{seconds(min(first.end_us, second.end_us))}: by {_name(first)}, which may act since "
        f"{seconds(first.start_us)}, and by {_name(second)}"
    )


def _name(hold: Hold) -> str:
    return f"{hold.holder[0]} (member {hold.holder[2]})"
