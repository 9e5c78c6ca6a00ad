"""The nodes of the cluster as this node sees them, and the transfer of the leadership."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.raft.api import PeerStatus, Status
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.config.node_config import Peer


def own_version() -> str:
    """Return Holdfast's version as installed; "unknown" in a bare checkout."""
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"


VERSION: Final = own_version()


class Nodes:
    """The members of the cluster and their state."""

    def __init__(
        self,
        replica: ReplicaLike,
        peers: Iterable[Peer],
        troubles: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`troubles`: sentences that say why peers are refused now, or refuse this node."""
        self._replica, self._troubles = replica, troubles
        self._peers = {peer.name: peer for peer in sorted(peers, key=lambda peer: peer.name)}

    def described(self) -> a.DescribeClusterResponse:
        """Describe the cluster at this moment, for people; nothing may be decided on it."""
        state, status = self._replica.state, self._replica.status()
        response = a.DescribeClusterResponse(
            cluster_id=state.cluster_id,
            term=status.term,
            leader=status.leader or "",
            node=self._replica.node_id,
            commit_index=status.commit_index,
            applied_index=state.applied_index,
            version=VERSION,
            recovery_number=state.recovery_number,
            digest=self._replica.chain_head,
            holdfast=x.ResponseExtras(
                log_time_ms=self._replica.log_time_ms(),
                message="\n".join(self._troubles()) or None,
            ),
        )
        seen = {peer.peer: peer for peer in status.peers}
        response.nodes.extend(
            self._node(peer, status, seen.get(name)) for name, peer in self._peers.items()
        )
        return response

    def _node(self, peer: Peer, status: Status, seen: PeerStatus | None) -> a.DescribedNode:
        node = a.DescribedNode(
            name=peer.name,
            client_address=str(peer.client_address),
            peer_address=str(peer.peer_address),
            role=_role(peer.name, self._replica.node_id, status, seen),
        )
        if peer.name == self._replica.node_id:
            node.match_index = status.last_index
        elif seen is not None and status.role == "leader":
            node.match_index = seen.acked_index
        return node

    def transfer(self, node: str) -> a.TransferLeadershipResponse:
        """Tell a node to stand for election; "": the most up-to-date one."""
        peers = [p for p in self._replica.status().peers if p.connected and not p.streaming]
        best = max(peers, key=lambda peer: peer.acked_index, default=None)
        target = node or (best.peer if best else "")
        problem = self._problem(target, {peer.peer for peer in peers})
        if problem:
            return a.TransferLeadershipResponse(
                error_code=e.ERROR_CODE_INVALID_REQUEST, holdfast=x.ResponseExtras(message=problem)
            )
        if target != self._replica.node_id:
            self._replica.transfer(target)
        return a.TransferLeadershipResponse(node=target)

    def _problem(self, target: str, ready: set[str]) -> str | None:
        if not target:
            return "no other node is connected and up to date; start one first"
        if target not in self._peers:
            return f"there is no node {target!r}; the nodes are {', '.join(self._peers)}"
        if target not in ready and target != self._replica.node_id:
            return f"node {target!r} is not connected or not up to date; start it and wait"
        return None


def _role(name: str, own: str, status: Status, seen: PeerStatus | None) -> str:
    if name == status.leader:
        return "leader"
    if name == own:
        return "follower" if status.stage == "member" else status.stage
    if seen is None or not seen.connected:
        return "unknown"
    # Only the leader knows which nodes' acks do not count yet (S19).
    return "rebuilding" if own == status.leader and not seen.counted else "follower"
