"""Stored answers: replies of one-shot requests as canonical bytes, and back (S15).

JSON arrays: the reply's name, then its fields in order; nested values are arrays of their fields, a
refusal begins with its name. The names and the order of fields are therefore part of the log: add
fields at the end, with a default, and an older answer is read with that default. Equal replies give
equal bytes on every node. Knows no rules.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Final, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.rejections import Rejection
from holdfast.coordinator.model.replies import (
    DoneReply,
    LeaveReply,
    NamedReply,
    OffsetsReply,
    Reply,
)

StoredReply: TypeAlias = LeaveReply | OffsetsReply | NamedReply | DoneReply
"""Only these are ever answered from the table; joins, syncs and heartbeats never are (S14)."""

_REPLIES: Final[dict[str, type[Any]]] = {kind.__name__: kind for kind in get_args(StoredReply)}
_REJECTIONS: Final[dict[str, type[Any]]] = {kind.__name__: kind for kind in get_args(Rejection)}


def freeze(reply: Reply) -> bytes:
    """Encode a reply. Raises TypeError for one that may not be stored (S14)."""
    name = type(reply).__name__
    if name not in _REPLIES:
        raise TypeError(f"{name} is built anew for each call and never stored (S14)")
    packed = [name, *_parts(reply)]
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":")).encode()


def thaw(answer: bytes) -> StoredReply:
    """Decode a reply that `freeze` encoded. Raises InvariantBroken for any other bytes."""
    try:
        name, *parts = json.loads(answer)
        return cast("StoredReply", _made(_REPLIES[name], parts))
    except (ValueError, KeyError, TypeError) as error:
        raise InvariantBroken("S15", f"a stored answer cannot be read: {error!r}") from error


def _parts(value: Any) -> list[Any]:  # noqa: ANN401 - any of the replies' parts
    if is_dataclass(value):
        return [_packed(getattr(value, field.name)) for field in fields(value)]
    return [_packed(part) for part in value]


def _packed(value: Any) -> Any:  # noqa: ANN401 - as above
    if value is None or isinstance(value, str | int):
        return value
    name = type(value).__name__
    return [name, *_parts(value)] if name in _REJECTIONS else _parts(value)


def _made(kind: type[Any], parts: list[Any]) -> Any:  # noqa: ANN401 - as above
    hints = tuple(get_type_hints(kind).values())[: len(parts)]
    return kind(*(_unpacked(hint, part) for hint, part in zip(hints, parts, strict=True)))


def _unpacked(hint: Any, part: Any) -> Any:  # noqa: ANN401 - as above
    if part is None or isinstance(part, str | int):
        return part
    if get_origin(hint) in {Union, UnionType}:
        return _made(_REJECTIONS[part[0]], part[1:])
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return tuple(_unpacked(item, each) for each in part)
    return _made(hint, part)
