"""Sealed segments: old records as Parquet files that Spark reads, with a manifest (S22).

A segment is a folder `<first index>-<last index>` that holds one file per bucket of groups and a
`manifest.json`, written last. Nodes compare digests over (position, payload), never bytes of files,
so that library versions do not matter; what a manifest says of its files' bytes is of this node's.
The payload column is the truth; the typed columns beside it are for SQL. Pure functions over
records and paths: no LMDB, no Raft, no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from holdfast.coordinator.model.consumer_events import GroupConverted, MemberSubscribed
from holdfast.coordinator.model.events import Event, Record
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import SEALED_SUMS
from holdfast.storage.codec.event_codec import CodecError, append_chain
from holdfast.storage.segments import columns_of_state
from holdfast.storage.segments.archive_path import AnyPath, ArchivePath

FORMAT_VERSION: Final = 2
"""The newest format of manifests, and so the one that is written once the level allows it."""
FIRST_FORMAT: Final = 1
"""That of 0.1.0: it tells nothing of files but their names. Also its reader knows no other."""
BUCKETS: Final = 16
"""A group's records share a bucket: crc32(group id) mod BUCKETS; a fold needs no shuffle."""

BLOCK_INDEXES: Final = 10_000
"""Entry indexes that one digest covers; a difference is narrowed down to its block."""

MANIFEST: Final = "manifest.json"
_SINCE_2: Final = frozenset({"contents", "fast_blocks", "event_schema", "writer"})
"""The fields that format 2 has, and format 1 has not."""
_HALF: Final = 1 << 32


class OtherFormat(ValueError):
    """A manifest is of another format: the segment may be sound, and this version cannot tell."""


class SegmentUnreadable(OSError):
    """A sealed segment on this node's disk cannot be read; says which, why, and what to do."""

    def __init__(self, segment: Path, error: Exception) -> None:
        """`error`: what reading it ended with."""
        self.segment = segment
        super().__init__(
            f"the sealed segment {segment} cannot be read: {error}. Look at the disk, and move the "
            "segment's folder out of the data directory: within minutes the node fetches it again "
            "from another one"
        )


_DAMAGE: Final = (OSError, ValueError, LookupError, TypeError, NotImplementedError, CodecError)
"""What reading a damaged segment may raise; pyarrow's own errors are among these."""


@contextmanager
def naming(segment: Path) -> Iterator[None]:
    """Name the segment that cannot be read in here. Raises SegmentUnreadable.

    One that was removed at this moment is none: that raises FileNotFoundError as it did. Nor is
    one of another format, which says itself what to do.
    """
    try:
        yield
    except OtherFormat:
        raise
    except _DAMAGE as error:
        if isinstance(error, FileNotFoundError) and not (segment / MANIFEST).exists():
            raise
        raise SegmentUnreadable(segment, error) from error


class Row(NamedTuple):
    """A record of the event log as it is stored: its position, and its bytes with chain hash."""

    position: Position
    content: bytes


@dataclass(frozen=True, slots=True)
class BlockDigest:
    """Sum over the record hashes of one block, in two halves that overflow in no SQL engine.

    It is a sum, since XOR would lose pairs of equal values. Each hash covers the position, so the
    order of summing does not matter.
    """

    block: int  # index // BLOCK_INDEXES
    count: int  # records in the block
    low: int  # sum of the lower 32 bits of the hashes
    high: int  # sum of the upper 32 bits


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of one data file, as this node sealed them."""

    file: str
    size: int
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a segment, which every verification reads first.

    What has a default is not in format 1. Of it, `fast_blocks` and `event_schema` depend on the
    records alone, as `blocks` do, and are equal on all nodes; the rest tells of this node's files.
    """

    format_version: int
    cluster_id: str
    node_id: str
    first: tuple[int, int]
    last: tuple[int, int]
    count: int
    files: tuple[str, ...]
    blocks: tuple[BlockDigest, ...]
    contents: tuple[FileContent, ...] = ()
    """One for each of `files`, in their order."""
    fast_blocks: tuple[BlockDigest, ...] = ()
    """As `blocks`, of the hashes that a JVM computes (`fast_hash`)."""
    event_schema: int = 0
    """The newest schema version of its records: who reads that reads them all."""
    writer: str = ""
    """The product that wrote it, and its version; for people."""


def format_at(level: int) -> int:
    """Return the format to seal in at a level in force: a node that fetches has to read it.

    Nodes of 0.1.0 refuse a manifest with another number, and one with a field that they do not
    know, and run at level 1 alone.
    """
    return FORMAT_VERSION if level >= SEALED_SUMS else FIRST_FORMAT


def record_hash(position: Position, payload: bytes) -> int:
    """Hash position and payload to 64 bits: the head of a SHA-256, which Spark has, too."""
    place = position.index.to_bytes(8, "big") + position.ordinal.to_bytes(4, "big")
    return int.from_bytes(sha256(place + payload).digest()[:8], "big")


Hash: TypeAlias = Callable[[Position, bytes], int]


