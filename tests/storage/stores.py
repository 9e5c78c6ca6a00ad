"""State stores with known content, for the tests of this folder."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import Change, EventRecord, StateStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LONG_KEY = b"k" * 5000


def meta(index: int) -> StateMeta:
    return StateMeta(index, 1 + index // 100, 1_000 * index, sha256(b"%d" % index).digest())


def snapshot_changes(index: int) -> list[Change]:
    """Some records that every index writes anew, and some of its own."""
    return [
        ("groups", b"g-%d" % (index % 3), b"group at %d" % index),
        ("topics", b"t-%d" % index, b"topic " * index),
        ("requests", LONG_KEY + b"%d" % index, b"a key that LMDB cannot hold"),
        ("chains", b"g-%d" % (index % 3), sha256(b"%d" % index).digest()),
        ("meta", b"c", b"the cluster's record at %d" % index),
    ]


def events(index: int) -> list[EventRecord]:
    return [EventRecord(index, ordinal, b"event %d.%d" % (index, ordinal)) for ordinal in range(3)]


def filled(path: Path, indexes: Sequence[int]) -> StateStore:
    """A store with a snapshot for each index."""
    StateStore.create(path)
    store = StateStore(path)
    for index in indexes:
        store.write_snapshot(snapshot_changes(index), events(index), meta(index))
    return store


def content(store: StateStore) -> tuple[object, ...]:
    """Everything that a store holds."""
    return store.meta(), list(store.load()), store.events((0, 0), 1_000_000)
