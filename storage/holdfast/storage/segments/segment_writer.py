"""Write a segment: files first, folder last, so that readers see it whole or not at all (S22).

Records are taken a few thousand at a time and kept as Arrow's columns, a small part of the memory
that they need as Python's values. Knows no LMDB.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.events import Record
from holdfast.coordinator.model.ids import Position
from holdfast.storage.codec.event_codec import decode_record, split_chain
from holdfast.storage.codec.schema_versions import EVENTS_FIRST, of_event
from holdfast.storage.disk.files import remove_tree, rename_durably, sync_path
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.fast_hash import fast_hash
from holdfast.storage.segments.file_contents import content_of
from holdfast.storage.segments.segments import (
    FIRST_FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    BlockSums,
    FileContent,
    Manifest,
    Row,
    bucket_file,
    bucket_of,
    plain_manifest,
    read_manifest,
    segment_name,
    typed_columns,
)

BATCH: Final = 5_000

_BUCKET: Final = "bucket"
_WITH_BUCKET: Final = SCHEMA.append(pa.field(_BUCKET, pa.int8()))
_ORDER: Final = [("grp", "ascending"), ("idx", "ascending"), ("ordinal", "ascending")]


def write_segment(
    parent: Path,
    rows: Iterable[Row],
    cluster_id: str,
    node_id: str,
    records: Iterable[Record] | None = None,
    format_version: int = FORMAT_VERSION,
) -> Manifest:
    """Write rows, at least one, in the order of the log, as a segment, and make it durable.

    `records`: what the rows are the bytes of, if that is at hand; else they are decoded.
    `format_version`: of the manifest, as the level in force allows it (`format_at`). An unfinished
    segment of the same name is removed and written again; a finished one is kept as it is. Raises
    OSError if the disk refuses, CodecError for a row that is no record.
    """
    collected = _Collected(rows, records)
    name = segment_name(collected.first, collected.last)
    if (parent / name / MANIFEST).exists():
        return read_manifest(parent / name)
    unfinished = parent / f".{name}.unfinished"
    if unfinished.exists():
        remove_tree(unfinished)
    unfinished.mkdir(parents=True)
    checked = format_version > FIRST_FORMAT
    contents = tuple(_write_buckets(unfinished, collected.table(), checked=checked))
    manifest = Manifest(
        format_version=format_version,
        cluster_id=cluster_id,
        node_id=node_id,
        first=collected.first,
        last=collected.last,
        count=collected.count,
        files=tuple(each.file for each in contents),
        blocks=collected.sums.digests(),
    )
    if checked:
        manifest = collected.described(manifest, contents)
    _write_manifest(unfinished, manifest)
    rename_durably(unfinished, parent / name)
    return manifest


def write_copy(segment: Path, parent: Path, node_id: str) -> None:
    """Write the segment that another node would make of the same records, and make it durable.

    Its data files are copies, byte for byte; its manifest names that node. Raises OSError, and
    ValueError for a segment whose manifest cannot be read.
    """
    manifest = replace(read_manifest(segment), node_id=node_id)
    unfinished = parent / f".{segment.name}.unfinished"
    unfinished.mkdir(parents=True)
    for name in manifest.files:
        shutil.copyfile(segment / name, unfinished / name)
        sync_path(unfinished / name)
    _write_manifest(unfinished, manifest)
    rename_durably(unfinished, parent / segment.name)


class _Collected:
    """All rows as columns, and what a manifest says of them."""

    def __init__(self, rows: Iterable[Row], records: Iterable[Record] | None) -> None:
        self.sums, self.fast_sums = BlockSums(), BlockSums(fast_hash)
        self.event_schema = EVENTS_FIRST
        self.count = 0
        self.first = self.last = Position(0, 0)
        self._batches: list[Any] = []
        self._records = None if records is None else iter(records)
        left = iter(rows)
        while batch := list(islice(left, BATCH)):
            self.first = self.first if self.count else batch[0].position
            self.last = batch[-1].position
            self.count += len(batch)
            self._batches.append(self._columns(batch))

    def _columns(self, rows: list[Row]) -> Any:  # noqa: ANN401 - pyarrow is published without types
        columns: dict[str, list[Any]] = {name: [] for name in _WITH_BUCKET.names}
        for position, content in rows:
            payload, chain = split_chain(content)
            self.sums.add(position, payload)
            self.fast_sums.add(position, payload)
            record = decode_record(payload) if self._records is None else next(self._records)
            self.event_schema = max(self.event_schema, of_event(record.event))
            columns["idx"].append(position.index)
            columns["ordinal"].append(position.ordinal)
            for name, value in typed_columns(record).items():
                columns[name].append(value)
            columns["payload"].append(payload)
            columns["chain"].append(chain)
            columns[_BUCKET].append(bucket_of(record.group_id))
        arrays = [pa.array(columns[field.name], field.type) for field in _WITH_BUCKET]
        return pa.RecordBatch.from_arrays(arrays, schema=_WITH_BUCKET)

    def described(self, manifest: Manifest, contents: tuple[FileContent, ...]) -> Manifest:
        """Return a manifest with what format 2 adds to it."""
        return replace(
            manifest,
            contents=contents,
            fast_blocks=self.fast_sums.digests(),
            event_schema=self.event_schema,
            writer=_writer(),
        )

    def table(self) -> Any:  # noqa: ANN401 - pyarrow is published without types
        """Return the rows, with the number of each one's bucket."""
        return pa.Table.from_batches(self._batches)


def _write_buckets(folder: Path, table: Any, *, checked: bool) -> Iterator[FileContent]:  # noqa: ANN401 - pyarrow is published without types
    """Write one file for each bucket. `checked`: with a checksum of each page."""
    for bucket in sorted(pc.unique(table[_BUCKET]).to_pylist()):
        name = bucket_file(bucket)
        mine = table.filter(pc.field(_BUCKET) == bucket).drop_columns([_BUCKET]).sort_by(_ORDER)
        pq.write_table(mine, folder / name, compression="zstd", write_page_checksum=checked)
        sync_path(folder / name)
        yield content_of(folder / name, mine.num_rows)


def _writer() -> str:
    try:
        return f"holdfast {version('holdfast')}"
    except PackageNotFoundError:  # a bare checkout
        return "holdfast"


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    path = folder / MANIFEST
    with path.open("w") as file:
        json.dump(plain_manifest(manifest), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    sync_path(folder)
