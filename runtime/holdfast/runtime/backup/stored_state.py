"""The state of a backup: one file of records, as a snapshot's stream, and what it holds.

The stream is the one by which a follower gets a snapshot (ADR 5): each record has its checksum, the
end has a count and a SHA-256. Here it is read back into values, so that the digest of the state can
be made anew and compared (S3). Knows files and records; no LMDB, no node and no network.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.replica.image import Image, read_image
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import CodecError
from holdfast.storage.disk.records import RecordDamaged, unpack_record
from holdfast.storage.errors import InstallRefused
from holdfast.storage.segments.segments import Row
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_records import (
    COUNTS,
    DATABASE_NAMES,
    EVENTS,
    META,
    SNAPSHOT,
    StateRecord,
    unpack_meta,
)
from holdfast.storage.state.state_stream import StreamDecoder, StreamedRecord

READ_BYTES: Final = 1 << 20
_POSITION: Final = struct.Struct(">QI")


class StateFileFlawed(ValueError):
    """The file is not a state as a node has written it. The text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What a file holds."""

    meta: StateMeta
    image: Image
    digest: bytes
    """The digest that nodes compare (S3), made anew from the records."""
    events: tuple[Row, ...]
    """The records of the event log that were in no segment."""


def read_state(path: Path) -> StoredState:
    """Read and check a whole file. Raises StateFileFlawed; OSError."""
    return stored_state(_chunks(path))


def stored_state(chunks: Iterable[bytes]) -> StoredState:
    """Read the state in a stream, to its end. Raises StateFileFlawed."""
    decoder = StreamDecoder()
    metas: list[StateMeta] = []
    events: list[Row] = []
    try:
        found = _records(decoder, chunks, metas, events)
        image, histories = read_image(found)
    except (InstallRefused, RecordDamaged, CodecError) as error:
        raise StateFileFlawed(str(error)) from error
    if not decoder.whole:
        raise StateFileFlawed("it ends before its end")
    if not metas:
        raise StateFileFlawed("it does not say which entry it reflects")
    machine = StateMachine(image.state, image.heads, histories)
    return StoredState(metas[0], image, machine.digest(), tuple(events))


def _records(
    decoder: StreamDecoder,
    chunks: Iterable[bytes],
    metas: list[StateMeta],
    events: list[Row],
) -> Iterator[StateRecord]:
    """Yield the records of the state; put its description and the events where they belong."""
    for chunk in chunks:
        for record in decoder.feed(chunk):
            name = _database(record)
            if (name, record.key) == (META, SNAPSHOT):
                metas.append(unpack_meta(record.stored))
                continue
            key, content = unpack_record(name, record.key, record.stored)
            if name == EVENTS:
                events.append(Row(Position(*_POSITION.unpack(key)), content))
            elif (name, key) != (META, COUNTS):
                yield StateRecord(name, key, content)


def _database(record: StreamedRecord) -> str:
    if record.database >= len(DATABASE_NAMES):
        raise InstallRefused(f"it has a database number {record.database}, from a newer version")
    return DATABASE_NAMES[record.database]


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(READ_BYTES):
            yield chunk
