"""Tell when each node's disk will be full, and what keeps its history from being deleted.

The node judges; here is only how it is said, the same for `cluster status` and `doctor`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.v1.admin_pb2 import DescribeClusterResponse, HistoryFacts

_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_UNITS: Final = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def outlooks(answers: Sequence[DescribeClusterResponse]) -> list[str]:
    """Return a line for each node that tells it: when its disk is full, and what is deleted."""
    told = [one for one in answers if one.facts.HasField("history")]
    newest = max((one.facts.history.cut_index for one in told), default=0)
    return [f"{one.node}: {disk(one.facts.history)}; {deleted(one, newest)}" for one in told]


def disk(history: HistoryFacts) -> str:
    """Say when the disk is full."""
    if not history.measured_ms:
        return "when its disk is full is not known yet: too little history is sealed"
    grows = f"grows by {size(history.bytes_a_day)} a day, as it did in {span(history.measured_ms)}"
    if not history.HasField("full_in_ms"):
        why = ", and retention keeps it in bounds" if history.bytes_a_day else ""
        return f"its disk does not become full: it {grows}{why}"
    if history.full_in_ms == 0:
        return "its disk is full: changes are refused while it leads"
    return f"its disk is full in {span(history.full_in_ms)}: it {grows}"


def deleted(one: DescribeClusterResponse, newest: int) -> str:
    """Say whether old history is deleted, and why not. `newest`: the furthest cut on any node."""
    history = one.facts.history
    kept = size(history.segment_bytes)
    if not history.retention:
        return f"retention is off, {kept} of history are kept"
    if history.hindrance:
        return f"retention is stopped, {kept} of history are kept: {history.hindrance}"
    if history.cut_index < newest:
        return (
            f"retention waits: others have cut off up to entry {newest}, and entries up to "
            f"{one.applied_index} are applied here"
        )
    return f"retention is on, {kept} of history are kept"


def span(milliseconds: int) -> str:
    """Write a span of time with one unit, rounded down."""
    for unit, length in (("days", _DAY_MS), ("hours", _HOUR_MS)):
        if milliseconds >= 2 * length:
            return f"{milliseconds // length} {unit}"
    return f"{milliseconds // 60_000} minutes"


def size(count: int) -> str:
    """Write a number of bytes with one unit."""
    for unit, length in _UNITS:
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} bytes"
