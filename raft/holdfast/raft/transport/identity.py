"""Who this node and its peers are, and whether the one at the other end is the one that is meant.

A greeting says it and a certificate proves it, in both directions (docs/adr/0018). Knows no socket
but to read the certificate that was shown on it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from holdfast.raft.api import UNTOLD, Build
from holdfast.raft.transport.lineage import Lineage
from holdfast.raft.transport.peer_names import certificate_problem
from holdfast.raft.transport.tls import (
    Contexts,
    PeerTls,
    certificate_of,
    contexts,
    shown_fingerprints,
)
from holdfast.raft.wire.greeting import OURS, Greeting, Versions, version_problem

if TYPE_CHECKING:
    from holdfast.raft.membership import Membership

_SHOWN_CHARACTERS: Final = 100


class Peers:
    """Which nodes are peers of this one, and where each is reached (S25). Any thread reads it.

    The log says it, from its first entry of membership on; before that, the file that the node was
    started with. Another node of the cluster may be a newer one, of which the log here does not
    tell yet; it says in its greeting where it is reached.
    """

    def __init__(self, node: str, begins_with: Mapping[str, str]) -> None:
        """`begins_with`: the peer address of every other node by the file of node `node`."""
        self._node = node
        self._file = dict(begins_with)
        self._log: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self.names: tuple[str, ...] = tuple(sorted(begins_with))
        """All other nodes of the cluster, in order."""

    def follow(self, membership: Membership) -> None:
        """Go by another membership, which is in force now."""
        self._log = {node.name: node.peer_address for node in membership.nodes}
        self.names = tuple(name for name in membership.names if name != self._node)

    def note_told(self, node: str, address: str) -> None:
        """Note where a node says that it is reached; empty: it does not say it."""
        self._told[node] = address

    def forget(self, node: str) -> None:
        """Forget what a node has said that is no peer."""
        self._told.pop(node, None)

    def address(self, node: str) -> str:
        """Return where a node is reached, host:port; empty: nobody has said it.

        What the log says has the first word, and what the node itself says the last.
        """
        return self._log.get(node) or self._file.get(node) or self._told.get(node, "")

    def is_elsewhere(self, node: str, address: str) -> bool:
        """Return whether the log says that a node is not reached at this address (S25 c)."""
        return bool(self._log.get(node)) and self._log[node] != address


class Identity:
    """The node, its peers with their addresses, and its credentials. Any thread."""

    def __init__(
        self,
        cluster_id: str,
        node: str,
        peers: Mapping[str, str],
        tls: PeerTls | None,
        build: Build = UNTOLD,
        lineage: Lineage | None = None,
    ) -> None:
        """`peers`: the peer address of every other node by the file. `tls` None: loopback only.

        `lineage` None: this node's disk was never restored.
        """
        self.lineage = lineage or Lineage()
        self.cluster_id, self.node, self.tls = cluster_id, node, tls
        self.peers = Peers(node, peers)
        self.reached_at = ""
        """Where this node is reached by others, host:port."""
        self._contexts: Contexts | None = None
        self._build = build
        self.level: Callable[[], int] = lambda: 0
        """Tells the level in force as far as this node knows; 0: it knows of none."""
        self.revoked: frozenset[str] = frozenset()
        """Fingerprints of certificates that are refused."""

    @property
    def versions(self) -> Versions:
        """What this node speaks and runs now."""
        return OURS._replace(build=self._build, level=self.level())

    @property
    def contexts(self) -> Contexts | None:
        """The TLS of both directions, as it is in force now. Raises TlsUnusable."""
        if self._contexts is None and self.tls is not None:
            self._contexts = contexts(self.tls)
        return self._contexts

    def replace_tls(self, tls: PeerTls) -> None:
        """Have new connections use others. Raises TlsUnusable, and keeps what was in force."""
        self._contexts, self.tls = contexts(tls), tls

    def greeting(self, peer: str, method: str = "") -> Greeting:
        """Return what this node says to a peer first."""
        lineage = self.lineage
        return Greeting(
            *(self.cluster_id, self.node, peer, self.versions, method),
            recovery_number=lineage.number,
            blank=lineage.blank,
            peer_address=self.reached_at,
        )

    def version_problem(self, peer: str, theirs: Versions) -> str:
        """Say why a peer with these versions cannot run with this node; empty if it can."""
        return version_problem(self.node, peer, theirs, self.versions)

    def dialler_problem(self, told: Greeting, connection: socket.socket) -> str:
        """Say why the dialler is not the node that it says, or means another; empty if it is.

        It need not be one that this node knows: its log may not tell yet of a newer one (S25).
        Versions are compared by the caller: an unlike peer is no stranger.
        """
        if told.addressee != self.node:
            return (
                f"this is node {self.node!r}, not {shown(told.addressee)}: a peer address is wrong"
            )
        if told.cluster_id != self.cluster_id:
            ours = f"this node belongs to cluster {self.cluster_id!r}"
            return f"{ours}, not to {shown(told.cluster_id)}"
        if told.sender == self.node:
            return (
                f"this is node {self.node!r}, too: "
                "two processes have one name, or a peer address is wrong"
            )
        return self.certificate_problem(connection, told.sender)

    def certificate_problem(self, connection: socket.socket, peer: str) -> str:
        """Say why the certificate shown on a connection is not that peer's; empty if it is.

        A name of Holdfast 0.1, which names no cluster, is no proof for who is no peer.
        """
        if self.tls is None:
            return ""
        if not isinstance(connection, ssl.SSLSocket):
            raise TypeError("TLS is configured, and this connection has none")
        if revoked := self._revoked_of(connection):
            return (
                f"the certificate of node {peer!r} (fingerprint {revoked}) is "
                "revoked: give that node a new one (`holdfast certs renew`)"
            )
        pem = certificate_of(connection)
        accept_old = self.tls.accept_old_names and peer in self.peers.names
        return certificate_problem(pem, self.cluster_id, peer, accept_old=accept_old)

    def is_revoked(self, connection: socket.socket) -> bool:
        """Return whether a connection shows a revoked certificate.

        By the thread that reads the connection: the library does not say that others may ask.
        """
        return bool(self._revoked_of(connection))

    def _revoked_of(self, connection: socket.socket) -> str:
        """Return the fingerprint by which the certificate shown is revoked; "" if it is not."""
        revoked = self.revoked
        shown = shown_fingerprints(connection) if revoked else ()
        return next((each for each in shown if each in revoked), "")

    def certified_peer(self, connection: socket.socket) -> str | None:
        """Return the peer whose certificate was shown, for one who cannot say who it is."""
        if self.tls is None:
            return None
        known = (p for p in self.peers.names if not self.certificate_problem(connection, p))
        return next(known, None)

    def acceptor_problem(self, peer: str, told: Greeting) -> str:
        """Say why the acceptor is not the peer that was dialled, or unlike; empty if it is."""
        if problem := self.version_problem(peer, told.versions):
            return problem
        if told[:3] == (self.cluster_id, peer, self.node):
            return self.lineage.problem(self.node, peer, told)
        return (
            f"who answers for node {peer!r} says that it is {shown(told.sender)} of cluster "
            f"{shown(told.cluster_id)}, and speaks to {shown(told.addressee)}: a peer address is "
            "wrong"
        )


def shown(told: str, most: int = _SHOWN_CHARACTERS) -> str:
    """Quote the first `most` characters of a stranger's text, without control characters."""
    return repr(told[:most])
