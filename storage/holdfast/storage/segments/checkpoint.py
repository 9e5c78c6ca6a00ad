"""A checkpoint: what all records up to a position lead to, as one file beside the segments (S24).

It holds the state and the heads of the hash chains, as a stream of checked records: the form in
which a snapshot travels and the state lies in a backup. It stands for the records before it, so
that a log which was cut off can still be verified and folded. Knows records, the state and one
file; no LMDB and no segment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import CHAIN_START, CodecError
from holdfast.storage.codec.state_image import GROUPS, changes, digest_of, restore
from holdfast.storage.disk.files import make_directory, rename_durably, sync_path
from holdfast.storage.disk.records import RecordDamaged, disk_key, pack_record, unpack_record
from holdfast.storage.errors import InstallRefused
from holdfast.storage.segments.archive_path import AnyPath, ArchivePath
from holdfast.storage.segments.log_check import LogStart
from holdfast.storage.state.state_records import CHAINS, DATABASE_NAMES, META
from holdfast.storage.state.state_stream import StreamDecoder, StreamedRecord, encode_stream

SUFFIX: Final = ".checkpoint"
CHUNK_BYTES: Final = 256 * 1024
FETCHED_AGAIN: Final = "a running node fetches it again from another one"
"""What is said of a damaged file; of one that no node has, its owner says something else."""
_GROUPS: Final = DATABASE_NAMES.index(GROUPS)
_KEY: Final = b"checkpoint"
_KIND: Final = b"c"
"""Begins the key of a chain's head, as in `state/`."""
_ALL: Final = ""
"""The chain over all records."""


class CheckpointFlawed(ValueError):
    """A file is no checkpoint as a node has written it. The text says what is wrong with it."""


class Checkpoint(NamedTuple):
    """The state after the record at `last`, and the head of each chain of records up to it."""

    last: Position
    state: State
    heads: Mapping[str, bytes]

    @property
    def digest(self) -> bytes:
        """Its digest, made as that of a state which nodes compare (S3)."""
        return digest_of(self.state).to_bytes(8, "big") + self.heads.get(_ALL, CHAIN_START)

    def begin(self) -> LogStart:
        """Return what a check of the records behind it begins with."""
        counts = {group_id: group.seq for group_id, group in self.state.groups.items()}
        counts[""] = self.state.cluster_seq
        heads = {name: head for name, head in self.heads.items() if name != _ALL}
        total = self.heads.get(_ALL, CHAIN_START)
        return LogStart(self.last, total, heads, counts, self.digest, self.state.log_time_ms)


NOTHING: Final = Checkpoint(Position(0, 0), State(), {})
"""Before the first record."""


def checkpoint_name(last: Position) -> str:
    """Return the name of a checkpoint's file; names sort in the order of the log."""
    return f"{last.index:020d}.{last.ordinal:010d}{SUFFIX}"


def checkpoints_in(folder: AnyPath) -> list[tuple[Position, AnyPath]]:
    """List the finished checkpoints beside a node's segments, in the order of the log."""
    if not folder.is_dir():
        return []
    found = (each for each in folder.iterdir() if each.suffix == SUFFIX)
    places = ((_position(each.stem), each) for each in found)
    return sorted((place, path) for place, path in places if place is not None)


def unfinished_in(folder: Path) -> list[tuple[Position, Path]]:
    """List what a crash has left of checkpoints that were being written or fetched."""
    found = ((each, each.name[1:].partition(SUFFIX)[0]) for each in folder.glob(f".*{SUFFIX}.*"))
    places = ((_position(stem), each) for each, stem in found)
    return [(place, path) for place, path in places if place is not None]


