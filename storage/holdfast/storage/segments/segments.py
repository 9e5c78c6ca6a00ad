"""Sealed segments: old records as Parquet files that Spark reads, with a manifest (S22).

A segment is a folder `<first index>-<last index>` that holds one file per bucket of groups and a
`manifest.json`, written last. Nodes compare digests over (position, payload), never bytes of files,
so that library versions do not matter. The payload column is the truth; the typed
columns beside it are for SQL. Pure functions over records and paths: no LMDB, no Raft, no Spark.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import Event, Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import append_chain, decode_record, split_chain
from holdfast.storage.disk.files import remove_tree, rename_durably, sync_path

FORMAT_VERSION: Final = 1
BUCKETS: Final = 16
"""A group's records share a bucket: crc32(group id) mod BUCKETS; a fold needs no shuffle."""

BLOCK_INDEXES: Final = 10_000
"""Entry indexes that one digest covers; a difference is narrowed down to its block."""

MANIFEST: Final = "manifest.json"
_HALF: Final = 1 << 32

SCHEMA: Final = pa.schema(
    [
        ("idx", pa.int64()),
        ("ordinal", pa.int32()),
        ("grp", pa.string()),
        ("grp_seq", pa.int64()),
        ("log_time_ms", pa.int64()),
        ("wall_time_ms", pa.int64()),
        ("type", pa.string()),
        ("rule", pa.string()),
        ("command", pa.string()),
        ("principal", pa.string()),
        ("request_id", pa.string()),
        ("generation", pa.int32()),
        ("member_id", pa.string()),
        ("old_member_id", pa.string()),
        ("instance_id", pa.string()),
        ("members", pa.list_(pa.string())),
        ("removed", pa.list_(pa.string())),
        ("served", pa.list_(pa.string())),
        ("grants", pa.list_(pa.struct([("member_id", pa.string()), ("assignment", pa.binary())]))),
        (
            "offsets",
            pa.list_(
                pa.struct(
                    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
                )
            ),
        ),
        ("reason", pa.string()),
        ("payload", pa.binary()),
        ("chain", pa.binary()),
    ]
)


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
class Manifest:
    """The content of a segment, which every verification reads first."""

    format_version: int
    cluster_id: str
    node_id: str
    first: tuple[int, int]
    last: tuple[int, int]
    count: int
    files: tuple[str, ...]
    blocks: tuple[BlockDigest, ...]


def record_hash(position: Position, payload: bytes) -> int:
    """Hash position and payload to 64 bits: the head of a SHA-256, which Spark has, too."""
    place = position.index.to_bytes(8, "big") + position.ordinal.to_bytes(4, "big")
    return int.from_bytes(sha256(place + payload).digest()[:8], "big")


def block_digests(rows: Iterable[tuple[Position, bytes]]) -> tuple[BlockDigest, ...]:
    """Compute the digests of (position, payload) pairs, one per block, in order of blocks."""
    sums: dict[int, list[int]] = {}
    for position, payload in rows:
        total = sums.setdefault(position.index // BLOCK_INDEXES, [0, 0, 0])
        value = record_hash(position, payload)
        total[0] += 1
        total[1] += value % _HALF
        total[2] += value // _HALF
    return tuple(BlockDigest(block, *sums[block]) for block in sorted(sums))


def segment_name(first: Position, last: Position) -> str:
    """Return the folder's name of a segment; names sort in the order of the log."""
    return f"{first.index:020d}-{last.index:020d}"


def bucket_file(bucket: int) -> str:
    """Return the file's name of a bucket, within its segment."""
    return f"bucket-{bucket:02d}.parquet"


def write_segment(parent: Path, rows: Sequence[Row], cluster_id: str, node_id: str) -> Manifest:
    """Write a segment of at least one row and make it durable, files first, folder last.

    An unfinished segment of the same name is removed and written again; a finished one is kept as
    it is. Raises OSError if the disk refuses, CodecError for a row that is no record.
    """
    name = segment_name(rows[0].position, rows[-1].position)
    if (parent / name / MANIFEST).exists():
        return read_manifest(parent / name)
    unfinished = parent / f".{name}.unfinished"
    if unfinished.exists():
        remove_tree(unfinished)
    unfinished.mkdir(parents=True)
    split = [(row.position, *split_chain(row.content)) for row in rows]
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        cluster_id=cluster_id,
        node_id=node_id,
        first=rows[0].position,
        last=rows[-1].position,
        count=len(rows),
        files=tuple(_write_buckets(unfinished, split)),
        blocks=block_digests((position, payload) for position, payload, _ in split),
    )
    _write_manifest(unfinished, manifest)
    rename_durably(unfinished, parent / name)
    return manifest


