"""Peer transport: Raft messages over TLS connections that the engine's own thread waits for.

Each node dials each peer and sends on the connection that it dialled; what it receives comes on
connections that peers dialled. Helper threads accept (`accepting`), dial (`dialling`) and greet;
then a connection arrives here, and the engine's thread alone selects, reads and writes, so that no
message changes threads. A newer connection from a peer ends the older one, and nothing of the older
one is delivered after it. Nothing on this port unpickles, and nothing but the strict codec of
`wire` reads what arrives.
"""

from __future__ import annotations

import logging
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from holdfast.raft.api import UNTOLD, Build, TransportHandler
from holdfast.raft.messages import Message
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.accepting import Place, Port, Rooms
from holdfast.raft.transport.dialling import Dialler, Greeted, PeerRefused
from holdfast.raft.transport.identity import Identity
from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.transport.listening import TransportFailed
from holdfast.raft.transport.peer_options import RENEW_AGAIN_PART, RENEWED_AT
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.poller import Poller
from holdfast.raft.transport.side_calls import Answer, SideCalls
from holdfast.raft.transport.streams import Streams
from holdfast.raft.transport.tls import PeerTls
from holdfast.raft.wire.codec import encode, since
from holdfast.raft.wire.greeting import OURS, Versions, common_protocol

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Link:
    """What helper threads and the engine's thread share about one peer; under the lock."""

    incoming: Greeted | None = None
    outgoing: Greeted | None = None
    """Connections that the engine's thread has not taken yet."""
    build: Build | None = None
    """What the peer runs by its last greeting; None: it has not been met."""
    down: threading.Event = field(default_factory=lambda: _set(threading.Event()))
    """Set while there is no outgoing connection, so that the peer is dialled."""
    is_replacing: bool = False
    """Whether another outgoing connection is being made in place of one that still serves."""

    def close(self) -> None:
        """Close what nobody has taken, and let the thread that dials go on."""
        for each in (self.incoming, self.outgoing):
            if each is not None:
                each.connection.close()
        self.incoming = self.outgoing = None
        self.down.set()


def _set(event: threading.Event) -> threading.Event:
    event.set()
    return event