class BlockSums:
    """The digests of records that are added one by one, in any order."""

    def __init__(self, hashed: Hash = record_hash) -> None:
        """`hashed`: makes the hash of a record, of 64 bits."""
        self._hashed = hashed
        self._sums: dict[int, list[int]] = {}

    def add(self, position: Position, payload: bytes) -> None:
        """Add a record to the sum of its block."""
        total = self._sums.setdefault(position.index // BLOCK_INDEXES, [0, 0, 0])
        value = self._hashed(position, payload)
        total[0] += 1
        total[1] += value % _HALF
        total[2] += value // _HALF

    def digests(self) -> tuple[BlockDigest, ...]:
        """Return one digest for each block, in order of blocks."""
        return tuple(BlockDigest(block, *self._sums[block]) for block in sorted(self._sums))


def block_digests(
    rows: Iterable[tuple[Position, bytes]], hashed: Hash = record_hash
) -> tuple[BlockDigest, ...]:
    """Compute the digests of (position, payload) pairs, one per block, in order of blocks."""
    sums = BlockSums(hashed)
    for position, payload in rows:
        sums.add(position, payload)
    return sums.digests()


def segment_name(first: Position, last: Position) -> str:
    """Return the folder's name of a segment; names sort in the order of the log."""
    return f"{first.index:020d}-{last.index:020d}"


def bucket_of(group_id: str) -> int:
    """Return the number of the bucket that holds a group's records."""
    return crc32(group_id.encode()) % BUCKETS


def bucket_file(bucket: int) -> str:
    """Return the file's name of a bucket, within its segment."""
    return f"bucket-{bucket:02d}.parquet"


def read_manifest(segment: ArchivePath) -> Manifest:
    """Read the manifest of a finished segment. Raises OSError; ValueError if it is not ours."""
    return parse_manifest((segment / MANIFEST).read_bytes(), str(segment))


def parse_manifest(content: bytes, name: str) -> Manifest:
    """Parse the manifest of the segment `name`. Raises ValueError if it is not ours."""
    try:
        raw = json.loads(content)
        version = raw["format_version"]
        if version == FIRST_FORMAT:
            return _manifest_of(raw)
        if version == FORMAT_VERSION:
            return _manifest_of_2(raw)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{name} has a damaged manifest ({error!r}): restore the segment from another node"
        ) from error
    raise OtherFormat(
        f"{name} has format version {version}, this version reads up to {FORMAT_VERSION}: read it "
        "with the version that wrote it, or upgrade"
    )


def plain_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return what is stored of a manifest: in format 1 exactly the fields that it has."""
    plain = asdict(manifest)
    if manifest.format_version == FIRST_FORMAT:
        return {name: value for name, value in plain.items() if name not in _SINCE_2}
    return plain


def _manifest_of(raw: dict[str, Any], more: frozenset[str] = frozenset()) -> Manifest:
    if found := (_SINCE_2 & raw.keys()) ^ more:
        raise ValueError(f"format {raw['format_version']} and {', '.join(sorted(found))}")
    raw["blocks"] = tuple(BlockDigest(**block) for block in raw["blocks"])
    raw["files"] = tuple(raw["files"])
    raw["first"], raw["last"] = Position(*raw["first"]), Position(*raw["last"])
    return Manifest(**raw)


def _manifest_of_2(raw: dict[str, Any]) -> Manifest:
    raw["contents"] = tuple(FileContent(**content) for content in raw["contents"])
    raw["fast_blocks"] = tuple(BlockDigest(**block) for block in raw["fast_blocks"])
    return _manifest_of(raw, _SINCE_2)


def segments_in(parent: AnyPath) -> list[AnyPath]:
    """List the finished segments of a node, in the order of the log."""
    if not parent.exists():
        return []
    return sorted(p for p in parent.iterdir() if (p / MANIFEST).exists() and p.name[0] != ".")


def read_rows(segment: Path) -> list[Row]:
    """Read all rows of a segment in the order of the log, with chain hashes."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to load, and no start needs it

    files = [segment / name for name in read_manifest(segment).files]
    tables = [pq.read_table(file, page_checksum_verification=True) for file in files]
    columns = ("idx", "ordinal", "payload", "chain")
    found = [
        (Position(row["idx"], row["ordinal"]), row["payload"], row["chain"])
        for table in tables
        for row in table.select(columns).to_pylist()
    ]
    return [Row(p, append_chain(payload, chain)) for p, payload, chain in sorted(found)]


def typed_columns(record: Record) -> dict[str, Any]:
    """Make the columns beside the payload, for SQL. A verification makes them again to compare."""
    event = record.event
    columns = {
        "grp": record.group_id,
        "grp_seq": record.group_seq,
        "log_time_ms": record.log_time_ms,
        "wall_time_ms": record.wall_time_ms,
        "type": type(event).__name__,
        "rule": record.cause.rule,
        "command": record.cause.command,
        "principal": record.principal,
        "request_id": record.request_id,
        **_NO_EVENT,
    }
    for name, read in column_readers(event):
        columns[name] = read(event)
    return columns


