"""Which members an event takes out of their group, and how: the same for all analyses.

Plain Python over events: no Spark, no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from holdfast.coordinator.model.events import Event
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.membership import (
    EXPIRED,
    LATE,
    LEFT,
    REFUSED,
    REMOVED,
    REPLACED,
    line_of,
)

_HOW: Final[Mapping[str, str | None]] = {
    LEFT: "left",
    REMOVED: "removed",
    EXPIRED: "expired",
    REFUSED: "refused",
    LATE: "removed",
    REPLACED: None,  # the static member stays
}


class Departures(NamedTuple):
    """The members that an event takes out of their group."""

    member_ids: tuple[MemberId, ...]
    how: str
    """left, removed (by an operator, or absent when a join phase closed), expired, or refused: put
    out because the group was full (K-I10)."""


def departures(event: Event) -> Departures:
    """Return the members that an event takes out of their group; none for other events."""
    line = line_of(event)
    how = _HOW.get(line.kind)
    return Departures((), "") if how is None else Departures(line.went(event), how)
