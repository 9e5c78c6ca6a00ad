"""Connections do not last: when a node asks for a new one, and when our own certificate is new.

A node tells the client to open another connection before it ends one (GOAWAY); gRPC does so for
the next call, and streams stay where they are until the node ends them. So whoever has a stream is
told here. New files of credentials count for new channels only, so they replace the old ones.
Knows channels and files, and no call.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

from holdfast.client._rpc.tls_files import check_files, date_flaw, leaf_of, valid_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client._rpc.channel import Tls

_LOGGER = logging.getLogger("holdfast.client")
LOOK_S: Final = 5.0
"""How often the files of credentials are looked at."""
KEEP_S: Final = 600.0
"""How long calls may go on on a channel that was replaced: longer than a join usually waits."""
_READY: Final = grpc.ChannelConnectivity.READY


async def watch_connection(channel: grpc.aio.Channel, on_left: Callable[[], None]) -> None:
    """Call `on_left` whenever the channel's connection takes no new calls any more.

    It may have been lost as well; then its streams end by themselves.
    """
    state = channel.get_state()
    while state is not grpc.ChannelConnectivity.SHUTDOWN:
        await channel.wait_for_state_change(state)
        before, state = state, channel.get_state()
        if before is _READY:
            on_left()


class OldChannels:
    """Channels that get no new calls, until those under way have had their time."""

    def __init__(self) -> None:
        self._closing: dict[grpc.aio.Channel, asyncio.Task[None]] = {}

    def keep(self, channel: grpc.aio.Channel) -> None:
        """Close a channel later."""
        self._closing[channel] = asyncio.create_task(self._close(channel))

    async def _close(self, channel: grpc.aio.Channel) -> None:
        await asyncio.sleep(KEEP_S)
        await channel.close()
        del self._closing[channel]

    async def close(self) -> None:
        """Close all of them now."""
        closing, self._closing = self._closing, {}
        for channel, task in closing.items():
            task.cancel()
            await channel.close()


class FileWatch:
    """Looks at the files of credentials while there is a channel.

    A change counts when it has stayed the same from one look to the next: certificate and key are
    two files, and whoever replaces them does it one after the other.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._before = self._judged = self._seen()
        self._task: asyncio.Task[None] | None = None

    def start(self, on_new: Callable[[], None]) -> None:
        """Begin, if it has not: `on_new` is called when there are new files that can be used."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_for_ever(on_new))

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look_for_ever(self, on_new: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if await asyncio.to_thread(self.look):
                on_new()

    def look(self) -> bool:
        """Return whether there are new files that can be used; blocks."""
        seen, before = self._seen(), self._before
        self._before = seen
        if seen != before or seen == self._judged:
            return False
        self._judged = seen
        try:
            check_files(self._tls)
            problem, told = date_flaw(self._tls), _described(self._tls)
        except (OSError, ValueError) as error:
            problem, told = str(error), ""
        if problem:
            _LOGGER.warning(
                "The files of credentials have changed and cannot be used: %s. Connections that "
                "are open go on; correct the files.",
                problem.removesuffix("."),
            )
        else:
            _LOGGER.info("New connections use new credentials: %s.", told)
        return not problem

    def _seen(self) -> tuple[tuple[int, int, int], ...]:
        given = (self._tls.ca, self._tls.certificate, self._tls.key)
        return tuple(_seen_of(path) for path in given if path is not None)


def _seen_of(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _described(tls: Tls) -> str:
    if tls.certificate is None:
        return f"the authorities in {tls.ca}"
    der = ssl.PEM_cert_to_DER_cert(leaf_of(Path(tls.certificate).read_text("ascii", "replace")))
    return (
        f"{tls.certificate}, fingerprint {hashlib.sha256(der).hexdigest()}, valid until "
        f"{valid_until(tls.certificate)}"
    )