def read_manifest(segment: Path) -> Manifest:
    """Read the manifest of a finished segment. Raises OSError; ValueError if it is not ours."""
    return parse_manifest((segment / MANIFEST).read_bytes(), str(segment))


def parse_manifest(content: bytes, name: str) -> Manifest:
    """Parse the manifest of the segment `name`. Raises ValueError if it is not ours."""
    try:
        raw = json.loads(content)
        version = raw["format_version"]
        if version == FORMAT_VERSION:
            return _manifest_of(raw)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{name} has a damaged manifest ({error!r}): restore the segment from another node"
        ) from error
    raise ValueError(
        f"{name} has format version {version}, this version reads {FORMAT_VERSION}: read it "
        "with the version that wrote it, or upgrade"
    )


def _manifest_of(raw: dict[str, Any]) -> Manifest:
    raw["blocks"] = tuple(BlockDigest(**block) for block in raw["blocks"])
    raw["files"] = tuple(raw["files"])
    raw["first"], raw["last"] = Position(*raw["first"]), Position(*raw["last"])
    return Manifest(**raw)


def segments_in(parent: Path) -> list[Path]:
    """List the finished segments of a node, in the order of the log."""
    if not parent.exists():
        return []
    return sorted(p for p in parent.iterdir() if (p / MANIFEST).exists() and p.name[0] != ".")


def read_rows(segment: Path) -> list[Row]:
    """Read all rows of a segment in the order of the log, with chain hashes."""
    tables = [pq.read_table(segment / name) for name in read_manifest(segment).files]
    columns = ("idx", "ordinal", "payload", "chain")
    found = [
        (Position(row["idx"], row["ordinal"]), row["payload"], row["chain"])
        for table in tables
        for row in table.select(columns).to_pylist()
    ]
    return [Row(p, append_chain(payload, chain)) for p, payload, chain in sorted(found)]


def _write_buckets(folder: Path, rows: list[tuple[Position, bytes, bytes]]) -> Iterator[str]:
    buckets: dict[int, list[dict[str, Any]]] = {}
    for position, payload, chain in rows:
        record = decode_record(payload)
        line = _line(position, record, payload, chain)
        buckets.setdefault(crc32(record.group_id.encode()) % BUCKETS, []).append(line)
    for bucket in sorted(buckets):
        lines = sorted(
            buckets[bucket], key=lambda line: (line["grp"], line["idx"], line["ordinal"])
        )
        name = bucket_file(bucket)
        table = pa.Table.from_pylist(lines, schema=SCHEMA)
        pq.write_table(table, folder / name, compression="zstd")
        sync_path(folder / name)
        yield name


def _line(position: Position, record: Record, payload: bytes, chain: bytes) -> dict[str, Any]:
    place = {"idx": position.index, "ordinal": position.ordinal}
    return {**place, **typed_columns(record), "payload": payload, "chain": chain}


def typed_columns(record: Record) -> dict[str, Any]:
    """Make the columns beside the payload, for SQL. A verification makes them again to compare."""
    event = record.event
    return {
        "grp": record.group_id,
        "grp_seq": record.group_seq,
        "log_time_ms": record.log_time_ms,
        "wall_time_ms": record.wall_time_ms,
        "type": type(event).__name__,
        "rule": record.cause.rule,
        "command": record.cause.command,
        "principal": record.principal,
        "request_id": record.request_id,
        "generation": getattr(event, "generation", None),
        "member_id": getattr(event, "new_member_id", None) or getattr(event, "member_id", None),
        "old_member_id": getattr(event, "old_member_id", None),
        "instance_id": getattr(event, "instance_id", None),
        "members": _members(event),
        "removed": _list(getattr(event, "removed", None)),
        "served": _list(getattr(event, "rejoined", None), "request_id"),
        "grants": _structs(getattr(event, "assignments", None), "member_id", "assignment"),
        "offsets": _offsets(event),
        "reason": getattr(event, "reason", None),
    }


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


def _offsets(event: Event) -> list[dict[str, Any]] | None:
    """Return the partitions whose offset was set or, with a null offset, deleted."""
    several = getattr(event, "offsets", None) or getattr(event, "partitions", None)
    return _structs(several, "topic", "partition", "offset")


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    path = folder / MANIFEST
    with path.open("w") as file:
        json.dump(asdict(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    sync_path(folder)
