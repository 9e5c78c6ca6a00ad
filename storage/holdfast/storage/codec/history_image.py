"""The rebalance histories as records that change one by one, beside the state and its digest.

Version 0.1.0 had rebalances in the state, filed with their groups. They are read as histories, too,
so that nothing is forgotten when a directory of that version is opened. Nothing is decided on a
history, so one that cannot be written or read is logged and left out: it stops no snapshot and no
start (S6). Knows the histories and their bytes; no files, no LMDB, no Raft.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.coordinator.projections.history import Histories, History, Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.event_codec import CodecError, StateItem, decode_state, encode_state
from holdfast.storage.codec.state_image import GROUPS, Change, key_bytes

logger = logging.getLogger(__name__)

REBALANCES: Final = "rebalances"

_KIND: Final = "b"
_MISPLACED: Final = (
    "rebalance %s of the group %r is stored under the key %s, which is another's; it is left out"
)


def history_changes(before: Histories, after: Histories) -> Iterator[Change]:
    """Yield the changes that turn a store of `before` into one of `after`.

    There is a record for each rebalance. Takes time in proportion to the histories that differ, if
    `after` came from `before`.
    """
    for group_id in after.changed_since(before):
        yield from _group_changes(group_id, before.get(group_id, ()), after.get(group_id, ()))


def _group_changes(group_id: str, old: History, new: History) -> Iterator[Change]:
    was, now = ({each.number: each for each in some} for some in (old, new))
    for number in sorted(was.keys() | now.keys()):
        told = now.get(number)
        if told is was.get(number):
            continue
        key = (group_id, str(number))
        content = None if told is None else _encoded(key, told)
        yield Change(REBALANCES, key_bytes(_KIND, key), content)


def _encoded(key: tuple[str, str], told: Rebalance) -> bytes | None:
    """Return a rebalance's record; None, which removes it, if it has no form on disk."""
    try:
        return encode_state(StateItem(key, told))
    except Exception:
        logger.exception("rebalance %s of group %r is not stored", key[1], key[0])
        return None


def is_misfiled(database: str, key: bytes) -> bool:
    """Return whether a record is a rebalance where version 0.1.0 filed it, with its group."""
    return database == GROUPS and key.startswith(_KIND.encode())


def restore_histories(records: Iterable[tuple[bytes, bytes]]) -> Histories:
    """Restore histories from keys and contents, wherever filed; of two rebalances, the last wins.

    A record that cannot be read, or lies under another one's key, is logged and left out: nobody
    may be told the life of another group.
    """
    found: defaultdict[str, dict[int, Rebalance]] = defaultdict(dict)
    for key, content in records:
        try:
            group_id, number, told = _decoded(content)
        except Exception:
            logger.exception("a stored rebalance cannot be read and is left out")
            continue
        if key == key_bytes(_KIND, (group_id, number)) and number == str(told.number):
            found[group_id][told.number] = told
        else:
            logger.error(_MISPLACED, told.number, group_id, key.hex())
    return PMap((group_id, _in_order(told)) for group_id, told in found.items())


def _decoded(content: bytes) -> tuple[str, str, Rebalance]:
    """Read a rebalance with its group and number. Raises `CodecError` for a record that is none."""
    match decode_state(content):
        case StateItem(key=(str() as group_id, str() as number), value=Rebalance() as told):
            return group_id, number, told
        case item:
            raise CodecError(f"{item.key!r} is no rebalance", "rebalance record")


def _in_order(told: dict[int, Rebalance]) -> History:
    return tuple(told[number] for number in sorted(told))
