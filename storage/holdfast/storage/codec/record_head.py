"""The head of a record of the event log, as bytes: where it stands, in which group, and when.

It is `holdfast.v1.EventRecord` without event and chain, written by hand, since each event gets one
on every node; a test holds it against protobuf's own. Knows the record's fields, and no file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from holdfast.coordinator.model.ids import GroupId, Position
from holdfast.storage.codec.wire import signed, text, unsigned, varint

_HEADS: Final = tuple([bytes((1 << 3, version, 2 << 3 | 2)) for version in range(128)])
"""The version and the tag of the position, by the version."""
_INDEX: Final = bytes((1 << 3,))
_ORDINAL: Final = bytes((2 << 3,))
_GROUP_ID: Final = bytes((3 << 3 | 2,))
_GROUP_SEQ: Final = bytes((4 << 3,))
_LOG_TIME: Final = bytes((5 << 3,))
_WALL_TIME: Final = bytes((6 << 3,))
_ENTRIES_KEPT: Final = 8
"""Index and times are those of the entry: encoded once, for all of its records."""
_ORDINALS_KEPT: Final = 1 << 10
"""Every entry has these ordinals; larger entries have others, too."""
_GROUPS_KEPT: Final = 1 << 12
"""Ids of the groups that were heard of last."""


def record_head(
    version: int,
    position: Position,
    group_id: GroupId,
    group_seq: int,
    log_time_ms: int,
    wall_time_ms: int,
) -> bytes:
    """Encode the head. Raises TypeError or ValueError if the schema cannot hold a value.

    `version`: of the schema, as `schema_versions` tells for the record's event; below 128.
    """
    index, ordinal = position
    place = _index(index) + _ordinal(ordinal)
    return b"".join((
        *(_HEADS[version], varint(len(place)), place, _group(group_id)),
        *(unsigned(_GROUP_SEQ, group_seq, 64), _times(log_time_ms, wall_time_ms)),
    ))  # fmt: skip


@lru_cache(maxsize=_ENTRIES_KEPT)
def _index(index: int) -> bytes:
    return unsigned(_INDEX, index, 64)


@lru_cache(maxsize=_ORDINALS_KEPT)
def _ordinal(ordinal: int) -> bytes:
    return unsigned(_ORDINAL, ordinal, 32)


@lru_cache(maxsize=_GROUPS_KEPT)
def _group(group_id: GroupId) -> bytes:
    return text(_GROUP_ID, group_id)


@lru_cache(maxsize=_ENTRIES_KEPT)
def _times(log_time_ms: int, wall_time_ms: int) -> bytes:
    return signed(_LOG_TIME, log_time_ms) + signed(_WALL_TIME, wall_time_ms)
