"""Defects of the connections between nodes: whom they believe, and what they still deliver.

Their judges are the tests of the transport, on real sockets: the simulator has connections of its
own, and certificates nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.transport.connections import Incoming, Outgoing
from holdfast.raft.transport.dialling import Dialler
from holdfast.raft.transport.identity import Identity, Peers
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.streams import Streams
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Iterator

    from holdfast.raft.membership import Membership
    from holdfast.raft.wire.greeting import Greeting

ROOM = "tests/unit/raft/transport/"
IDENTITY = ROOM + "test_peer_transport_identity.py::"
NODES = ROOM + "test_peer_transport_nodes.py::"
ANOTHER = "[False-another node of this cluster]"


@seeded("FAULT-29", Scenario(IDENTITY + "test_nobody_but_the_node_itself_is_let_in" + ANOTHER))
def foreign_certificate_accepted() -> Iterator[None]:
    """Whoever has a certificate of the authority is the peer that it says it is.

    A client's certificate is then enough to vote, and to send entries in a leader's name.
    """

    def problem(self: Identity, told: Greeting, connection: socket.socket) -> str:
        del connection
        is_meant = told.addressee == self.node and told.cluster_id == self.cluster_id
        return "" if is_meant and told.sender in self.peers.names else "another node is meant"

    with replaced(Identity, "dialler_problem", problem):
        yield


@seeded(
    "S25 c",
    Scenario(NODES + "test_s25c_a_node_is_reached_at_the_address_on_the_log_or_not_at_all"),
)
def connection_kept_to_another_address() -> Iterator[None]:
    """A node is sent the log where it was dialled before the log said where it is.

    With a wrong address on the log it becomes a voter, and is found by nobody after a restart.
    """

    def is_elsewhere(self: Peers, node: str, address: str) -> bool:
        del self, node, address
        return False

    with replaced(Peers, "is_elsewhere", is_elsewhere):
        yield


@seeded(
    "FAULT-29", Scenario(IDENTITY + "test_nobody_but_the_node_itself_is_sent_anything" + ANOTHER)
)
def foreign_certificate_dialled() -> Iterator[None]:
    """Whoever answers at a peer's address with a certificate of the authority is that peer.

    It is sent the whole log, and its acknowledgements count towards a majority.
    """

    def check(self: Dialler, connection: ssl.SSLSocket, peer: str) -> None:
        del self, connection, peer

    with replaced(Dialler, "_check_certificate", check):
        yield


@seeded(
    "FAULT-29",
    Scenario(
        ROOM + "test_streams.py::test_a_newer_connection_ends_the_older_one_and_all_that_came_on_it"
    ),
)
def older_connection_delivered() -> Iterator[None]:
    """A newer connection of a peer stands beside the older one, whose messages come after its own.

    An old message is then taken for a new one, of a node that has started again in between.
    """

    def add(self: Streams, peer: str, connection: socket.socket, now: float) -> None:
        link = self._incoming[peer] = Incoming(peer, connection, now)
        self._add(link)

    with replaced(Streams, "add_incoming", add):
        yield


@seeded(
    "FAULT-29",
    Scenario(
        ROOM + "test_streams.py::test_a_peer_that_reads_nothing_costs_a_bounded_queue_and_then"
        "_its_connection"
    ),
)
def silence_taken_for_life() -> Iterator[None]:
    """A peer that gives no sign of life keeps its connection, since its system takes bytes for it.

    A process that is stopped is then sent megabytes that nobody reads, and never dialled again.
    """

    def ask(self: Outgoing, now: float) -> None:
        del self, now

    with replaced(Outgoing, "ask", ask):
        yield


@seeded("S25 a", Scenario(NODES + "test_a_node_that_comes_is_dialled_and_let_in[True]"))
def files_decide_whom_to_dial() -> Iterator[None]:
    """A node dials those that its file names, whatever its log says.

    A node that was added gets no entry, and one that was promoted counts and cannot be reached.
    """

    def follow(self: Peers, membership: Membership) -> None:
        del self, membership

    with replaced(Peers, "follow", follow):
        yield


@seeded(
    "S25 a",
    Scenario(NODES + "test_a_node_of_the_cluster_that_nobody_knows_is_heard_and_answered[True]"),
)
def unknown_leader_not_heard() -> Iterator[None]:
    """Whoever is in no list of a node is refused, with any certificate.

    A follower that was away while its next leader was added never hears it, and lags for ever.
    """
    known = Identity.dialler_problem

    def problem(self: Identity, told: Greeting, connection: socket.socket) -> str:
        listed = told.sender in self.peers.names
        return known(self, told, connection) if listed else "it is no peer"

    with replaced(Identity, "dialler_problem", problem):
        yield


@seeded(
    "S25 e",
    Scenario(NODES + "test_the_calls_of_a_node_that_is_not_in_the_log_are_refused"),
)
def removed_node_reads_on() -> Iterator[None]:
    """Calls beside the log are answered for every node that has a certificate.

    A machine that was given away after its node was removed still reads the whole history.
    """

    def reserve(self: PeerTransport, peer: str, method: str) -> str:
        return self._calls.reserve(peer, method) if method else self._links.outsider_problem(peer)

    with replaced(PeerTransport, "_reserve", reserve):
        yield
