"""All connections that carry Raft messages, as the engine's thread selects, reads and writes them.

For each peer one to send on and one to read from. Each turn does a bounded amount for each, and
nothing here ever waits but `wait`. Knows no certificate and no other thread.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from typing import Final

from holdfast.raft.api import BadMessage, TransportHandler
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.connections import ConnectionEnded, Incoming, Outgoing
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.poller import READABLE, WRITABLE, Poller
from holdfast.raft.transport.rivals import Rivals
from holdfast.raft.wire.codec import decode
from holdfast.raft.wire.greeting import OURS

logger = logging.getLogger(__name__)

_ROUNDS: Final = 8
"""How often one turn looks for what has come while it read."""
_LOOK_SECONDS: Final = 0.25
"""How often silent connections are looked for."""
_NONSENSE: Final = (
    "what node {peer!r} sent cannot be read, so the connection has ended, and it {then}: {why}. "
    "Install one version of Holdfast everywhere; if that is so already, report this with the logs "
    "of both nodes"
)


class Streams:
    """The connections. Engine's thread only."""

    def __init__(
        self,
        handler: TransportHandler,
        poller: Poller,
        on_down: Callable[[str], None],
        trouble: Trouble,
        is_replacing: Callable[[str], bool] = lambda _: False,
        age_seconds: float = math.inf,
        on_left: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_down`: hears, after the handler, of each outgoing connection that has ended.

        `trouble`: takes the warnings. `is_replacing`: whether another outgoing connection to a peer
        is about to come. The peer ends the old one then, and nobody is told: the peer's process
        lives, and who led still does. `age_seconds`: how long a peer may send on one connection.
        `on_left`: hears that an incoming connection has ended; it must not touch the connections.
        """
        self._handler, self._poller, self._on_down = handler, poller, on_down
        self._trouble, self._rivals = trouble, Rivals(trouble)
        self._is_replacing, self._age_seconds = is_replacing, age_seconds
        self._on_left = on_left
        self._incoming: dict[str, Incoming] = {}
        self._outgoing: dict[str, Outgoing] = {}
        self._by_descriptor: dict[int, Incoming | Outgoing] = {}
        self._ready: list[tuple[int, int]] | None = None
        """What the last wait found, until a turn has dealt with it."""
        self._ended: list[str] = []
        """Peers whose outgoing connection has ended, of which nobody was told yet."""
        self._left: set[str] = set()
        """Those of them of which is told in any case: the next connection leads elsewhere."""
        self._look_at = 0.0

    # --- connections come ---

    def add_incoming(
        self, peer: str, connection: socket.socket, now: float, protocol: int = OURS.newest
    ) -> None:
        """Read from a connection; nothing that came on an older one is delivered any more."""
        if older := self._incoming.pop(peer, None):
            self._rivals.displaces(peer, older.connection, connection, now)
            self._forget(older)
        link = self._incoming[peer] = Incoming(peer, connection, now, protocol)
        self._add(link)

    def add_outgoing(
        self, peer: str, connection: socket.socket, now: float, protocol: int = OURS.newest
    ) -> None:
        """Send on a connection, and no more on the one before.

        What waited to be sent on that is lost. The handler hears of a new connection, and sends
        again what was not acknowledged.
        """
        if older := self._outgoing.pop(peer, None):
            self._forget(older)
        self._ended = [each for each in self._ended if each != peer]
        link = self._outgoing[peer] = Outgoing(peer, connection, now, protocol)
        self._add(link)
        self._handler.on_connected(peer)

    def _add(self, link: Incoming | Outgoing) -> None:
        self._by_descriptor[link.connection.fileno()] = link
        self._poller.watch(link.connection.fileno())

    def hears(self, peer: str) -> bool:
        """Return whether a peer has a connection to this node."""
        return peer in self._incoming

    def drop(self, peer: str) -> None:
        """End the connections with a node that is not to have any; between two turns."""
        if incoming := self._incoming.pop(peer, None):
            self._forget(incoming)
        outgoing = self._outgoing.pop(peer, None)
        if outgoing is not None:
            self._forget(outgoing)
        if outgoing is not None or peer in self._ended:
            self._ended = [each for each in self._ended if each != peer]
            self._handler.on_disconnected(peer)

    def _forget(self, link: Incoming | Outgoing) -> None:
        self._poller.forget(link.connection.fileno())
        del self._by_descriptor[link.connection.fileno()]
        link.connection.close()

    # --- sending ---

    def send(self, peer: str, frame: bytes, since: int = OURS.oldest) -> bool:
        """Send or queue a frame; False if there is no connection or no room.

        Also False if the connection speaks a protocol before `since`, which is the frame's first.
        """
        link = self._outgoing.get(peer)
        if link is None or link.protocol < since:
            return False
        waited = link.is_waiting
        try:
            is_sent = link.send(frame)
        except ConnectionEnded as error:
            self._end(link, error)
            return False
        if link.is_waiting and not waited:
            self._poller.change(link.connection.fileno(), READABLE | WRITABLE)
        return is_sent

    def _end(self, link: Outgoing, why: Exception) -> None:
        """Give an outgoing connection up; the handler hears of it in the next turn."""
        logger.debug("the connection to %s ended: %s", link.peer, why)
        del self._outgoing[link.peer]
        self._forget(link)
        self._ended.append(link.peer)

    def end_outgoing(self, peer: str, why: str) -> None:
        """End the connection to a peer, if there is one, even in the midst of a turn.

        The handler hears of it with the next turn, also if another connection is about to come.
        """
        if link := self._outgoing.get(peer):
            self._end(link, ConnectionEnded(why))
            self._left.add(peer)

    def tell_of_ended(self) -> None:
        """Tell of the outgoing connections that have ended since the last time."""
        if not self._ended:
            return
        ended = [peer for peer in self._ended if self._is_told(peer)]
        self._ended = [peer for peer in self._ended if peer not in ended]
        self._left.clear()
        for peer in ended:
            self._handler.on_disconnected(peer)
            self._on_down(peer)

    def _is_told(self, peer: str) -> bool:
        return peer in self._left or not self._is_replacing(peer)

    def waiting(self) -> dict[str, int]:
        """Return the bytes that wait to be sent to each connected peer; for people. Any thread."""
        return {link.peer: link.size for link in tuple(self._outgoing.values())}

    # --- a turn ---

    def wait(self, seconds: float) -> None:
        """Wait until there is something to do; not at all, if there is. `turn` does it."""
        self._ready = self._poller.wait(0.0 if self.has_more else seconds)

    @property
    def has_more(self) -> bool:
        """Whether something is to be done of which the poller does not tell."""
        is_told = any(map(self._is_told, self._ended))
        return is_told or any(link.has_more for link in self._incoming.values())

    def turn(self, now: float) -> None:
        """Read and write what is ready. `now`: seconds of the monotone clock.

        What has come meanwhile is read as well, so that one sync serves it, too; but this ends.
        """
        ready, self._ready = self._ready, None
        for _ in range(_ROUNDS):
            found = self._poller.wait(0.0) if ready is None else ready
            if not self._round(found, now):
                break
            ready = None
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look_for_silence(now)

    def _round(self, ready: list[tuple[int, int]], now: float) -> bool:
        """Attend to each connection once; return whether another round may find something new."""
        more = {link.connection.fileno(): 0 for link in self._incoming.values() if link.has_more}
        was_read = False
        for descriptor in more | dict(ready):
            link = self._by_descriptor.get(descriptor)
            if isinstance(link, Incoming):
                self._read(link, now)
                was_read = True
            elif link is not None:
                self._attend(link, now)
        return was_read and not self.has_more

    def _read(self, link: Incoming, now: float) -> None:
        """Deliver what a peer has sent (FAULT-29: nothing behind what no node sends)."""
        try:
            for frame in link.frames(now):
                self._handler.on_message(link.peer, decode(frame, link.protocol))
        except BadMessage as error:
            self._warn_of_nonsense(link.peer, "dials again", error)
            self._end_incoming(link)
        except ConnectionEnded as error:
            logger.debug("the connection from %s ended: %s", link.peer, error)
            self._end_incoming(link)

    def _warn_of_nonsense(self, peer: str, then: str, why: BadMessage) -> None:
        """Tell of a peer once, however often it sends such a thing: it does at each attempt."""
        text = _NONSENSE.format(peer=peer, then=then, why=why)
        self._trouble.warn(f"messages of {peer}", text, "unreadable")

    def _end_incoming(self, link: Incoming) -> None:
        del self._incoming[link.peer]
        self._forget(link)
        self._on_left()

    def _attend(self, link: Outgoing, now: float) -> None:
        """Read a peer's signs of life, and send what waits."""
        try:
            link.hear(now)
            if link.is_waiting and link.flush():
                link.progressed(now)
                if not link.is_waiting:
                    self._poller.change(link.connection.fileno(), READABLE)
        except BadMessage as error:
            self._warn_of_nonsense(link.peer, "is dialled again", error)
            self._end(link, error)
        except ConnectionEnded as error:
            self._end(link, error)

    def _look_for_silence(self, now: float) -> None:
        """End what is silent, but read it once more before: this process may have stood still.

        And what is too old: its dialler has not replaced it in time, or is not let in any more.
        """
        for incoming in list(self._incoming.values()):
            if now - incoming.since > self._age_seconds:
                logger.info(
                    "%s has not replaced its connection in time: it is ended", incoming.peer
                )
                self._end_incoming(incoming)
                continue
            if now - incoming.heard_at >= peer_options.SILENCE_SECONDS:
                self._read(incoming, now)
            is_silent = now - incoming.heard_at >= peer_options.SILENCE_SECONDS
            if is_silent and self._incoming.get(incoming.peer) is incoming:
                self._end_incoming(incoming)
        for outgoing in list(self._outgoing.values()):
            self._ask(outgoing, now)

    def _ask(self, link: Outgoing, now: float) -> None:
        self._attend(link, now)
        if self._outgoing.get(link.peer) is not link:
            return
        waited = link.is_waiting
        try:
            link.ask(now)
        except ConnectionEnded as error:
            self._end(link, error)
            return
        if link.is_waiting and not waited:
            self._poller.change(link.connection.fileno(), READABLE | WRITABLE)

    def end_where(self, is_refused: Callable[[socket.socket], bool]) -> None:
        """End the connections that are not to be used any more."""
        for incoming in [each for each in self._incoming.values() if is_refused(each.connection)]:
            logger.warning(
                "the connection from %s is ended: its certificate is revoked", incoming.peer
            )
            self._end_incoming(incoming)
        for outgoing in [each for each in self._outgoing.values() if is_refused(each.connection)]:
            logger.warning(
                "the connection to %s is ended: its certificate is revoked", outgoing.peer
            )
            self._end(outgoing, ConnectionEnded("its certificate is revoked"))

    def close(self) -> None:
        """Close all connections; nobody is told."""
        for link in self._by_descriptor.values():
            link.connection.close()
        self._by_descriptor.clear()
        self._incoming.clear()
        self._outgoing.clear()
