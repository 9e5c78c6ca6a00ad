"""Strangers who fill a port: they connect, do nothing, and come again as soon as they are put out.

A program of its own, so that the harm is theirs and not the tests' own; it runs until it is killed:

    python -m harness.strangers HOST:PORT HOW_MANY [CA CERTIFICATE_AND_KEY]

With a certificate they finish the handshakes of TLS and HTTP/2; without one they say nothing at
all. Prints a line whenever there have been as many connections again as there are strangers.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.children import environment
from harness.hostile import PREFACE, SETTINGS, frame

PAUSE_S = 0.001
"""Between two attempts of one stranger; without it the machine would be what gives in."""


def context(ca: str, pair: str) -> ssl.SSLContext:
    """TLS as a client of gRPC offers it, whoever the other side is."""
    made = ssl.create_default_context(cafile=ca)
    made.check_hostname = False
    made.load_cert_chain(pair)
    made.set_alpn_protocols(["h2"])
    return made


class Strangers:
    """So many of them, and how often one was connected."""

    def __init__(self, address: str, many: int, tls: ssl.SSLContext | None) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port, self._many, self._tls = host, int(port), many, tls
        self._connected = 0

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._many):
                group.create_task(self._one())

    async def _one(self) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError):
                await self._hold()
            await asyncio.sleep(PAUSE_S)

    async def _hold(self) -> None:
        """One connection for as long as it lasts."""
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        self._connected += 1
        if self._connected % self._many == 0:
            print("once more", flush=True)
        try:
            if self._tls is not None:
                writer.write(PREFACE + frame(SETTINGS))
            while await reader.read(1 << 16):
                pass
        finally:
            writer.close()


@contextlib.contextmanager
def strangers(address: str, many: int, *files: str) -> Iterator[Callable[[], None]]:
    """Strangers in a process of their own; call what this gives to wait for `many` connections."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.strangers", address, str(many), *files],
        cwd=Path(__file__).parents[1],
        env=environment(),
        stdout=subprocess.PIPE,
    )
    told = process.stdout
    assert told is not None

    def once_more() -> None:
        assert told.readline() == b"once more\n", "the strangers gave up, so nothing is shown"

    try:
        once_more()
        yield once_more
        assert process.poll() is None, "the strangers gave up, so nothing was shown"
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    shown = context(*sys.argv[3:]) if sys.argv[3:] else None
    asyncio.run(Strangers(sys.argv[1], int(sys.argv[2]), shown).run())
