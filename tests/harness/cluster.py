"""Three real engines on a virtual clock, a network in memory and disks that survive crashes.

The scenarios of tests/raft move it step by step; the fuzz and the simulator drive it by chance.
Nothing happens but what a test asks for, and a seed reproduces it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from harness.clock import NodeClock, VirtualClock
from harness.journal import SimDisk, Snapshot
from harness.network import MemoryTransport, Network
from harness.unsettled import Unsettled
from holdfast.raft.api import (
    Applied,
    BarrierPassed,
    Installed,
    Item,
    ProbeFailed,
    ProbePassed,
    ProposalId,
    Refused,
    RoleChanged,
    Settings,
    SnapshotMark,
    Stopped,
)
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.membership import AddLearner, ClusterNode
from holdfast.raft.pysyncobj.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.raft.api import Fate
    from holdfast.raft.membership import Change

SETTINGS = Settings(
    heartbeat=0.1,
    election_min=0.4,
    election_max=1.0,
    trailing_bytes=0,
)
HEARTBEAT = 0.11
"""A step of time after which a heartbeat is due."""

CLUSTER = "test-cluster"


@dataclass
class Consumer:
    """The asyncio side of a node, as the rules see it: it evolves, and is told things."""

    engine: Engine
    disk: SimDisk
    values: list[str] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    roles: list[RoleChanged] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    acknowledged: list[ProposalId] = field(default_factory=list)
    fates: list[tuple[ProposalId, Fate]] = field(default_factory=list)
    probes: list[BarrierPassed | ProbePassed | ProbeFailed] = field(default_factory=list)
    unsettled: Unsettled = field(default_factory=Unsettled)
    ready_term: int = 0
    index: int = 0
    term: int = 0
    stopped: str = ""

    def __post_init__(self) -> None:
        self.load()

    def load(self) -> None:
        """Begin with the state on disk."""
        mark = self.disk.snapshot.mark
        self.values, self.index, self.term = list(self.disk.snapshot.values), mark.index, mark.term

    def evolve(self, limit: int = 1 << 30) -> None:
        """Take items and do what each says."""
        for item in self.engine.take(limit):
            self.take(item)

    def take(self, item: Item) -> None:
        self.fates += self.unsettled.settle(item)
        match item:
            case Applied():
                self._apply(item)
            case RoleChanged():
                self.roles.append(item)
                self.ready_term = item.term if item.role == "leader" else 0
            case Installed():
                self.load()
                assert self.index == item.index
                self.engine.evolved(item.index)
            case Refused():
                self.refused.append(item)
            case BarrierPassed() | ProbePassed() | ProbeFailed():
                self.probes.append(item)
            case Stopped():
                self.stopped = item.reason

    def _apply(self, item: Applied) -> None:
        assert item.index == self.index + 1, f"{item} after {self.index}"
        self.index, self.term = item.index, item.term
        self.applied.append(item)
        if item.payload:
            self.values.append(item.payload.decode())
        if item.proposal and not item.skipped:
            self.acknowledged.append(item.proposal)
        self.engine.evolved(item.index)

    @property
    def may_decide(self) -> bool:
        """What a group actor asks before it decides (S1, S5)."""
        return bool(self.ready_term) and not self.unsettled

    def snapshot(self) -> None:
        """Store the state durably and let the journal be cut behind it.

        Not while an installed, newer one waits in the FIFO: it must not be written over.
        """
        mark = SnapshotMark(self.index, self.term)
        if mark.index < self.disk.snapshot.mark.index:
            return
        self.disk.snapshot = Snapshot(mark, tuple(self.values))
        self.engine.cut(self.index)


@dataclass
class Node:
    """One running process."""

    engine: Engine
    consumer: Consumer
    clock: NodeClock


class Cluster:
    """The world of a test. `switches`: which are on; `formed=False`: nobody has met yet."""

    def __init__(
        self,
        ids: str = "ABC",
        *,
        switches: Iterable[Switch] = ALL,
        settings: Settings = SETTINGS,
        seed: int = 0,
        formed: bool = True,
    ) -> None:
        self.ids, self.switches, self.settings = ids, frozenset(switches), settings
        self.random = Random(seed)
        self.clock = VirtualClock()
        self.network = Network()
        self.disks = {node: SimDisk() for node in ids}
        self.files = dict.fromkeys(ids, ids)
        """The nodes that each node's file names."""
        self.nodes: dict[str, Node] = {}
        for node in ids:
            self.start(node, bootstrap=True)
        if formed:
            self.connect_all()
            self.pump(rounds=6, seconds=HEARTBEAT)
            assert all(n.engine.status().stage == "member" for n in self.nodes.values())

    # -- processes -------------------------------------------------------------------

    def start(
        self, node: str, *, bootstrap: bool = False, settings: Settings | None = None
    ) -> Node:
        """Start a process on its disk; its links are down."""
        disk, clock = self.disks[node], NodeClock(self.clock)
        engine = Engine(
            node_id=node,
            peers=tuple(peer for peer in self.files[node] if peer != node),
            cluster_id=CLUSTER,
            settings=settings or self.settings,
            journal=disk.journal,
            transport=MemoryTransport(self.network, node),
            clock=clock,
            random=Random(self.random.getrandbits(64)),
            snapshots=disk,
            notes=disk.notes,
            bootstrap=bootstrap,
            switches=self.switches,
        )
        self.nodes[node] = Node(engine, Consumer(engine, disk), clock)
        return self.nodes[node]

    def join(self, node: str) -> Node:
        """Start a new node on an empty disk; its file names those of the beginning and itself."""
        self.files[node] = next(iter(self.files.values())) + node
        self.ids += node
        self.disks[node] = SimDisk()
        return self.start(node)

    def crash(self, node: str) -> None:
        """Kill -9: what is not durable is gone."""
        self.network.detach(node)
        del self.nodes[node]

    def wipe(self, node: str) -> None:
        """Replace the disk of a node that is down."""
        assert node not in self.nodes
        self.disks[node] = SimDisk()

    def restart(
        self,
        node: str,
        *,
        wiped: bool = False,
        bootstrap: bool = False,
        settings: Settings | None = None,
    ) -> Node:
        """Kill and start again, with a new disk if wiped; its links are down."""
        if node in self.nodes:
            self.crash(node)
        if wiped:
            self.wipe(node)
        return self.start(node, bootstrap=bootstrap, settings=settings)

    def engine(self, node: str) -> Engine:
        return self.nodes[node].engine

    def consumer(self, node: str) -> Consumer:
        return self.nodes[node].consumer

    def lease(self, node: str) -> int:
        """Return the term in which the node may answer reads now, or 0."""
        return self.engine(node).lease_valid(self.nodes[node].clock())

    # -- links -----------------------------------------------------------------------

    def connect_all(self, among: str | None = None) -> None:
        among = among or self.ids
        for a in among:
            for b in among:
                if a < b:
                    self.network.connect(a, b)

    def isolate(self, node: str) -> None:
        for peer in self.ids:
            if peer != node:
                self.network.cut(node, peer)

    def exchange(self, a: str, b: str) -> None:
        """Deliver what `a` has for `b`, and the answers; no tick, no time."""
        self.engine(a).overlay.completion.run()
        self.network.deliver(a, b)
        self.engine(b).overlay.completion.run()
        self.network.deliver(b, a)
        self.engine(a).overlay.completion.run()

    # -- time ------------------------------------------------------------------------

    def calm(self) -> None:
        """Let no election timer fire by itself."""
        for node in self.nodes.values():
            node.engine.overlay.state.election_deadline = node.clock() + 1000

    def tick(self, node: str) -> None:
        self.engine(node).tick()

    def pump(
        self,
        among: str | None = None,
        *,
        rounds: int = 1,
        seconds: float = 0.0,
        evolve: bool = True,
        calm: bool = True,
    ) -> None:
        """Let time pass, deliver everything and tick, `rounds` times."""
        for _ in range(rounds):
            self.clock.advance(seconds)
            if calm:
                self.calm()
            alive = [node for node in among or self.ids if node in self.nodes]
            for link in self.network.busy_links():
                if link[0] in alive and link[1] in alive:
                    self.network.deliver(*link)
            for node in alive:
                self.tick(node)
                if evolve:
                    self.consumer(node).evolve()

    # -- elections and proposals -----------------------------------------------------

    def elect(self, who: str, among: str | None = None, *, evolve: bool = True) -> None:
        """Make `who` leader by the votes of `among`, honestly: after a silence."""
        among = among or self.ids
        self.pump(among, rounds=2, evolve=evolve)
        self.clock.advance(2 * self.settings.election_max)
        assert self.campaign(who, among), f"{who} was not elected by {among}"
        self.pump(among, rounds=3, seconds=HEARTBEAT, evolve=evolve)
        assert self.engine(who).status().role == "leader"

    def campaign(self, who: str, asks: str) -> bool:
        """Let `who` try (pre-vote, then vote) with the nodes in `asks`; all other timers rest."""
        self.calm()
        state = self.engine(who).overlay.state
        state.election_deadline = 0
        for _ in range(2):
            self.tick(who)
            for peer in asks:
                if peer != who:
                    self.exchange(who, peer)
            if state.is_leader or state.election_deadline > 0:
                break
        self.calm()
        return state.is_leader

    def put(self, node: str, value: str, term: int | None = None) -> ProposalId:
        """Propose at a node, in its present term, and let it take the proposal in."""
        engine = self.engine(node)
        term = engine.status().term if term is None else term
        proposal = engine.propose(value.encode(), term)
        self.calm()
        engine.tick()
        return proposal

    def change(self, node: str, change: Change) -> ProposalId:
        """Ask a node for a change of nodes, in its present term, and let it take that in."""
        engine = self.engine(node)
        proposal = engine.change(change, engine.status().term)
        self.calm()
        engine.tick()
        return proposal

    def add(self, leader: str, name: str) -> ProposalId:
        """Ask for a learner."""
        return self.change(leader, AddLearner(ClusterNode(name, f"{name}:1", f"{name}:2")))
