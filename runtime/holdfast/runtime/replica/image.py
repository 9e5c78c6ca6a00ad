"""The content of a replica's snapshot: state, chain heads, rebalance histories; as records (S18).

The histories are no part of the state. They are stored beside it, so that they are written in the
same transaction and travel in the same stream. Pure: knows records and their bytes, no store, no
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from holdfast.coordinator.model.state import State
from holdfast.coordinator.projections.history import Histories
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.history_image import (
    REBALANCES,
    history_changes,
    is_misfiled,
    restore_histories,
)
from holdfast.storage.codec.state_image import GROUPS, Change, changes, restore
from holdfast.storage.state.state_records import StateRecord

CHAINS: Final = "chains"


class Image(NamedTuple):
    """A replica at one moment, or as it is stored."""

    state: State = State()
    heads: PMap[str, bytes] = PMap()
    histories: Histories = PMap()
    misfiled: tuple[bytes, ...] = ()
    """Keys of rebalances that are stored where version 0.1.0 filed them. A stored image leaves them
    out of its histories, so the next snapshot files them anew."""


def image_changes(stored: Image, now: Image) -> Iterator[Change]:
    """Yield the changes that turn a store of `stored` into one of `now`."""
    yield from changes(stored.state, now.state)
    for name in now.heads.changed_since(stored.heads):
        yield Change(CHAINS, b"c" + name.encode(), now.heads.get(name))
    yield from history_changes(stored.histories, now.histories)
    for key in stored.misfiled:
        yield Change(GROUPS, key, None)


def read_image(records: Iterable[StateRecord]) -> tuple[Image, Histories]:
    """Return the stored image, and all histories, misfiled ones too.

    Raises `CodecError` for a record of the state; a history that cannot be read is left out.
    """
    heads: dict[str, bytes] = {}
    state: list[bytes] = []
    filed: list[tuple[bytes, bytes]] = []
    misfiled: dict[bytes, bytes] = {}
    for database, key, content in records:
        if database == CHAINS:
            heads[key.decode()[1:]] = content
        elif database == REBALANCES:
            filed.append((key, content))
        elif is_misfiled(database, key):
            misfiled[key] = content
        else:
            state.append(content)
    histories = restore_histories(filed)
    stored = Image(restore(state), PMap(heads), histories, tuple(misfiled))
    if not misfiled:
        return stored, histories
    return stored, restore_histories([*misfiled.items(), *filed])
