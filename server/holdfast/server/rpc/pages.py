"""Lists in pages: names in order, and a token that says after which name the next page begins.

A token names no state of a node. So it holds after deletions, after a failover and at any node, and
every page is made from the state of its own moment. Knows names and nothing of what they name.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from holdfast.server.rpc.errors import malformed
from holdfast.server.rpc.slices import ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.model.pmap import PMap
    from holdfast.v1 import extras_pb2 as x

PAGE_MAX: Final = 10_000
"""Items of a page, however many were asked for."""
CHANGES_MAX: Final = 500
"""Names that may have come and gone since the last list; after more, all are sorted again."""
_CHECK_BYTES: Final = 4


class Page(NamedTuple):
    """What was asked for: so many items, after a name (None: from the first one)."""

    size: int
    after: str | None


def asked(kind: str, extras: x.RequestExtras) -> Page | None:
    """The page that is asked for; None: the whole list.

    `kind`: what is listed, for a token fits one list only. Raises CallFailed.
    """
    if not extras.HasField("page_size"):
        if extras.page_token:
            raise malformed("holdfast.page_token", "is set without page_size; set both, or none")
        return None
    if extras.page_size == 0:
        raise malformed("holdfast.page_size", "is 0; ask for at least 1 item, or leave it out")
    after = _name(kind, extras.page_token) if extras.page_token else None
    return Page(min(extras.page_size, PAGE_MAX), after)


def token(kind: str, after: str) -> str:
    """The token of the page that begins after this name."""
    name = after.encode()
    return base64.urlsafe_b64encode(_check(kind, name) + name).decode()


def _name(kind: str, given: str) -> str:
    try:
        raw = base64.b64decode(given.encode("ascii"), altchars=b"-_", validate=True)
        name = raw[_CHECK_BYTES:].decode()
    except (UnicodeError, binascii.Error):
        raise _no_token() from None
    if raw[:_CHECK_BYTES] != _check(kind, name.encode()):
        raise _no_token()
    return name


def _check(kind: str, name: bytes) -> bytes:
    """Tells a slip from a token; it is no secret, for a token gives no rights."""
    return crc32(kind.encode() + b"\0" + name).to_bytes(_CHECK_BYTES, "big")


def _no_token() -> Exception:
    problem = "is no next_page_token of this list; send one as it was given, or begin without"
    return malformed("holdfast.page_token", problem)


class Names:
    """The names of one map in order, kept from list to list, for few come or go in between."""

    def __init__(self) -> None:
        self._of: PMap[str, Any] | None = None
        self._sorted: Sequence[str] = ()

    async def of(self, now: PMap[str, Any]) -> Sequence[str]:
        """The map's names in order; what is given out never changes."""
        if self._of is now:
            return self._sorted
        changed = self._changed(now)
        names = await ordered(now) if changed is None else self._with(changed, now)
        self._of, self._sorted = now, names
        return names

    def _changed(self, now: PMap[str, Any]) -> Sequence[str] | None:
        """Names that may have come or gone; None: too many, or all."""
        if self._of is None:
            return None
        changed = list(islice(now.changed_since(self._of), CHANGES_MAX + 1))
        return None if len(changed) > CHANGES_MAX else changed

    def _with(self, changed: Sequence[str], now: PMap[str, Any]) -> Sequence[str]:
        before = self._of or ()
        gone = [name for name in changed if name in before and name not in now]
        come = sorted(name for name in changed if name not in before and name in now)
        if not gone and not come:
            return self._sorted
        names = list(self._sorted)
        for name in gone:
            del names[bisect_left(names, name)]
        names.extend(come)
        names.sort()  # of two runs that are sorted this takes one walk
        return names


def begin(names: Sequence[str], page: Page | None) -> range:
    """Which of the names come into question."""
    first = bisect_right(names, page.after) if page is not None and page.after is not None else 0
    return range(first, len(names))
