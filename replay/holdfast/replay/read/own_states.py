"""The states on the disks of stopped nodes, as anchors: each is of the index that it covers.

A node's directory holds its state beside its segments. Whoever rewrites the segments alone is found
by it. A directory on which a node runs is left alone: LMDB may be read beside its writer only under
locks that a reader of copies does not have. The disk is checked in a child process first, as at a
node's start, for damage may kill who reads it (S21). Reads only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.text import truncate
from holdfast.coordinator.projections.history import Rebalance
from holdfast.replay.findings import Finding
from holdfast.replay.read.anchor_files import KIND, Anchor, Told
from holdfast.storage.codec.event_codec import CodecError, StateItem, decode_state, encode_state
from holdfast.storage.codec.state_image import (
    DIGEST_SPAN,
    GROUPS,
    META,
    REQUESTS,
    SETTINGS,
    TOPICS,
    weight,
)
from holdfast.storage.directory.check import STATE_FOLDER, verify_directory
from holdfast.storage.directory.stopped import held
from holdfast.storage.errors import DirectoryRefused, Refusal, StorageError
from holdfast.storage.state.state_store import StateStore

_DIGESTED: Final = frozenset({GROUPS, TOPICS, SETTINGS, REQUESTS, META})


def own_states(folders: Iterable[tuple[str, Path]], clusters: Collection[str]) -> Told:
    """Read the state in each directory that has one; nodes by name, each with its directory.

    `clusters`: those that the log is of.
    """
    anchors, findings, notes = list[Anchor](), list[Finding](), list[str]()
    for node, folder in folders:
        if not (folder / STATE_FOLDER).is_dir():
            continue
        try:
            found = _read(node, folder)
        except DirectoryRefused as error:
            why = "a node runs on it" if error.refusal is Refusal.IN_USE else error.detail
            notes.append(f"the state in {folder} was not compared: {why}")
        except (StorageError, CodecError, OSError) as error:
            text = f"the state in {folder} cannot be read: {truncate(str(error))}"
            findings.append(Finding("unreadable", node, "", None, text))
        else:
            anchors += [each for each in found if each.cluster_id in clusters]
            findings += [_foreign(each) for each in found if each.cluster_id not in clusters]
    return Told(anchors, findings, notes)


def _foreign(anchor: Anchor) -> Finding:
    text = f"{anchor} is of another cluster than its segments: {anchor.cluster_id!r}"
    return Finding(KIND, anchor.node, "", Position(anchor.index, 0), text)


def _read(node: str, folder: Path) -> list[Anchor]:
    """Return the state's anchor; none if nothing is stored yet."""
    with held(folder):
        verdict = verify_directory(folder)
        if verdict.refusal:
            raise DirectoryRefused(folder, Refusal(verdict.refusal), verdict.reason)
        if not verdict.sound:
            raise StorageError(verdict.reason)
        store = StateStore(folder / STATE_FOLDER, readonly=True)
        try:
            meta = store.meta()
            known, digest = _summed(store)
        finally:
            store.close()
    if meta is None:
        return []
    place = meta.index, meta.log_time_ms, meta.chain
    told = Anchor(known.cluster_id, node, *place, digest, known.recovery_number)
    return [told._replace(source=str(folder), own=True)]


def _summed(store: StateStore) -> tuple[State, int]:
    """Return the cluster's own part of a stored state, and the digest of all, record by record.

    Records are encoded anew: an older version may have written the same value in other bytes.
    """
    known, total = State(), 0
    for record in store.load():
        if record.database not in _DIGESTED:
            continue
        item: StateItem = decode_state(record.content)
        if isinstance(item.value, Rebalance):  # version 0.1.0 filed them with their group
            continue
        if isinstance(item.value, State):
            known = item.value
        total += weight(encode_state(item))
    return known, total % DIGEST_SPAN
