"""The nodes of the cluster as this node sees them, what they run, and the leadership's transfer."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.access import OPEN
from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.raft.api import Build
from holdfast.server.security.seen_addresses import for_caller
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.raft.api import PeerStatus, Status
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.server.rpc.membership.known_nodes import KnownNode, KnownNodes


def own_version() -> str:
    """Return Holdfast's version as installed; "unknown" in a bare checkout."""
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"


VERSION: Final = own_version()
BUILD: Final = Build(VERSION, LEVEL_MIN, LEVEL_MAX)
"""What this node runs."""


ANCHOR_FORMAT: Final = 1
"""The form of an anchor that this version tells; a replay refuses those it does not know."""


class Upgrade(NamedTuple):
    """What the end of an upgrade would do now."""

    to: int
    """The level that would be in force after it."""
    problem: str
    """Why it would be refused, as a sentence; empty: it would not."""


class Nodes:
    """The members of the cluster and their state."""

    def __init__(
        self,
        replica: ReplicaLike,
        known: KnownNodes,
        troubles: Callable[[], Sequence[str]] = tuple,
        builds: Callable[[], Mapping[str, Build]] = dict,
    ) -> None:
        """`known`: the nodes that there are now.

        `troubles`: sentences that say why peers are refused now, or refuse this node.
        `builds`: what each peer runs by its last greeting, also if it is away now; this node runs
        `BUILD`, unless it is named there, too.
        """
        self._replica, self._troubles, self._builds = replica, troubles, builds
        self._known = known

    @property
    def _own(self) -> Build:
        """What this node runs."""
        return self._builds().get(self._replica.node_id, BUILD)

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
            version=self._own.release,
            recovery_number=state.recovery_number,
            access_mode=(state.access_mode or OPEN) if state.cluster_id else "",
            digest=self._replica.chain_head,
            level=state.level,
            membership_index=status.membership_index,
            removed_nodes=self._replica.membership.removed,
            holdfast=x.ResponseExtras(
                log_time_ms=self._replica.log_time_ms(),
                message="\n".join(self._troubles()) or None,
            ),
        )
        seen = {peer.peer: peer for peer in status.peers}
        if status.role == "leader":
            response.upgrade_to, response.upgrade_problem = self.upgrade()
        response.nodes.extend(
            self._node(node, status, seen.get(name)) for name, node in self._known.items()
        )
        return response

    async def anchor(self) -> a.LogAnchor | None:
        """Tell what a replay of the log can be compared with; None: there is no log here yet."""
        if not self._replica.state.cluster_id:
            return None
        told = await self._replica.anchor()
        return a.LogAnchor(
            format=ANCHOR_FORMAT,
            cluster_id=self._replica.state.cluster_id,
            node=self._replica.node_id,
            index=told.index,
            log_time_ms=told.log_time_ms,
            chain=told.chain,
            digest=told.digest,
            version=self._own.release,
            recovery_number=told.recovery_number,
        )

    def _node(self, known: KnownNode, status: Status, seen: PeerStatus | None) -> a.DescribedNode:
        node = a.DescribedNode(
            name=known.name,
            client_address=for_caller(known.client_address),
            peer_address=known.peer_address,
            role=_role(known.name, self._replica.node_id, status, seen),
        )
        self._tell_build(node, seen)
        node.standing = "voter" if known.is_voter else "learner"
        if seen is not None:  # as a follower sees it, neither is so
            node.streaming, node.caught_up = seen.streaming, seen.caught_up
        if known.name == self._replica.node_id:
            node.match_index = status.last_index
        elif seen is not None and status.role == "leader":
            node.match_index = seen.acked_index
        return node

    def _tell_build(self, node: a.DescribedNode, seen: PeerStatus | None) -> None:
        is_own = node.name == self._replica.node_id
        build = self._own if is_own else self._builds().get(node.name)
        node.connected = is_own or (seen is not None and seen.connected)
        if build is not None:
            node.version = build.release
            node.level_min, node.level_max = build.oldest, build.newest

    def upgrade(self) -> Upgrade:
        """Say what the end of an upgrade would do, by what the connected nodes can run.

        Only the leader knows: it is connected with all nodes that are there.
        """
        level, met = self._replica.state.level, self._met()
        if away := [name for name in self._known if name not in met]:
            return Upgrade(level, _away(away))
        newest = min(met[name].newest for name in self._known)
        if newest > level or all(met[name].newest == newest for name in self._known):
            return Upgrade(max(newest, level), "")
        return Upgrade(level, _too_old({n: b for n, b in met.items() if b.newest == newest}))

    def first_level(self) -> int:
        """Return the level that a new cluster begins at: the newest at which all nodes can run.

        Nodes greet each other before they form a cluster (S19). One that is away now may come back
        as any version, whatever it greeted as; the upgrade can be ended later.
        """
        met = self._met()
        return min(
            (met[n].newest if n in met else LEVEL_MIN for n in self._known),
            default=self._own.newest,
        )

    def _met(self) -> dict[str, Build]:
        """Return what each node runs that is connected with this one, and this one itself."""
        connected = {peer.peer for peer in self._replica.status().peers if peer.connected}
        met = {name: build for name, build in self._builds().items() if name in connected}
        met[self._replica.node_id] = self._own
        return met

    def transfer(self, node: str) -> a.TransferLeadershipResponse:
        """Tell a node to stand for election; "": the most up-to-date one."""
        others = self._replica.status().peers
        peers = [p for p in others if p.connected and not p.streaming and self._may_lead(p.peer)]
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

    def _may_lead(self, name: str) -> bool:
        """Return whether a node is a voter: a learner never stands (S25 c)."""
        return name in self._known and self._known[name].is_voter

    def _problem(self, target: str, ready: set[str]) -> str | None:
        if not target:
            return "no other node is connected and up to date; start one first"
        if target not in self._known:
            return f"there is no node {target!r}; the nodes are {', '.join(self._known)}"
        if not self._may_lead(target):
            return f"node {target!r} is a learner, which cannot lead; promote it first"
        if target not in ready and target != self._replica.node_id:
            return f"node {target!r} is not connected or not up to date; start it and wait"
        return None


def _away(names: Sequence[str]) -> str:
    """Say that nodes are away, of which it is not known what they run now."""
    nodes = ", ".join(map(repr, names))
    return (
        f"the leader is not connected with {nodes}: what runs there is unknown, and it could not "
        "go on with the cluster. Start it, and end the upgrade then"
    )


def _too_old(builds: Mapping[str, Build]) -> str:
    """Say which nodes cannot run at a newer level."""
    told = ", ".join(
        f"node {name!r} runs Holdfast {build.release or '(unknown)'}, whose newest level is "
        f"{build.newest}"
        for name, build in builds.items()
    )
    return f"{told}. Install the newer version there, too, and end the upgrade then"


def _role(name: str, own: str, status: Status, seen: PeerStatus | None) -> str:
    if name == status.leader:
        return "leader"
    if name == own:
        return "follower" if status.stage == "member" else status.stage
    if seen is None or not seen.connected:
        return "unknown"
    # Only the leader knows which voters' acks do not count yet (S19); a learner's never do.
    is_voter = status.membership is None or name in status.membership.voter_names
    waits = own == status.leader and is_voter and not seen.counted
    return "rebuilding" if waits else "follower"