def column_readers(event: Event) -> list[tuple[str, Callable[[Any], Any]]]:
    """Return the columns that events of this class have, and how each is read of an event.

    Most have one or two; the other columns are null for them.
    """
    known = _READERS.get(type(event))
    return _learn_readers(event) if known is None else known


def _learn_readers(event: Event) -> list[tuple[str, _Reader]]:
    found = [
        (name, read)
        for name, (attributes, read) in _EVENT_COLUMNS.items()
        if any(hasattr(event, attribute) for attribute in attributes)
    ]
    found += columns_of_state.READERS.get(type(event), {}).items()
    _READERS[type(event)] = found
    return found


def _member_id(event: Any) -> str | None:  # noqa: ANN401 - of whatever class has one
    return getattr(event, "new_member_id", None) or getattr(event, "member_id", None)


def _members(event: Event) -> list[str] | None:
    """Return the member ids of an event about several members."""
    for name in ("member_ids", "rejoined", "assignments"):
        several = getattr(event, name, None)
        if several is not None:
            return [one if isinstance(one, str) else one.member_id for one in several]
    return None


def _list(several: Iterable[Any] | None, field: str = "") -> list[Any] | None:
    if several is None:
        return None
    return [getattr(one, field) if field else one for one in several]


def _structs(several: Iterable[Any] | None, *fields: str) -> list[dict[str, Any]] | None:
    if several is None:
        return None
    return [{field: getattr(one, field, None) for field in fields} for one in several]


def offsets_of(event: Event) -> Sequence[Any] | None:
    """Return the partitions whose offset was set or, if they have no `offset`, deleted."""
    return getattr(event, "offsets", None) or getattr(event, "partitions", None)


def _offsets(event: Event) -> list[dict[str, Any]] | None:
    return _structs(offsets_of(event), "topic", "partition", "offset")


def _partitions(several: Iterable[Any]) -> list[dict[str, Any]]:
    """Return partitions by topic."""
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in several]


def _targets(event: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of whatever class has some
    return [
        {
            "member_id": each.member_id,
            "partitions": _partitions(each.partitions),
            "version": each.version,
            "metadata": each.metadata,
        }
        for each in event.targets
    ]


def _converted(event: Any) -> list[dict[str, Any]] | None:  # noqa: ANN401 - of whatever class has a type
    """Return the members of a group that changes its protocol, with what they own."""
    if not isinstance(event, GroupConverted):
        return None
    return [
        {
            "member_id": each.member_id,
            "topics": list(each.topics),
            "partitions": _partitions(each.partitions),
        }
        for each in event.members
    ]


def _wanted(name: str) -> _Reader:
    """Return a reader of what an event says of its regular expression, or of its member's."""

    def read(event: Any) -> Any:  # noqa: ANN401 - of whatever class has it
        told = event.profile if isinstance(event, MemberSubscribed) else event
        value = getattr(told, name)
        return list(value) if isinstance(value, tuple) else value

    return read


_Reader = Callable[[Any], Any]
_EVENT_COLUMNS: Final[dict[str, tuple[tuple[str, ...], _Reader]]] = {
    "generation": (("generation",), attrgetter("generation")),
    "member_id": (("new_member_id", "member_id"), _member_id),
    "old_member_id": (("old_member_id",), attrgetter("old_member_id")),
    "instance_id": (("instance_id",), attrgetter("instance_id")),
    "members": (("member_ids", "rejoined", "assignments"), _members),
    "removed": (("removed",), lambda event: _list(event.removed)),
    "served": (("rejoined",), lambda event: _list(event.rejoined, "request_id")),
    "grants": (("assignments",), lambda e: _structs(e.assignments, "member_id", "assignment")),
    "offsets": (("offsets", "partitions"), _offsets),
    "reason": (("reason",), attrgetter("reason")),
    "group_type": (("group_type",), lambda event: event.group_type or None),
    "epoch": (("epoch",), attrgetter("epoch")),
    "joined": (("joined",), attrgetter("joined")),
    "topics": (("regex", "joined"), _wanted("topics")),
    "regex": (("regex", "joined"), _wanted("regex")),
    "targets": (("targets",), _targets),
    "asked_back": (("asked_back",), lambda event: _partitions(event.asked_back)),
    "freed": (("asked_back",), lambda event: _partitions(event.freed)),
    "granted": (("asked_back",), lambda event: _partitions(event.granted)),
    "waiting": (("asked_back",), attrgetter("waiting")),
    "classic": (("joined",), lambda event: event.classic is not None),
    "assignor": (("assignor",), attrgetter("assignor")),
    "late": (("late",), attrgetter("late")),
    "installed_by": (("installed_by",), attrgetter("installed_by")),
    "converted": (("group_type",), _converted),
}
"""Columns of events: by which attributes an event has one, and how its value is read."""

_OF_STATE: Final = [name for each in columns_of_state.READERS.values() for name in each]
_NO_EVENT: Final[dict[str, Any]] = dict.fromkeys((*_EVENT_COLUMNS, *_OF_STATE))
_READERS: Final[dict[type, list[tuple[str, _Reader]]]] = {}
