"""Which node to talk to next: follow the leader, else walk the list, with full-jitter back-off.

Pure: the random fraction comes in as a function. A delay is drawn from the whole range between
nothing and a bound that doubles with each failure in a row, so that a thousand clients that lost
their leader at one moment do not come back at one moment.
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
BACKOFF_FIRST_MS = 50
BACKOFF_MAX_MS = 1_000


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
        """All nodes, as one of them tells, replace those learned before.

        The given ones stay: they are how to come back if all that was learned is gone.
        """
        new = (address for address in dict.fromkeys(addresses) if address not in self._given)
        self._addresses = (*self._given, *new)
        self._place %= len(self._addresses)

    def succeeded(self, address: str) -> None:
        """A call was answered there."""
        if address == self.current:
            self._failures = 0

    def redirected(self, address: str, leader: str | None) -> int:
        """The node there does not lead and names who does; the delay before the next attempt.

        The first hint is followed at once; hints that lead to further hints are slowed down.
        """
        if leader and leader != address:
            if address == self.current:
                self.current = leader
            self._failures += 1
            return 0 if self._failures == 1 else self._delay_ms()
        return self.failed(address)

    def failed(self, address: str, *, move: bool = True) -> int:
        """A call got no usable answer there; the delay before the next attempt.

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
        bound = min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS << min(max(self._failures - 1, 0), 10))
        return int(bound * self._fraction())


def parse(endpoints: str | Sequence[str]) -> tuple[str, ...]:
    """Addresses from a list or a comma-separated string.

    Raises ValueError for what is no address, TypeError for what is no text at all.
    """
    addresses = tuple(part.strip() for part in _texts(endpoints) if part.strip())
    for address in addresses:
        if problem := problem_of(address):
            raise ValueError(f"Endpoint {abbreviate(address)} {problem}.")
    return addresses


def is_address(address: str) -> bool:
    """Whether it is of the form host:port, and a node can listen there."""
    return not problem_of(address)


def problem_of(address: str) -> str:
    """What is wrong with an address, to be read after it; empty: nothing."""
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
