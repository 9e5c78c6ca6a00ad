"""What the nodes have sealed, as their directories show it, and how that differs (S22).

Every node seals by itself, up to the boundaries on the log: they must have the same segments with
the same records. Reads manifests; knows no fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.storage.segments.segments import BlockDigest, read_manifest, segments_in

if TYPE_CHECKING:
    from holdfast.v1.events_pb2 import EventRecord

NOWHERE: Final = Position(0, 0)
_CALL: Final = "SealLog"


class Sealed(NamedTuple):
    """The content of a segment, which depends on the log alone."""

    first: Position
    last: Position
    records: int
    blocks: tuple[BlockDigest, ...]

    def __str__(self) -> str:
        """Format where it begins and ends, for people."""
        first, last = self.first, self.last
        return f"{first.index}.{first.ordinal} to {last.index}.{last.ordinal}"


def sealed_in(folder: Path) -> list[Sealed]:
    """Read what a node has sealed, in the order of the log. Raises OSError, ValueError."""
    manifests = map(read_manifest, segments_in(folder))
    return [
        Sealed(Position(*each.first), Position(*each.last), each.count, each.blocks)
        for each in manifests
    ]


def last_boundary(records: Iterable[EventRecord]) -> Position:
    """Return the last boundary that a log tells; 0.0: it tells none."""
    told = NOWHERE
    for record in records:
        if record.event.WhichOneof("body") == "segment_sealed":
            last = record.event.segment_sealed.last
            told = Position(last.index, last.ordinal)
    return told


def asked_for(records: Iterable[EventRecord]) -> int:
    """Count the boundaries of a log that a call of an operator has set, and not the leader."""
    return sum(
        record.event.WhichOneof("body") == "segment_sealed" and record.event.command == _CALL
        for record in records
    )


def through(own: Iterable[Sealed], boundary: Position) -> list[Sealed]:
    """Return a node's segments that begin up to a boundary: others may have no later one yet."""
    return [segment for segment in own if segment.first <= boundary]


def late(nodes: Mapping[str, Sequence[Sealed]], boundary: Position) -> list[str]:
    """Name the nodes that have not sealed up to a boundary."""
    return [name for name, own in nodes.items() if _end(own) < boundary]


def _end(own: Sequence[Sealed]) -> Position:
    return own[-1].last if own else NOWHERE


def differences(nodes: Mapping[str, Sequence[Sealed]]) -> list[str]:
    """Say how each node's segments differ from the first one's: the first difference of each."""
    (reference, own), *others = nodes.items()
    found = []
    for name, theirs in others:
        pairs = zip_longest(own, theirs)
        unlike = next(((mine, other) for mine, other in pairs if mine != other), None)
        if unlike is not None:
            found.append(_told(reference, unlike[0], name, unlike[1]))
    return found


def _told(name: str, mine: Sealed | None, other_name: str, other: Sealed | None) -> str:
    if mine and other and mine[:2] == other[:2]:
        return f"{name} and {other_name} have different records in the segment {mine}"
    return (
        f"{name} and {other_name} have sealed differently: {mine or 'nothing'} on {name}, "
        f"{other or 'nothing'} on {other_name}"
    )
