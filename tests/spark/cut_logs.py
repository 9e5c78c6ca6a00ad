"""Logs whose first records were cut off: a checkpoint, and the segments behind it (S24)."""

from __future__ import annotations

from pathlib import Path

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash, encode_record
from holdfast.storage.segments.checkpoint import Checkpoint, write_checkpoint
from spark.event_logs import EventLog, write_node


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
