"""Fast sums of a node's records by block: its files once more, three columns of each.

A worker reads these columns in half the time that the JVM needs to open the file (docs/adr/0065).
Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow.parquet as pq

from holdfast.replay.read.log_rows import ResultRow
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.read.record_sums import RecordSums, fast_hashes, sum_row
from holdfast.replay.read.urls import TASK_FETCHES, is_url, local_file

_COLUMNS: Final = ("idx", "ordinal", "payload")
_TASK_RECORDS: Final = (250_000, 2_000_000)
"""Between these lies with how many records a task has enough; it takes whole segments."""
_TASKS: Final = 8
"""Into about how many tasks a log is shared out between these bounds: each has a price of its own.
Few cores are thought of; many would have more of them done sooner, and 2 M records take 2 s."""
_TASK_FILES: Final = 1_600
"""How many files, which cost more than few records do; behind a URL fewer (`TASK_FETCHES`)."""


class Files(NamedTuple):
    """The files of a segment, and no more of it: each worker gets those of all tasks by pickle."""

    key: str
    addresses: tuple[str, ...]


def shares(log: NodeLog) -> Iterator[tuple[Files, ...]]:
    """Share a log's segments out among tasks, so that each has enough to do, and not too much."""
    share, records, files = list[Files](), 0, 0
    few, many = _TASK_RECORDS
    enough = min(max(few, sum(s.manifest.count for s in log.segments) // _TASKS), many)
    for segment in log.segments:
        share.append(Files(segment.key, tuple(segment.files)))
        records += segment.manifest.count
        files += len(segment.files)
        files_max = TASK_FETCHES if is_url(segment.files[0]) else _TASK_FILES
        if records >= enough or files >= files_max:
            yield tuple(share)
            share, records, files = [], 0, 0
    if share:
        yield tuple(share)


def fast_sum_rows(segments: Sequence[Files]) -> Iterator[ResultRow]:
    """Sum up the records of some segments, as often as each is stored, in a worker.

    A row for each block of a segment; `sum_of_row` reads it.
    """
    for key, addresses in segments:
        sums = RecordSums(fast_hashes)
        for address in addresses:
            with local_file(address) as path, pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(columns=list(_COLUMNS), use_threads=False):
                    sums.add(batch)
        for told in sums:
            yield sum_row(key, told)
