"""Records as rows of a segment, without files; many logs may be in one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holdfast.coordinator.model.events import LevelRaised, Record
from holdfast.coordinator.model.levels import PRINCIPALS
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segments import typed_columns

ENTRIES = "grp string, kind string, key string, value string"


def columns_of(record: Record) -> dict[str, Any]:
    index, ordinal = record.position
    return {**typed_columns(record), "idx": index, "ordinal": ordinal}


def leveled(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Rows without the principals of records from before members kept these.

    Where many logs are in one table, the level of each is not told by rows of its own.
    """
    rows, level = list[dict[str, Any]](), 1
    for record in records:
        if isinstance(record.event, LevelRaised):
            level = record.event.level
        own = {} if level >= PRINCIPALS else {"principal": ""}
        rows.append({**columns_of(record), **own})
    return rows


def told(prefix: str, group: str, columns: dict[str, Any]) -> tuple[Any, ...]:
    """A row; `prefix` tells the groups of one log from those of another."""
    row = {**columns, "grp": f"{prefix} {group}" if group else "", "payload": None, "chain": None}
    return tuple(row.get(name) for name in SCHEMA.names)