def _position(stem: str) -> Position | None:
    index, dot, ordinal = stem.partition(".")
    return Position(int(index), int(ordinal)) if dot and (index + ordinal).isdecimal() else None


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Make a checkpoint durable, whole or not at all: written, synced, read again, renamed.

    Raises OSError if the disk refuses; CheckpointFlawed if it does not hold what was written.
    """
    make_directory(folder.absolute())
    path = folder / checkpoint_name(checkpoint.last)
    beginning = folder / f".{path.name}.new"
    with beginning.open("wb") as file:
        file.writelines(encode_checkpoint(checkpoint))
    sync_path(beginning)
    return publish_checkpoint(beginning, path, checkpoint.digest)


def encode_checkpoint(
    checkpoint: Checkpoint, others: Iterable[StreamedRecord] = ()
) -> Iterator[bytes]:
    """Yield what a file of it holds, in chunks.

    `others`: records of groups that are not in its state, as another file has them
    (`stored_groups`).
    """
    return encode_stream(chain(others, _records(checkpoint)), CHUNK_BYTES)


def publish_checkpoint(beginning: Path, path: Path, digest: bytes) -> Path:
    """Rename a whole, synced file to a checkpoint, after it was read and has the digest."""
    read = read_checkpoint(beginning)
    if path.name != checkpoint_name(read.last):
        raise CheckpointFlawed(f"{beginning.name} ends at {_said(read.last)}, not as {path.name}")
    if read.digest != digest:
        raise CheckpointFlawed(
            f"the checkpoint at {_said(read.last)} has the digest {read.digest.hex()[:16]}, and it "
            f"should be {digest.hex()[:16]}"
        )
    rename_durably(beginning, path)
    return path


def read_checkpoint(
    path: ArchivePath,
    wanted: Callable[[bytes], bool] = lambda _: True,
    other: Callable[[bytes], None] = lambda _: None,
) -> Checkpoint:
    """Read and check a whole file. Raises CheckpointFlawed; OSError.

    `wanted`: tells of each record of groups, by its key, whether it is to be in the state. One that
    is left out costs no decoding, and without it the digest is another one; `other` is given it,
    encoded. A group's own record is to be wanted with any other of it.
    """
    with _flaws(path):
        return _read(path, wanted, other)


def stored_groups(path: ArchivePath, wanted: Callable[[bytes], bool]) -> Iterator[StreamedRecord]:
    """Yield some records of groups as a file has them, so that another file can have them.

    `wanted`: tells by a record's key. Raises CheckpointFlawed; OSError.
    """
    with _flaws(path):
        for record in _stored(path):
            if record.database == _GROUPS:
                key, _ = unpack_record(GROUPS, record.key, record.stored)
                if wanted(key):
                    yield record


@contextmanager
def _flaws(path: ArchivePath) -> Iterator[None]:
    try:
        yield
    except (InstallRefused, RecordDamaged, CodecError, ValueError, TypeError, StructError) as error:
        raise CheckpointFlawed(
            f"the checkpoint {path} is damaged ({error}): {FETCHED_AGAIN}"
        ) from error


def _read(
    path: ArchivePath, wanted: Callable[[bytes], bool], other: Callable[[bytes], None]
) -> Checkpoint:
    last: Position | None = None
    heads: dict[str, bytes] = {}
    state: list[bytes] = []
    for record in _stored(path):
        database = DATABASE_NAMES[record.database]
        key, content = unpack_record(database, record.key, record.stored)
        if database == GROUPS and not wanted(key):
            other(content)
        elif database == CHAINS:
            heads[key.decode().removeprefix(_KIND.decode())] = content
        elif (database, key) == (META, _KEY):
            last = Position(*json.loads(content))
        else:
            state.append(content)
    if last is None:
        raise InstallRefused("it does not say where it ends")
    return Checkpoint(last, restore(state), heads)


def _stored(path: ArchivePath) -> Iterator[StreamedRecord]:
    decoder = StreamDecoder()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            for record in decoder.feed(chunk):
                if record.database >= len(DATABASE_NAMES):
                    raise InstallRefused(f"it has a database number {record.database}")
                yield record
    if not decoder.whole:
        raise InstallRefused("it ends before its end")


def _records(checkpoint: Checkpoint) -> Iterator[StreamedRecord]:
    for change in changes(State(), checkpoint.state):
        if change.content is not None:
            yield _record(change.database, change.key, change.content)
    for name, head in sorted(checkpoint.heads.items()):
        yield _record(CHAINS, _KIND + name.encode(), head)
    yield _record(META, _KEY, json.dumps(checkpoint.last).encode())


def _record(database: str, key: bytes, content: bytes) -> StreamedRecord:
    number = DATABASE_NAMES.index(database)
    return StreamedRecord(number, disk_key(key), pack_record(database, key, content))


def newest_sound(
    found: Iterable[tuple[Position, Path]], through: Position
) -> tuple[Checkpoint, list[str]]:
    """Return the newest checkpoint up to a position that can be read, and flaws of newer ones.

    NOTHING if there is none: the log is to be read from its first record.
    """
    flaws: list[str] = []
    for place, path in sorted(found, reverse=True):
        if place <= through:
            try:
                return read_checkpoint(path), flaws
            except (CheckpointFlawed, OSError) as error:
                flaws.append(str(error))
    return NOTHING, flaws


def _said(position: Position) -> str:
    return f"{position.index}.{position.ordinal}"
