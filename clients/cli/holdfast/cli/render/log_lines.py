"""Format an event as a line: for people, or as JSON with the contract's field names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import Message

from holdfast.cli.render.plain import plain
from holdfast.coordinator.model.text import readable, readable_json
from holdfast.v1.extras_pb2 import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.v1.events_pb2 import EventRecord

NAMES_MAX: Final = 4
"""Entries of a list that are shown; of a longer list, only their number is."""


def as_line(record: EventRecord, *, as_json: bool) -> str:
    """Format a record as one line, without a line break."""
    if as_json:
        return readable_json(plain(record))
    place = _told(record.position)
    wall = datetime.fromtimestamp(record.wall_time_ms / 1000, UTC)
    time = wall.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name, facts = _event(record)
    told = " ".join(facts)
    by = f"[{record.event.rule} {record.event.command}]"
    line = f"{place:<10} {time} {record.group_id or '-'} {name} {told} {by}"
    return readable(line.replace("  [", " ["))


def _event(record: EventRecord) -> tuple[str, Iterator[str]]:
    body = record.event.WhichOneof("body")
    if body is None:
        return "(an event that this version does not know)", iter(())
    event = getattr(record.event, body)
    return event.DESCRIPTOR.name, _facts(event)


def _facts(event: Message) -> Iterator[str]:
    for field, value in event.ListFields():
        yield f"{field.name}={_told(value)}"


def _told(value: Any) -> str:  # noqa: ANN401 - whatever a field holds
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Position):
        return f"{value.index}.{value.ordinal}"
    if isinstance(value, Message):
        return ",".join(_facts(value))
    if len(value) <= NAMES_MAX and all(isinstance(one, str) for one in value):
        return ",".join(value)
    return f"({len(value)})"
