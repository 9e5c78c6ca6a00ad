"""Limits on the fields of a message; a message that exceeds one is malformed.

Kafka has no error code for these, so each ends INVALID_ARGUMENT and names the field and the limit.
The number of items in a list is checked before (`item_bounds`). The core checks bounds that have a
code (group ids, timeouts, sizes set by settings).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.server.rpc.errors import malformed

if TYPE_CHECKING:
    from holdfast.v1 import extras_pb2 as x

TEXT_MAX: Final = 4_096
"""Characters of an id, a name or a reason: far more than real ones have, and still harmless."""
INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
_UUIDV7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def text(field: str, value: str) -> str:
    """Return the value if it is short enough and has no NUL; raise CallFailed otherwise."""
    if len(value) > TEXT_MAX:
        raise malformed(field, f"{len(value)} characters; at most {TEXT_MAX} are allowed")
    if "\0" in value:
        raise malformed(field, "has a NUL character; leave it out")
    return value


def request_id(value: str) -> str:
    """Return a UUIDv7 or the empty id; raise CallFailed for anything else (S15)."""
    return _uuid("holdfast.request_id", value)


def life(extras: x.RequestExtras) -> str:
    """Return the life of a heartbeat's process (S26); raise CallFailed for half of a number."""
    if bool(extras.life) != bool(extras.beat):
        raise malformed("holdfast.life", "life and beat go together; send both, or neither")
    name = _uuid("holdfast.life", extras.life)
    if name[:1] > "7":  # the next process of the instance has to find one above it
        raise malformed("holdfast.life", f"the time of {name!r} is beyond the year 6400")
    return name


def beat(extras: x.RequestExtras) -> int:
    """Return the number of a heartbeat, 0 for none; raise CallFailed for one beyond the columns."""
    if extras.beat > INT64_MAX:
        raise malformed("holdfast.beat", f"must be at most {INT64_MAX}")
    return extras.beat


def _uuid(field: str, value: str) -> str:
    if value and not _UUIDV7.fullmatch(value):
        shown = value[:40]
        raise malformed(field, f"{shown!r} is no UUIDv7 in lower case; send one, or none")
    return value
