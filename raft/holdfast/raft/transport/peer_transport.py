"""Peer transport: Raft messages over TLS connections that the engine's own thread waits for.

Each node dials each peer and sends on the connection that it dialled; what it receives comes on
connections that peers dialled. Helper threads accept (`accepting`), dial (`dialling`) and greet;
then a connection arrives here, and the engine's thread alone selects, reads and writes, so that no
message changes threads. A newer connection from a peer ends the older one, and nothing of the older
one is delivered after it. Nothing on this port unpickles, and nothing but the strict codec of
`wire` reads what arrives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.raft.api import UNTOLD, Build, TransportHandler
from holdfast.raft.messages import Message
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.accepting import Place, Port, Rooms
from holdfast.raft.transport.dialling import Dialler, Greeted
from holdfast.raft.transport.identity import Identity
from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.transport.links import Links
from holdfast.raft.transport.listening import TransportFailed
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.poller import Poller
from holdfast.raft.transport.side_calls import Answer, SideCalls
from holdfast.raft.transport.streams import Streams
from holdfast.raft.transport.tls import PeerTls
from holdfast.raft.wire.codec import encode, since
from holdfast.raft.wire.greeting import OURS, common_protocol

if TYPE_CHECKING:
    from holdfast.raft.membership import Membership


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
        self._links = Links(self._identity.peers, self._dialler, self._trouble)
        self._node = node_id
        self._closed = threading.Event()
        self._port: Port | None = None
        self._poller: Poller | None = None
        """Where the engine's thread waits."""
        self._wake: Callable[[], None] = lambda: None
        self._has_left = False
        """Whether a node may be linked that is no peer, and has gone."""
        self._has_revoked = False
        """Whether connections that are open may show a certificate that is revoked."""
        self._streams: Streams | None = None
        """The engine's thread's own."""
        self._dialled_at: dict[str, str] = {}
        """Where the last connection to each node was dialled; the engine's thread's own."""

    def troubles(self) -> list[str]:
        """Say why peers are refused now, or refuse this node; for people. Any thread."""
        return self._trouble.lasting()

    def builds(self) -> dict[str, Build]:
        """Return what each peer runs by its last greeting, also if it is away now. Any thread."""
        return self._links.builds()

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
        self._links.age_seconds = seconds

    def tell_address(self, address: str) -> None:
        """Before `start`: have greetings tell where this node is reached, host:port."""
        self._identity.reached_at = address

    def follow(self, membership: Membership) -> None:
        """Have the nodes of another membership as peers, and no others: it is in force now (S25).

        By the engine's thread, or before it ticks.
        """
        self._identity.peers.follow(membership)
        self._leave_other_addresses()
        self._links.follow()
        self._has_left = True

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
        self._identity.lineage.holds_nothing = handler.holds_nothing
        self._identity.lineage.on_later_restore = handler.on_later_restore
        self._poller = poller = Poller()
        self._streams = Streams(
            *(handler, poller, self._dial_again, self._trouble),
            *(self._links.is_replacing, self._links.age_seconds, self._note_left),
        )
        rooms = Rooms(self._links.take_in, self._reserve, self._calls.serve)
        try:
            self._port = Port(self._identity, rooms, self._trouble, self._place)
        except TransportFailed:
            poller.close()
            raise
        self._links.start(wake)

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
        if self._has_left:
            self._part_with_outsiders(self._streams)
        if self._links.has_new:
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
        self._links.close()
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

    def _reserve(self, peer: str, method: str) -> str:
        """Say why a node is not let in that has proved who it is; empty if it is.

        `method`: what it calls, and then a place is kept for that; empty for a stream of messages.
        A node of which the log does not tell is heard, as its messages are judged by the engine.
        Its calls are not: it has no claim to what they read.
        """
        if not method:
            return self._links.outsider_problem(peer)
        if peer in self._identity.peers.names:
            return self._calls.reserve(peer, method)
        return f"node {peer!r} is none of the cluster's nodes, as far as {self._node!r} knows"

    # --- the engine's thread ---

    def _take_new(self, streams: Streams, now: float) -> None:
        """Begin to use the connections that helper threads have made."""
        for peer, incoming, outgoing in self._links.take_new():
            if incoming is not None:
                streams.add_incoming(peer, incoming.connection, now, _protocol(incoming))
            if outgoing is None:
                continue
            if self._identity.peers.is_elsewhere(peer, outgoing.address):
                outgoing.connection.close()
                self._links.dial_again(peer)
                continue
            self._dialled_at[peer] = outgoing.address
            streams.add_outgoing(peer, outgoing.connection, now, _protocol(outgoing))

    def _leave_other_addresses(self) -> None:
        """Send on no connection that was dialled where the log does not say the node is (S25 c).

        Before it was added, a node is dialled where it says itself. Were that connection kept, a
        wrong address on the log would be found when it ends: when the node votes.
        """
        for peer, address in self._dialled_at.items():
            if self._streams is not None and self._identity.peers.is_elsewhere(peer, address):
                self._streams.end_outgoing(peer, f"{address} is not its address on the log")

    def _part_with_outsiders(self, streams: Streams) -> None:
        """Give up the connections to nodes that are no peers, and have none to this one."""
        self._has_left = False
        for outsider in self._links.outsiders():
            if not streams.hears(outsider) and self._links.part(outsider):
                streams.drop(outsider)
                self._dialled_at.pop(outsider, None)
                self._calls.peer_is_gone(outsider)

    def _note_left(self) -> None:
        self._has_left = True

    def _dial_again(self, peer: str) -> None:
        self._calls.peer_is_gone(peer)
        self._links.dial_again(peer)


def _protocol(met: Greeted) -> int:
    """Return what both sides speak; who speaks nothing in common was refused."""
    return common_protocol(OURS, met.versions) or OURS.oldest
