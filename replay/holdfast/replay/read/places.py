"""Places in a log: whether a log reaches them.

A log knows nothing of what lies behind its last record, and the state before the first is none.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.replay.findings import log_time_of
from holdfast.replay.read.log_rows import Cut
from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.read.urls import local_file


def refuse_outside(log: NodeLog, cut: Cut) -> None:
    """Raise ValueError for a position beyond the last record, or a time before the first one.

    A time behind the last record is none: nothing had happened since, as far as the log tells.
    """
    if cut.last is not None and cut.last.index > log.last.index:
        raise ValueError(
            f"there is no record at {cut.last.index} yet: the log of {log.node} ends at "
            f"{log.last.index}.{log.last.ordinal}. What is not sealed yet can be sealed "
            "(`holdfast log seal`), or exported from a stopped node (`holdfast log export`)"
        )
    if cut.log_time_ms is None or log.begins.cut:  # what a checkpoint stands for was looked at
        return
    first_ms = _first_ms(log)
    if cut.log_time_ms < first_ms:
        raise ValueError(
            f"the log of {log.node} begins at log time {log_time_of(first_ms)}, and "
            f"{log_time_of(cut.log_time_ms)} is before that: ask for a later time"
        )


def _first_ms(log: NodeLog) -> int:
    """Return the log time of the first record."""
    columns = [_times(address) for address in log.segments[0].files]
    return int(min(pc.min(table["log_time_ms"]).as_py() for table in columns if table.num_rows))


def _times(address: str) -> pa.Table:
    with local_file(address) as path:
        return pq.read_table(path, columns=["log_time_ms"])
