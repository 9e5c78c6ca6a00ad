"""Dials a peer: TCP, TLS, certificate and greetings, by blocking calls with deadlines.

What comes back is a connection on which the peer has accepted this node. Knows nothing of what it
is for, and is used by helper threads alone.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Final, NamedTuple, NoReturn

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.blocking import OpenSockets, read_frame, split_address
from holdfast.raft.transport.frames import FrameReader, pack
from holdfast.raft.transport.identity import Identity, shown
from holdfast.raft.transport.tls import ENDED, GRPC, TlsUnusable
from holdfast.raft.wire.greeting import (
    BYTES_MAX,
    REFUSAL_CHARACTERS,
    Versions,
    decode_answer,
    encode_greeting,
)

_HTTP2_SETTINGS: Final = b"\x04\x00\x00\x00\x00\x00"
"""What follows the length in the first frame of a server of HTTP/2: kind, flags, stream."""


class PeerRefused(OSError):
    """The peer refuses this node, or is refused by it; the text says why and what to do."""


class Greeted(NamedTuple):
    """A connection that blocks, on which a peer and this node have accepted each other."""

    connection: socket.socket
    versions: Versions
    """What the peer speaks and runs."""
    address: str = ""
    """Where this node dialled it, host:port; empty: the peer has dialled this node."""


class Dialler:
    """Makes connections to peers. Any thread; `close` ends the waits of all others."""

    def __init__(self, identity: Identity) -> None:
        """`identity`: who this node is, and who and where its peers are."""
        self._identity = identity
        self._sockets = OpenSockets()

    def close(self) -> None:
        """End all attempts, for good."""
        self._sockets.end_all()

    def dial(self, peer: str, method: str = "") -> Greeted:
        """Connect to a peer and greet it.

        `method`: as in a greeting. Raises PeerRefused; another OSError for what a redial may mend.
        """
        connection, address = self._connect(peer)
        self._sockets.add(connection)
        try:
            versions = self._greet(connection, peer, method)
        except BaseException:
            self._sockets.close(connection)
            raise
        self._sockets.release(connection)
        return Greeted(connection, versions, address)

    def _connect(self, peer: str) -> tuple[socket.socket, str]:
        """Connect by TCP, to the address that is returned; TLS is only put around it."""
        try:
            contexts = self._identity.contexts
        except TlsUnusable as error:
            raise PeerRefused(f"this node's own credentials cannot be used: {error}") from error
        if not (told := self._address(peer)):
            raise PeerRefused(
                f"nobody has told where node {peer!r} is reached: neither the log nor this node's "
                "file has its peer address. It is dialled as soon as it has connected itself"
            )
        connection = socket.create_connection(split_address(told), peer_options.CONNECT_SECONDS)
        peer_options.set_options(connection)
        if contexts is None:
            return connection, told
        secured = contexts.dialling.wrap_socket(connection, do_handshake_on_connect=False)
        return secured, told

    def _address(self, peer: str) -> str:
        return self._identity.peers.address(peer)

    def _greet(self, connection: socket.socket, peer: str, method: str) -> Versions:
        """Shake hands; check the peer's certificate and greeting before anything else is sent."""
        deadline = time.monotonic() + peer_options.HANDSHAKE_SECONDS
        connection.settimeout(peer_options.HANDSHAKE_SECONDS)
        try:
            if isinstance(connection, ssl.SSLSocket):
                connection.do_handshake()
                self._check_certificate(connection, peer)
            connection.sendall(pack(encode_greeting(self._identity.greeting(peer, method))))
            return self._hear(connection, peer, deadline)
        except ENDED as error:
            raise OSError(f"the connection ended: {error}") from error
        except ssl.SSLError as error:
            self._tls_failed(error, peer)

    def _check_certificate(self, connection: ssl.SSLSocket, peer: str) -> None:
        if connection.selected_alpn_protocol() == GRPC:
            self._no_peer_port(peer)
        if problem := self._identity.certificate_problem(connection, peer):
            raise PeerRefused(
                f"who answers at {self._address(peer)} is not node {peer!r}: {problem}. "
                "Correct the peer address, or give that node a new certificate"
            )

    def _hear(self, connection: socket.socket, peer: str, deadline: float) -> Versions:
        """Read the acceptor's answer."""
        reader = FrameReader(BYTES_MAX)
        try:
            told = decode_answer(read_frame(connection, reader, deadline))
        except BadMessage as error:
            if reader.unread[3:].startswith(_HTTP2_SETTINGS[: len(reader.unread) - 3]):
                self._no_peer_port(peer)
            raise PeerRefused(f"who answers for node {peer!r} greets wrongly: {error}") from error
        if isinstance(told, str):
            why = shown(told, REFUSAL_CHARACTERS)
            raise PeerRefused(f"node {peer!r} refuses this node: {why}")
        if problem := self._identity.acceptor_problem(peer, told):
            raise PeerRefused(problem)
        return told.versions

    def _no_peer_port(self, peer: str) -> NoReturn:
        raise PeerRefused(
            f"who answers at {self._address(peer)} for node {peer!r} speaks gRPC: that is "
            "where clients connect, or that node runs an older version of Holdfast. Correct the "
            "peer address, or stop all nodes and install one version of Holdfast everywhere"
        )

    def _tls_failed(self, error: ssl.SSLError, peer: str) -> NoReturn:
        address = self._address(peer)
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        raise PeerRefused(
            f"no TLS between this node and node {peer!r} at {address}: {why}. One of the two "
            "certificates is not of the authority that the other side has, is expired, or is not "
            "for nodes; or another program answers there"
        ) from error
