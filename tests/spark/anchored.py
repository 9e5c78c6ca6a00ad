"""Anchors of made logs, logs that somebody rewrote with their chains, and states on disks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.events import Event
from holdfast.coordinator.model.state import State
from holdfast.replay.read.anchor_files import Anchor
from holdfast.storage.codec.event_codec import CHAIN_START, append_chain, chain_hash, encode_record
from holdfast.storage.codec.state_image import changes, digest_of
from holdfast.storage.journal.journal import Identity, JournalBatch
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.segments.segments import Row
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import StateStore
from spark.event_logs import EventLog


def led_to(log: EventLog, index: int) -> tuple[State, bytes]:
    """State and chain after entry `index`, by the rule: all records up to it, one by one."""
    state, head = State(), CHAIN_START
    for record in log.records:
        if record.position.index <= index:
            state = replay(state, (record,))
            head = chain_hash(head, encode_record(record))
    return state._replace(applied_index=index), head


def anchor_of(log: EventLog, index: int, node: str = "n1", cluster: str = "c") -> Anchor:
    """What a node that holds the log tells of it at an index."""
    state, head = led_to(log, index)
    digest, recovery = digest_of(state), state.recovery_number
    return Anchor(cluster, node, index, state.log_time_ms, head, digest, recovery)


def as_told(anchor: Anchor) -> dict[str, Any]:
    """An anchor as `holdfast log anchor --json` prints it."""
    return {
        "format": 1,
        "cluster_id": anchor.cluster_id,
        "node": anchor.node,
        "index": anchor.index,
        "log_time_ms": anchor.log_time_ms,
        "chain": anchor.chain.hex(),
        "digest": f"{anchor.digest:016x}",
        "version": "0.2.0",
        "recovery_number": anchor.recovery_number,
    }


def write_anchors(path: Path, *anchors: Anchor) -> Path:
    path.write_text("".join(json.dumps(as_told(each)) + "\n" for each in anchors))
    return path


def rewritten(log: EventLog, at: int, event: Event) -> list[Row]:
    """The rows of a log in which one event is another one, and all chains fit: nothing shows it."""
    rows, heads = list[Row](), dict[str, bytes]()
    for nth, record in enumerate(log.records):
        content = encode_record(record._replace(event=event) if nth == at else record)
        for chain in {"", record.group_id}:
            heads[chain] = chain_hash(heads.get(chain, CHAIN_START), content)
        rows.append(Row(record.position, append_chain(content, heads[record.group_id])))
    return rows


def store_state(folder: Path, log: EventLog, index: int, node: str, cluster: str = "c") -> None:
    """Put a stopped node's journal and state, as of an index, beside its segments."""
    (folder / "lock").touch()
    LmdbJournal.create(folder / "raft")
    journal = LmdbJournal(folder / "raft")
    journal.load()
    journal.commit(JournalBatch(identity=Identity(cluster, node, "i", "member")))
    journal.close()
    state, head = led_to(log, index)
    StateStore.create(folder / "state")
    store = StateStore(folder / "state")
    store.write_snapshot(
        list(changes(State(), state)),
        [],
        StateMeta(index, 1, state.log_time_ms, head),
    )
    store.close()
