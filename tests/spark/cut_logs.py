"""Logs whose first records were cut off: a checkpoint, and the segments behind it (S24)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State
from holdfast.replay.read.log_rows import Beginning, Bucket
from holdfast.replay.verify.checkpoint.rows import checkpoint_rows
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, encode_record
from holdfast.storage.segments.checkpoint import Checkpoint, write_checkpoint
from holdfast.storage.segments.columns import SCHEMA
from holdfast.storage.segments.segments import BUCKETS, bucket_file
from spark.event_logs import EventLog, write_node
from spark.rows import leveled, told


def checkpoint_at(log: EventLog, count: int) -> Checkpoint:
    """What the first `count` records lead to."""
    records, heads = log.records[:count], dict[str, bytes]()
    for record in records:
        content = encode_record(record)
        for chain in {"", record.group_id}:
            heads[chain] = chain_hash(heads.get(chain, CHAIN_START), content)
    return Checkpoint(records[-1].position, replay(State(), records), heads)


def write_cut_node(folder: Path, node: str, log: EventLog, count: int, *, kept: int = 0) -> Path:
    """Write a node whose first `count` records were cut off; some are `kept` still in a segment."""
    write_checkpoint(folder / "segments", checkpoint_at(log, count))
    return write_node(folder, node, log.rows[count - kept :])


def beginning(folder: Path, log: EventLog, count: int) -> Beginning:
    made = checkpoint_at(log, count)
    path = write_checkpoint(folder, made)
    return Beginning(made.last, str(path), made.digest, made.state.log_time_ms)


def continued(folder: Path, log: EventLog, count: int, prefix: str = "") -> list[tuple[Any, ...]]:
    """Rows that stand for the first records, and the others as they are; `count` names groups."""
    begins, rows, name = beginning(folder, log, count), list[tuple[Any, ...]](), f"{prefix}{count}"
    for nth in range(BUCKETS):
        for row in checkpoint_rows(Bucket(bucket_file(nth), (), begins)):
            columns = dict(zip(SCHEMA.names, row, strict=True))
            rows.append(told(name, columns["grp"], columns))
    return rows + [told(name, each["grp"], each) for each in leveled(log.records)[count:]]
