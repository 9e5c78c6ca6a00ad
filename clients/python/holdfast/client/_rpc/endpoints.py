"""Choose the next node: follow the leader, else walk the list, with full-jitter back-off.

Pure: the random fraction comes from a function. A delay is drawn between zero and a bound that
grows with the failures in a row, so that a thousand clients that lost their leader at the same
time do not come back at the same time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from holdfast.client._text import abbreviate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PORT_MAX: Final = 65_535
_PORT_DIGITS: Final = len(str(PORT_MAX))
BACKOFF_MS: Final = (50, 100, 200, 200, 200, 200, 400, 800, 1_000)
"""Bounds of the delay after each failure in a row; after more of them the last one. It rests at
200 ms while an election may last: what it has grown to is what a call loses at its end."""


class Endpoints:
    """A walk over `host:port` addresses; the present one is `current`."""

    def __init__(
        self, addresses: Sequence[str], fraction: Callable[[], float] = random.random
    ) -> None:
        if not addresses:
            raise ValueError("No endpoint given: name at least one node as host:port.")
        self._given = tuple(addresses)
        self._addresses = self._given
        self._fraction = fraction
        self._place = 0
        self._failures = 0
        self._leaders: set[str] = set()
        """Nodes that were taken for the leader since a call was answered, and the one that was."""
        self._unreachable: set[str] = set()
        """Nodes that have accepted no connection since then."""
        self.current = self._addresses[0]

    @property
    def given(self) -> tuple[str, ...]:
        """Those that the user named."""
        return self._given

    @property
    def addresses(self) -> tuple[str, ...]:
        """All that the walk passes: the given ones, then those learned."""
        return self._addresses

    def learned(self, addresses: Sequence[str]) -> None:
        """Replace the learned nodes by those that a node has named.

        The given ones stay, as a way back if all learned ones are gone.
        """
        new = (address for address in dict.fromkeys(addresses) if address not in self._given)
        self._addresses = (*self._given, *new)
        self._place %= len(self._addresses)

    def succeeded(self, address: str) -> None:
        """Note that a call was answered at this address."""
        if address == self.current:
            self._failures = 0
            self._leaders = {address}
            self._unreachable.clear()

    def redirected(self, address: str, leader: str | None) -> int:
        """Follow a node's hint to the leader; return the ms before the next attempt.

        A hint to a new leader is followed at once, however long the search took; hints in a circle
        are slowed down. A hint to a node that accepts no connection says that its followers do not
        know of its end yet: they are asked again, and the walk passes that node as well.
        """
        stale = leader in self._unreachable and leader in self._addresses
        if not leader or leader == address or stale:
            return self.failed(address)
        if address == self.current:
            self.current = leader
        self._failures += 1
        is_new = leader not in self._leaders
        self._leaders.add(leader)
        return 0 if is_new else self._delay_ms()

    def unreachable(self, address: str) -> int:
        """Note that a node accepts no connection; return the ms before the next attempt."""
        self._unreachable.add(address)
        return self.failed(address)

    def failed(self, address: str, *, move: bool = True) -> int:
        """Note a call without a usable answer; return the ms before the next attempt.

        Several calls may fail at one node together: only the first of them moves on and counts.
        """
        if address == self.current or not move:
            self._failures += 1
        if move and address == self.current:
            self.skip()
        return self._delay_ms()

    def skip(self) -> None:
        """Leave the present node for the next in the list."""
        for _ in self._addresses:
            self._place = (self._place + 1) % len(self._addresses)
            if self._addresses[self._place] != self.current:
                break
        self.current = self._addresses[self._place]

    def _delay_ms(self) -> int:
        place = min(max(self._failures, 1), len(BACKOFF_MS)) - 1
        return int(BACKOFF_MS[place] * self._fraction())


def parse(endpoints: str | Sequence[str]) -> tuple[str, ...]:
    """Parse addresses from a list or a comma-separated string.

    Raises ValueError for a text that is no address, TypeError for anything else.
    """
    addresses = tuple(part.strip() for part in _texts(endpoints) if part.strip())
    for address in addresses:
        if problem := problem_of(address):
            raise ValueError(f"Endpoint {abbreviate(address)} {problem}.")
    return addresses


def is_address(address: str) -> bool:
    """Return whether it has the form host:port, and a node can listen there."""
    return not problem_of(address)


def problem_of(address: str) -> str:
    """Describe what is wrong with an address, to be written after it; empty: nothing."""
    if "/" in address:
        return "is a URL or a path: name the node as host:port, with nothing before or after it"
    host, colon, port = address.rpartition(":")
    if not host or not colon or not port.isascii() or not port.isdecimal():
        return "is no address: write host:port, for example 127.0.0.1:7400"
    digits = port.lstrip("0")
    if not digits:
        return "has port 0, which a node never has: name the one that it listens on"
    if len(digits) > _PORT_DIGITS or int(digits) > PORT_MAX:
        return f"has a port above {PORT_MAX}"
    return ""


def _texts(endpoints: object) -> tuple[str, ...]:
    parts: object = endpoints.split(",") if isinstance(endpoints, str) else endpoints
    texts = tuple(parts) if isinstance(parts, Iterable) else (parts,)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(
            "endpoints names nodes as host:port, in one text with commas or in a list, "
            f"not {abbreviate(endpoints)}."
        )
    return cast("tuple[str, ...]", texts)
