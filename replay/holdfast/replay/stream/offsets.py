"""What a stream and its sources agree on: their names and options, and where a stream goes on.

Spark starts a process for each step of a plan, and all of them load this: nothing here takes time
to load.
"""

from __future__ import annotations

from typing import Any, Final

from holdfast.coordinator.model.ids import Position

SEGMENTS: Final = "holdfast_segments"
FOLDER: Final = "folder"
"""What Spark calls a stream of a node's sealed segments, and the option that says whose."""

LOG: Final = "holdfast_log"
NODES: Final = "nodes"
"""What Spark calls a stream of a running cluster's log, and the option that says whose."""

ROWS_MAX: Final = "rowsMax"
"""The option that says how many records a batch may have."""

Offset = dict[str, int]
"""The position behind which a stream goes on: also with the records of another source."""


def offset_of(place: Position) -> Offset:
    """Write a position as Spark keeps it in its checkpoint."""
    return {"index": place.index, "ordinal": place.ordinal}


def position_of(offset: Any) -> Position:  # noqa: ANN401 - as Spark read it from its checkpoint
    """Read the position of an offset."""
    return Position(offset["index"], offset["ordinal"])
