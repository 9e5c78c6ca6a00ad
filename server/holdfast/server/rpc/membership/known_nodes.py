"""The nodes of the cluster as they are now, and where each is reached (S25, docs/adr/0034).

The log says which there are. It says where those are that came while the cluster served; where the
first ones are, each node's file says. Files do not count for anything else once the log speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from holdfast.raft.membership import ClusterNode, Membership

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.config.node_config import Peer


class KnownNode(NamedTuple):
    """A node; its addresses are host:port, or empty if neither the log nor the file has them."""

    name: str
    client_address: str
    peer_address: str
    is_voter: bool


class KnownNodes(Mapping[str, KnownNode]):
    """The nodes of the membership in force, by name and in the order of names."""

    def __init__(self, replica: ReplicaLike, peers: Iterable[Peer]) -> None:
        """`peers`: the nodes by this node's file."""
        self._replica = replica
        self._file = {
            peer.name: (str(peer.client_address), str(peer.peer_address)) for peer in peers
        }
        self._of: Membership | None = None
        self._nodes: dict[str, KnownNode] = {}

    def _now(self) -> dict[str, KnownNode]:
        """Return them; made once for each membership, which is an immutable value."""
        membership = self._replica.membership
        if membership is not self._of:
            self._nodes = {name: self._known(membership, name) for name in membership.names}
            self._of = membership
        return self._nodes

    def _known(self, membership: Membership, name: str) -> KnownNode:
        (node,) = (each for each in membership.nodes if each.name == name)
        _, peer, client = self._addressed(node)
        return KnownNode(name, client, peer, name in membership.voter_names)

    def membership(self) -> Membership:
        """Return the membership in force, in which each node has its addresses as far as known."""
        now = self._replica.membership
        return replace(
            now,
            voters=tuple(map(self._addressed, now.voters)),
            learners=tuple(map(self._addressed, now.learners)),
        )

    def _addressed(self, node: ClusterNode) -> ClusterNode:
        client, peer = self._file.get(node.name, ("", ""))
        return ClusterNode(node.name, node.peer_address or peer, node.client_address or client)

    def __getitem__(self, name: str) -> KnownNode:
        return self._now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())


class ClientAddresses(Mapping[str, str]):
    """Where clients reach each of these nodes, host:port; empty if it is not known."""

    def __init__(self, nodes: KnownNodes) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> str:
        return self._nodes[name].client_address

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)
