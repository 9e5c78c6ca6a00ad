"""When one leader served, and when it was left alone: the times in which something must happen.

What has a bound is bounded for a leader that no fault disturbs; a new one begins it in full. Knows
no group and no invariant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from holdfast.chaos.history.happenings import Began, Fault, Happening, Role

Span: TypeAlias = tuple[int, int]
"""From when until when, in microseconds."""

LAG_US: Final = {"simulation": 1_000, "cluster": 1_000_000}
"""How much later a role or record can be seen than it came about."""

_CLOCK_ERROR: Final = 0.1
"""Where the history does not say."""


def conditions(history: Sequence[Happening]) -> tuple[str, float]:
    """Return where a history comes from, and how far its clocks may be from the true rate."""
    for happening in history:
        if isinstance(happening, Began):
            return happening.source, happening.clock_error
    return "simulation", _CLOCK_ERROR


def tenures(history: Sequence[Happening], end_us: int) -> list[Span]:
    """Return the times in which one leader served; of two at once, the newer one counts."""
    found: list[Span] = []
    leader: Role | None = None
    for role in history:
        if not isinstance(role, Role):
            continue
        over = leader is not None and (
            role.node == leader.node or (role.role == "leader" and role.term > leader.term)
        )
        if leader is not None and over:
            found.append((leader.at_us, role.at_us))
            leader = None
        if role.role == "leader" and leader is None:
            leader = role
    return [*found, (leader.at_us, end_us)] if leader is not None else found


def disturbed(history: Sequence[Happening], end_us: int) -> list[Span]:
    """Return when faults were on the cluster; those of clocks and clients do not count."""
    found: list[Span] = []
    lasting: dict[tuple[str, str], int] = {}
    for fault in history:
        if (
            not isinstance(fault, Fault)
            or fault.target.startswith("client:")
            or "clock" in fault.kind
        ):
            continue
        if fault.phase == "begin":
            lasting.setdefault((fault.kind, fault.target), fault.at_us)
            found.append((fault.at_us, fault.at_us))
        else:
            found.append((lasting.pop((fault.kind, fault.target), fault.at_us), fault.at_us))
    return sorted(each for each in found if each[0] <= end_us)


def covered(span: Span, broken: Sequence[Span]) -> int:
    """Return how much of a span the disturbances cover, counting overlaps once."""
    total, reached = 0, span[0]
    for begin, end in broken:
        low, high = max(begin, reached), min(end, span[1])
        if low < high:
            total += high - low
            reached = high
    return total
