"""INV-1: the intervals in which members may act never overlap for one partition (S11, S12).

When a right begins and ends, evidence/rights.py says, partition by partition, on the one true
clock. A static swap and an operator's removal are not leases: there the replaced holder's interval
ends with the commit, and what it writes later is the token's business (INV-5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.log_view import label, seconds
from holdfast.chaos.evidence.rights import Right, rights
from holdfast.chaos.history.happenings import Happening

INVARIANT: Final = "I1"


def check(history: Sequence[Happening]) -> Verdict:
    """Find two holders at once."""
    timelines: dict[tuple[str, str, int], list[Right]] = defaultdict(list)
    for right in rights(history):
        timelines[right.partition].append(right)
    found = [clash for timeline in timelines.values() for clash in _overlaps(timeline)]
    count = sum(map(len, timelines.values()))
    return Verdict({"intervals": count, "partitions": len(timelines)}, found)


def _overlaps(timeline: list[Right]) -> Iterator[Violation]:
    """Sweep one partition in time; no right may begin before the longest one so far ends."""
    longest: Right | None = None
    for right in sorted(timeline, key=lambda each: (each.start_us, each.end_us)):
        if longest is not None and right.start_us < longest.end_us:
            if right.holder != longest.holder:
                yield Violation(INVARIANT, right.start_us, _clash(longest, right))
            longest = max(longest, right, key=lambda each: each.end_us)
        else:
            longest = right


def _clash(first: Right, second: Right) -> str:
    return (
        f"{label(second.partition)} is owned twice from {seconds(second.start_us)} to "
        f"{seconds(min(first.end_us, second.end_us))}: by {_name(first)}, which may act since "
        f"{seconds(first.start_us)}, and by {_name(second)}"
    )


def _name(right: Right) -> str:
    return f"{right.holder[0]} (member {right.holder[2]}, token {right.token})"
