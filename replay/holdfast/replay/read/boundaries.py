"""Compare where segments begin and end.

Within a node they follow on each other; all nodes have the same boundaries, which are on the log
(S22). Knows the ends of segments, no records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding, place_of
from holdfast.replay.read.node_logs import NodeLog, Segment


class Boundaries(NamedTuple):
    """How many nodes have a segment that begins, or ends, at a place."""

    begun: Counter[Position]
    sealed: Counter[Position]
    agreed: list[Position]
    """The ends on most nodes, in order."""

    def inside(self, segment: Segment) -> list[Position]:
        """Return the agreed ends over which a segment goes."""
        first, last = segment.ends
        return self.agreed[bisect_left(self.agreed, first) : bisect_left(self.agreed, last)]

    def has_ends_of(self, segment: Segment, log: NodeLog) -> bool:
        """Whether other nodes have both ends, too; where a log was cut off, its last one."""
        first, last = segment.ends
        begins_log = first == min(each.ends.first for each in log.sealed)
        return self.sealed[last] > 1 and (begins_log or self.begun[first] > 1)


def check_boundaries(logs: Sequence[NodeLog]) -> tuple[list[Finding], list[str]]:
    """Find segments that overlap, and those that go on where most nodes have sealed.

    Those that hold exactly what others have in several segments are no finding: earlier builds
    joined two boundaries that came at once. Notes tell how many a node has.
    """
    boundaries = _boundaries(logs)
    findings, notes = list[Finding](), list[str]()
    for log in logs:
        findings += _overlaps(log)
        beyond = [segment for segment in log.sealed if boundaries.inside(segment)]
        joined = [segment for segment in beyond if boundaries.has_ends_of(segment, log)]
        for segment in beyond:
            if segment not in joined:
                findings += _beyond(log, segment, boundaries.inside(segment))
        notes += [_told(log, len(joined))] if joined else []
    return findings, notes


def _boundaries(logs: Sequence[NodeLog]) -> Boundaries:
    begun = Counter(first for log in logs for first in {each.ends.first for each in log.sealed})
    sealed = Counter(last for log in logs for last in {each.ends.last for each in log.sealed})
    agreed = sorted(end for end, nodes in sealed.items() if nodes * 2 > len(logs))
    return Boundaries(begun, sealed, agreed)


def _overlaps(log: NodeLog) -> Iterator[Finding]:
    for one, two in pairwise(sorted(log.sealed, key=lambda segment: segment.ends)):
        if two.ends.first <= one.ends.last:
            text = f"it begins at {place_of(two.ends.first)}, and {one.folder.name} ends at"
            yield _said(log, two, two.ends.first, f"{text} {place_of(one.ends.last)}")


def _beyond(log: NodeLog, segment: Segment, ends: Sequence[Position]) -> Iterator[Finding]:
    for end in ends:
        text = f"it goes on behind {place_of(end)}, where most nodes have sealed their logs"
        yield _said(log, segment, end, text)


def _told(log: NodeLog, number: int) -> str:
    reach = "1 segment reaches" if number == 1 else f"{number} segments reach"
    return (
        f"of node {log.node}, {reach} over boundaries at which others have sealed; builds before "
        "this one could join them"
    )


def _said(log: NodeLog, segment: Segment, place: Position, text: str) -> Finding:
    return Finding("manifest", log.node, "", place, text, str(segment.folder))