class PeerTransport:
    """`api.Transport` and `api.Park` between processes.

    `tls` None is for loopback only; the caller checks that.
    """

    def __init__(
        self,
        cluster_id: str,
        node_id: str,
        listen: str,
        peers: dict[str, str],
        tls: PeerTls | None,
        connections_max: int = peer_options.CONNECTIONS_MAX,
        build: Build = UNTOLD,
        lineage: Lineage | None = None,
    ) -> None:
        """`peers`: the peer address of every other node by its id. `build`: what this node runs.

        `connections_max`: how many callers there may be before they have greeted. `lineage`: from
        which restore this node's disk comes; None: from none.
        """
        self._identity = Identity(cluster_id, node_id, peers, tls, build, lineage)
        self._place = Place(listen, connections_max, "")
        self._trouble = Trouble()
        self._dialler = Dialler(self._identity)
        self._calls = SideCalls(self._dialler)
        self._links = {peer: _Link() for peer in peers}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._port: Port | None = None
        self._poller: Poller | None = None
        """Where the engine's thread waits."""
        self._wake: Callable[[], None] = lambda: None
        self._has_new = False
        self._has_revoked = False
        """Whether connections that are open may show a certificate that is revoked."""
        self._age_seconds = math.inf
        self._streams: Streams | None = None
        """The engine's thread's own."""

    def troubles(self) -> list[str]:
        """Say why peers are refused now, or refuse this node; for people. Any thread."""
        return self._trouble.lasting()

    def builds(self) -> dict[str, Build]:
        """Return what each peer runs by its last greeting, also if it is away now. Any thread."""
        with self._lock:
            return {p: each.build for p, each in self._links.items() if each.build is not None}

    def waiting(self) -> dict[str, int]:
        """Return the bytes that wait to be sent to each connected peer. Any thread."""
        return self._streams.waiting() if self._streams is not None else {}

    def tell_level(self, level: Callable[[], int]) -> None:
        """Have greetings tell the level in force that `level` returns; 0: none is known."""
        self._identity.level = level

    def send_clients_to(self, address: str) -> None:
        """Set the address, host:port, that clients at the wrong port are told; before `start`."""
        self._place = self._place._replace(clients_at=address)

    def end_connections_after(self, seconds: float) -> None:
        """Before `start`: let no connection become older. Its dialler replaces it before.

        So who is not let in any more, by new credentials, is out after that time.
        """
        self._age_seconds = seconds

    def replace_tls(self, tls: PeerTls) -> None:
        """Have new connections use other credentials. Any thread. Raises TlsUnusable."""
        self._identity.replace_tls(tls)

    def refuse_certificates(self, revoked: frozenset[str]) -> None:
        """Refuse peers that show one of these, and end their connections. Any thread.

        `revoked`: all fingerprints that are refused from now on.
        """
        self._identity.revoked = revoked
        self._calls.end_of(revoked)
        self._has_revoked = True
        self._wake()

    def offer(self, method: str, answer: Answer) -> None:
        """Before `start`: have `answer` serve calls of `method`, one at a time for each peer."""
        self._calls.offer(method, answer)

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """Return a peer's answer in chunks; blocks. Raises OSError if it breaks off or is refused.

        It has a connection of its own, so that its bytes never delay a heartbeat (S7, S18).
        """
        return self._calls.call(peer, method, request)

    # --- api.Transport ---

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        """Listen and dial. Raises TransportFailed if the port cannot be served."""
        self._wake = wake
        self._poller = poller = Poller()
        self._streams = Streams(
            *(handler, poller, self._dial_again, self._trouble),
            *(self._is_replacing, self._age_seconds),
        )
        rooms = Rooms(self._take_in, self._calls.reserve, self._calls.serve)
        try:
            self._port = Port(self._identity, rooms, self._trouble, self._place)
        except TransportFailed:
            poller.close()
            raise
        for peer in self._links:
            threading.Thread(
                target=self._dial_for_ever, args=(peer,), name=f"peer-{peer}", daemon=True
            ).start()

    def send(self, peer: str, message: Message) -> bool:
        """Send or queue a message; False if there is no connection or its queue is full."""
        if self._streams is None:
            return False
        return self._streams.send(peer, encode(message), since(message))

    def poll(self) -> None:
        """Take new connections, then read and write what is ready: a bounded amount of each."""
        if self._streams is None or self._closed.is_set():
            return
        now = time.monotonic()
        self._streams.tell_of_ended()
        if self._has_new:
            self._take_new(self._streams, now)
            self._has_revoked = True  # it may have been revoked since the greeting
        if self._has_revoked:
            self._has_revoked = False
            self._streams.end_where(self._identity.is_revoked)
        self._streams.turn(now)
        self._streams.tell_of_ended()

    def close(self) -> None:
        """End all connections and threads; queued messages are lost, as on any broken connection.

        By the engine's thread.
        """
        self._closed.set()
        if self._port is not None:
            self._port.close()
        self._dialler.close()
        self._calls.close()
        with self._lock:
            for link in self._links.values():
                link.close()
        if self._streams is not None:
            self._streams.close()
        if self._poller is not None:
            self._poller.close()

    # --- api.Park ---

    def park(self, seconds: float) -> None:
        """Wait until a connection is ready, or somebody calls `unpark`."""
        if self._streams is not None and not self._closed.is_set():
            self._streams.wait(seconds)

    def unpark(self) -> None:
        """End the present wait, or the next one. Any thread."""
        if self._poller is not None:
            self._poller.ring()

    # --- helper threads ---

    def _take_in(self, peer: str, connection: socket.socket, versions: Versions) -> None:
        """Leave a connection that a peer dialled to the engine's thread."""
        with self._lock:
            if self._closed.is_set():
                connection.close()
                return
            link = self._links[peer]
            older, link.incoming = link.incoming, Greeted(connection, versions)
            link.build, self._has_new = versions.build, True
        if older is not None:
            older.connection.close()
        self._wake()

    def _dial_for_ever(self, peer: str) -> None:
        link = self._links[peer]
        while not self._closed.is_set():
            pause = self._dial(peer)
            if pause is None or not link.down.is_set():
                self._wait_while_up(link, is_new=pause is None)
            else:
                self._closed.wait(pause)

    def _wait_while_up(self, link: _Link, *, is_new: bool) -> None:
        """Wait until the outgoing connection has ended, or it is time to replace it.

        `is_new`: it has just been made; else an attempt to replace it has failed.
        """
        if self._age_seconds == math.inf:
            link.down.wait()
            return
        part = random.uniform(*RENEWED_AT) if is_new else RENEW_AGAIN_PART  # noqa: S311 - no secret
        link.is_replacing = not link.down.wait(self._age_seconds * part)

    def _dial(self, peer: str) -> float | None:
        """Dial once. Return None if the connection is made, else the pause before the next time."""
        pause = peer_options.REDIAL_SECONDS
        try:
            self._hand_over(peer, self._dialler.dial(peer))
        except PeerRefused as error:
            if not self._closed.is_set():
                self._trouble.warn(f"to {peer}", str(error))
            pause = peer_options.REFUSED_SECONDS
        except OSError as error:
            logger.debug("no connection to %s: %s", peer, error)
        except Exception as error:  # noqa: BLE001 - one odd answer must not end all dialling
            address = self._identity.peers[peer]
            problem = f"node {peer!r} cannot be dialled at {address}: {error!r}. It is dialled "
            self._trouble.warn(f"to {peer}", problem + "again; is its peer address right?")
            pause = peer_options.REFUSED_SECONDS
        else:
            return None
        self._links[peer].is_replacing = False
        self._wake()  # the old connection may have ended meanwhile: now that is told
        return pause

    def _hand_over(self, peer: str, dialled: Greeted) -> None:
        """Leave a connection to the engine's thread."""
        self._trouble.over(f"to {peer}")
        link = self._links[peer]
        with self._lock:
            if self._closed.is_set():
                dialled.connection.close()
                return
            older, link.outgoing = link.outgoing, dialled
            link.down.clear()
            link.build = dialled.versions.build
            self._has_new = True
        if older is not None:
            older.connection.close()
        self._wake()

    # --- the engine's thread ---

    def _take_new(self, streams: Streams, now: float) -> None:
        """Begin to use the connections that helper threads have made."""
        with self._lock:
            new = [(peer, each.incoming, each.outgoing) for peer, each in self._links.items()]
            for each in self._links.values():
                if each.outgoing is not None:
                    each.is_replacing = False
                each.incoming = each.outgoing = None
            self._has_new = False
        for peer, incoming, outgoing in new:
            if incoming is not None:
                streams.add_incoming(peer, incoming.connection, now, _protocol(incoming))
            if outgoing is not None:
                streams.add_outgoing(peer, outgoing.connection, now, _protocol(outgoing))

    def _is_replacing(self, peer: str) -> bool:
        return self._links[peer].is_replacing

    def _dial_again(self, peer: str) -> None:
        self._calls.peer_is_gone(peer)
        self._links[peer].down.set()


def _protocol(met: Greeted) -> int:
    """Return what both sides speak; who speaks nothing in common was refused."""
    return common_protocol(OURS, met.versions) or OURS.oldest
