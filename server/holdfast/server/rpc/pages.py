"""Lists in pages: names in order, and a token for the name after which the next page begins.

A token refers to no state of a node. So it is valid after deletions, after a failover and at any
node, and each page is made from the state at its own time. Knows names, not what they name.
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

    from holdfast.coordinator.structures.pmap import PMap
    from holdfast.v1 import extras_pb2 as x

PAGE_MAX: Final = 10_000
"""Most items of a page."""
CHANGES_MAX: Final = 500
"""Names that may have changed since the last list; if there are more, all are sorted again."""
_CHECK_BYTES: Final = 4


class Page(NamedTuple):
    """The page that was asked for: `size` items after a name (None: from the first name)."""

    size: int
    after: str | None


def asked(kind: str, extras: x.RequestExtras) -> Page | None:
    """Read which page is asked for; None: the whole list.

    `kind`: what is listed, since a token fits one list only. Raises CallFailed.
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
    """Make the token of the page that begins after this name."""
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
    """Compute the checksum that finds damaged tokens; no secret, since a token gives no rights."""
    return crc32(kind.encode() + b"\0" + name).to_bytes(_CHECK_BYTES, "big")


def _no_token() -> Exception:
    problem = "is no next_page_token of this list; send one as it was given, or begin without"
    return malformed("holdfast.page_token", problem)


class Names:
    """The names of one map in order, kept between lists, since few change in between."""

    def __init__(self) -> None:
        self._of: PMap[str, Any] | None = None
        self._sorted: Sequence[str] = ()

    async def of(self, now: PMap[str, Any]) -> Sequence[str]:
        """Return the map's names in order; the returned list never changes."""
        if self._of is now:
            return self._sorted
        changed = self._changed(now)
        names = await ordered(now) if changed is None else self._with(changed, now)
        self._of, self._sorted = now, names
        return names

    def _changed(self, now: PMap[str, Any]) -> Sequence[str] | None:
        """Return the names that may have been added or removed; None: too many, or all."""
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
        names.sort()  # timsort merges the two sorted runs in one pass
        return names


def begin(names: Sequence[str], page: Page | None) -> range:
    """Return the places of the names that a page may hold."""
    first = bisect_right(names, page.after) if page is not None and page.after is not None else 0
    return range(first, len(names))
