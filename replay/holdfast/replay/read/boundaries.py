"""Compare where segments begin and end.

Within a node they follow on each other; all nodes have the same boundaries, which are on the log
(S22). Knows the ends of segments, no records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding, place_of
from holdfast.replay.read.node_logs import NodeLog, Segment


def check_boundaries(logs: Sequence[NodeLog]) -> Iterator[Finding]:
    """Yield segments that overlap, and those that go on where most nodes have sealed."""
    for log in logs:
        for one, two in pairwise(sorted(log.sealed, key=lambda segment: segment.ends)):
            if two.ends.first <= one.ends.last:
                text = f"it begins at {place_of(two.ends.first)}, and {one.folder.name} ends at"
                yield _said(log, two, two.ends.first, f"{text} {place_of(one.ends.last)}")
    sealed = Counter(segment.ends.last for log in logs for segment in log.sealed)
    agreed = sorted(end for end, votes in sealed.items() if votes * 2 > len(logs))
    for log in logs:
        for segment in log.sealed:
            first, last = segment.ends
            for end in agreed[bisect_left(agreed, first) : bisect_left(agreed, last)]:
                text = f"it goes on behind {place_of(end)}, where most nodes have sealed their logs"
                yield _said(log, segment, end, text)


def _said(log: NodeLog, segment: Segment, place: Position, text: str) -> Finding:
    return Finding("manifest", log.node, "", place, text, str(segment.folder))
