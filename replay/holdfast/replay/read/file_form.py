"""Check the form of one data file: Parquet that can be read, columns, order, bucket, positions.

What it lets pass can be read by every later check, in workers and in the JVM. It decodes no
payload. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import truncate
from holdfast.replay.read.archive import PEER
from holdfast.replay.read.log_rows import FINDING, START, ResultRow
from holdfast.replay.read.record_sums import RecordSums, sum_row
from holdfast.replay.read.urls import NotReached, local_file
from holdfast.storage.segments.columns import SCHEMA, types_of
from holdfast.storage.segments.segments import bucket_file, bucket_of

FORM: Final = "form"
UNSEEN: Final = "unseen"
"""The kind of a finding about a file that whoever reads it does not find."""
PLACES_MAX: Final = 20
"""Most findings about single rows of one file."""

_REQUIRED: Final = (
    *("idx", "ordinal", "grp", "grp_seq", "log_time_ms", "wall_time_ms", "type"),
    *("payload", "chain"),
)
_CHAIN_BYTES: Final = 32
_FIRST_COLUMNS: Final = SCHEMA.get_field_index("chain") + 1
"""How many columns the first version wrote; later ones added more behind them."""
_CODECS: Final = frozenset({"ZSTD", "SNAPPY", "GZIP", "UNCOMPRESSED"})
_ROWS_MAX_FACTOR: Final = 100
"""A file that says it has so many times the rows of its whole segment is not unpacked."""


class DataFile(NamedTuple):
    """A file to check."""

    number: int  # by which the result names it
    path: str
    name: str  # of the file, which tells its bucket
    promised: int  # records in its whole segment, by the manifest


def forms(files: Sequence[DataFile]) -> Iterator[ResultRow]:
    """Check some files; yields findings, and a row `form` for each file.

    In all rows `content` holds the file's number. A row `form` has in `text` the ends of the file
    (records, first and last position); without a text the file is not to be read again. A row
    `sums` has the sums of one block (`record_sums.sum_row`).
    """
    for file in files:
        number = str(file.number).encode()
        form = _Form(file)
        form.check()
        for row in form.rows:
            yield row._replace(content=number, key=file.path)
        for told in () if form.unusable else form.sums:
            yield sum_row(file.path, told)._replace(content=number)
        text = "" if form.unusable else " ".join(map(str, (form.count, *form.low, *form.high)))
        yield ResultRow(FORM, text=text, key=file.path, content=number)


@dataclass(slots=True)
class _Form:
    """One file while it is checked."""

    file: DataFile
    rows: list[ResultRow] = field(default_factory=list)
    unusable: bool = False
    count: int = 0
    low: Position = START
    high: Position = START
    last: tuple[str, int, int] | None = None
    sums: RecordSums = field(default_factory=RecordSums)

    def check(self) -> None:
        try:
            with local_file(self.file.path) as path, pq.ParquetFile(path) as opened:
                self._columns(opened.schema_arrow)
                self._packing(opened.metadata)
                if not self.unusable:
                    for batch in opened.iter_batches():
                        self._batch(batch)
        except NotReached:
            raise  # it says nothing of the file
        except PermissionError as error:
            raise NotReached(
                f"{self.file.path} may not be read: {error.strerror or error}. Verify as a user "
                "who may, such as the node's"
            ) from error
        except FileNotFoundError:
            self._refuse(UNSEEN, f"the file is not there any more; {PEER}")
        except Exception as error:  # noqa: BLE001 - whatever bytes may lead a reader to
            self._refuse("unreadable", f"the file is damaged: {_told(error)}; {PEER}")
        if not self.count and not self.unusable:
            self._say("manifest", "the file has no records, and the manifest names it")

    def _columns(self, schema: pa.Schema) -> None:
        """Compare with the columns of some version: each begins as `SCHEMA` does (docs)."""
        names = schema.names
        wanted = SCHEMA.names[: max(len(names), _FIRST_COLUMNS)]
        lacking = [name for name in wanted if name not in names]
        other = [name for name in names if name not in SCHEMA.names]
        if lacking:
            self._refuse("schema", f"the file lacks the columns {_listed(lacking)}")
        if other:
            self._refuse("schema", f"the file has columns that no version has: {_listed(other)}")
        if not (lacking or other) and names != wanted:
            self._refuse("schema", "the file's columns are not in their order, or are there twice")
        for column in schema:
            if column.name in SCHEMA.names and column.type not in types_of(column.name):
                right = SCHEMA.field(column.name).type
                text = f"column {column.name} is {truncate(str(column.type))}, and not {right}"
                self._refuse("schema", text)

    def _packing(self, metadata: pq.FileMetaData) -> None:
        if metadata.num_rows > self.file.promised * _ROWS_MAX_FACTOR + _ROWS_MAX_FACTOR:
            text = f"the file says that it has {metadata.num_rows} records"
            self._refuse("unreadable", f"{text}, and its segment has {self.file.promised}")
        used = {
            metadata.row_group(group).column(column).compression
            for group in range(metadata.num_row_groups)
            for column in range(metadata.num_columns)
        }
        if used - _CODECS:
            self._refuse("schema", f"the file is packed with {_listed(sorted(used - _CODECS))}")

    def _batch(self, batch: pa.RecordBatch) -> None:
        batch.validate(full=True)
        empty = [name for name in _REQUIRED if batch.column(name).null_count]
        if empty:
            self._refuse("schema", f"the file has rows without {_listed(empty)}")
            return
        if not self._is_sound(batch):
            columns = [batch.column(n).to_pylist() for n in ("grp", "idx", "ordinal", "chain")]
            for grp, idx, ordinal, chain in zip(*columns, strict=True):
                self._row(grp, Position(idx, ordinal), chain)
        if not self.unusable:
            self.sums.add(batch)

    def _is_sound(self, batch: pa.RecordBatch) -> bool:
        """Take in a batch in which no row is wrong, a column at a time; False: look at each row."""
        groups, chains = batch.column("grp"), batch.column("chain")
        indexes, ordinals = (batch.column(name).to_numpy() for name in ("idx", "ordinal"))
        if not len(groups) or indexes.min() < 0 or ordinals.min() < 0:
            return False
        first = (groups[0].as_py(), int(indexes[0]), int(ordinals[0]))
        if (
            (self.last is not None and first <= self.last)
            or not pc.all(pc.equal(pc.binary_length(chains), _CHAIN_BYTES)).as_py()
            or {_file_of(each) for each in groups.unique().to_pylist()} != {self.file.name}
            or not _is_ascending(groups, indexes, ordinals)
        ):
            return False
        low, high = _ends(indexes, ordinals)
        self.low = min(self.low, low) if self.count else low
        self.high = max(self.high, high)
        self.last = (groups[-1].as_py(), int(indexes[-1]), int(ordinals[-1]))
        self.count += len(groups)
        return True

    def _row(self, grp: str, place: Position, chain: bytes) -> None:
        if place.index < 0 or place.ordinal < 0:
            text = f"a record says that it is at {place.index}.{place.ordinal}"
            self._refuse("schema", f"{text}, where none can be")
            return
        if len(chain) != _CHAIN_BYTES:
            self._say("chain", f"the head of the chain has {len(chain)} bytes", grp, place)
        if _file_of(grp) != self.file.name:
            text = f"the record is in {self.file.name}, and its group's are in {_file_of(grp)}"
            self._say("bucket", text, grp, place)
        key = (grp, place.index, place.ordinal)
        if self.last is not None and key <= self.last:
            self._order(key, self.last)
        self.last = key
        self.low = min(self.low, place) if self.count else place
        self.high = max(self.high, place)
        self.count += 1

    def _order(self, key: tuple[str, int, int], before: tuple[str, int, int]) -> None:
        place = Position(key[1], key[2])
        if key == before:
            self._say("duplicated", "the record is there more than once", key[0], place)
        else:
            text = f"the record stands behind {before[1]}.{before[2]} of group {before[0]!r}"
            self._say("order", f"{text}, and belongs before it", key[0], place)

    def _refuse(self, kind: str, text: str) -> None:
        self.unusable = True
        self._say(kind, text)

    def _say(self, kind: str, text: str, grp: str = "", place: Position | None = None) -> None:
        if len(self.rows) < PLACES_MAX:
            at = place or Position(-1, 0)
            self.rows.append(ResultRow(FINDING, grp, kind, "", text, b"", *at))


def _is_ascending(groups: pa.Array, indexes: Any, ordinals: Any) -> bool:  # noqa: ANN401 - arrays of numpy
    """Return whether rows are by group, by position within each, and none is there twice."""
    before, after = groups.slice(0, len(groups) - 1), groups.slice(1)
    same = pc.equal(after, before).to_numpy(zero_copy_only=False)
    later = pc.greater(after, before).to_numpy(zero_copy_only=False)
    steps = indexes[1:] > indexes[:-1]
    steps |= (indexes[1:] == indexes[:-1]) & (ordinals[1:] > ordinals[:-1])
    return bool((later | (same & steps)).all())


def _ends(indexes: Any, ordinals: Any) -> tuple[Position, Position]:  # noqa: ANN401 - as above
    """Return the lowest and the highest position."""
    low, high = indexes.min(), indexes.max()
    first, last = ordinals[indexes == low].min(), ordinals[indexes == high].max()
    return Position(int(low), int(first)), Position(int(high), int(last))


@lru_cache(maxsize=10_000)
def _file_of(group_id: str) -> str:
    return bucket_file(bucket_of(group_id))


def _told(error: Exception) -> str:
    return truncate(" ".join(str(error).split())) or type(error).__name__


def _listed(names: Sequence[Any]) -> str:
    return truncate(", ".join(map(str, names)))
