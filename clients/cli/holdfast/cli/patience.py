"""How long a command goes from node to node before it gives up. Asks nobody by itself."""

from __future__ import annotations

import time
from typing import Final

import grpc

from holdfast.cli.ending import UNREACHED, fail
from holdfast.cli.tls import UNRESOLVED

WALK_SECONDS: Final = 15.0
UNCONNECTED_SECONDS: Final = 3.0
"""How long to go on while no node can even be connected to: as long as a restart may take."""


class Patience:
    """How long to go from node to node: not for long if there is nobody at any address."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._all = frozenset(addresses)
        self.begin()

    def begin(self) -> None:
        """Wait in full, now or again."""
        self._began = time.monotonic()
        self._nobody: set[str] = set()

    def answered(self, address: str) -> None:
        """A node spoke, if only to say that it does not serve this."""
        self._nobody.discard(address)

    def failed(self, address: str, error: grpc.RpcError) -> None:
        """Note whether there was anybody to refuse."""
        assert isinstance(error, grpc.Call)  # noqa: S101 - what a stub raises is both
        if is_unconnected(error):
            self._nobody.add(address)
        else:
            self._nobody.discard(address)

    def end_if_over(self, what: str, last: str) -> None:
        """End the command when it has waited long enough."""
        nobody = self._nobody >= self._all
        most = UNCONNECTED_SECONDS if nobody else WALK_SECONDS
        if time.monotonic() > self._began + most:
            fail(f"no node served {what} within {most:.0f} s; last: {last}", UNREACHED)


def is_unconnected(error: grpc.Call) -> bool:
    """Whether no connection came about; grpc's channel says so in words alone."""
    words = error.details() or ""
    signs = ("ailed to connect", *UNRESOLVED)
    return error.code() is grpc.StatusCode.UNAVAILABLE and any(sign in words for sign in signs)
