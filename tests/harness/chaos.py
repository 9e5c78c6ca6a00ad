"""Random schedules over a cluster: a seed decides everything, and the rules are checked each step.

Faults: messages late, lost, doubled, reordered; links cut or deaf; ticks and consumers that stall;
clocks that run apart; crashes, power cuts inside a commit, replaced disks, transfers, snapshots.
Safety is checked after every step. Then all faults end, and the cluster must heal and have lost
nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.cluster import SETTINGS, Cluster
from harness.journal import PowerCut
from holdfast.raft.api import EngineStopped, Overloaded, ProposalId
from holdfast.raft.core.context import ALL, Switch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.raft.api import Applied
    from holdfast.raft.pysyncobj.engine import Engine

TINY = replace(
    SETTINGS, batch_bytes=200, chunk_bytes=200, apply_queue_items_max=20, trailing_bytes=2000
)
HEALING_ROUNDS = 1500


class Violation(AssertionError):
    """A rule was broken; the message says which."""


class Chaos:
    """One run. `steps` of faults by `seed`, then `heal`."""

    def __init__(self, seed: int, ids: str = "ABC", switches: Iterable[Switch] = ALL) -> None:
        self.cluster = Cluster(ids, switches=switches, settings=TINY, seed=seed)
        self.random = self.cluster.random
        self.counts: Counter[str] = Counter()
        self.acknowledged: set[str] = set()
        self._offered: dict[tuple[Engine, ProposalId], str] = {}
        """What was proposed; empty for a change of nodes."""
        self._entries: dict[int, tuple[int, bytes]] = {}
        self._terms: dict[int, str] = {}
        self._seen: dict[Engine, tuple[int, int]] = {}
        self.suspected: list[tuple[str, bool]] = []
        """Nodes that took their disk for an older copy (S21), and whether it was in `unformed`."""
        self.unformed: set[str] = set()
        """Nodes on a disk that a fault put in, and that has never been a member's."""
        self._incarnations: dict[Engine, str] = {}
        self._actions: list[tuple[float, Callable[[], None]]] = [
            (450, self._pass_time),
            (330, self._deliver),
            (80, self._evolve),
            (60, self._propose),
            (8, self._garble),
            (5, self._change_link),
            (5, self._mend),
            (2, self._jump),
            (4, self._transfer),
            (4, self._snapshot),
            (2, self._drift),
            (3, self._kill),
            (1, self._cut_power),
        ]

    def run(self, steps: int) -> None:
        """Do everything; raises Violation."""
        for node in self.cluster.nodes.values():
            deadline = self.cluster.clock() + self.random.uniform(0.4, 1.0)
            node.engine.overlay.state.election_deadline = deadline
        weights = [weight for weight, _ in self._actions]
        for _ in range(steps):
            self.random.choices(self._actions, weights)[0][1]()
            self.check()
        self.heal()

    # -- actions ---------------------------------------------------------------------

    def _alive(self) -> list[str]:
        return sorted(self.cluster.nodes)

    def _pick(self) -> str | None:
        alive = self._alive()
        return self.random.choice(alive) if alive else None

    def _pass_time(self) -> None:
        self.cluster.clock.advance(self.random.choice((0, 0.005, 0.02, 0.06)))
        alive = self._alive()
        for node in self.random.sample(alive, self.random.randint(0, len(alive))):
            self._tick(node)

    def _tick(self, node: str) -> None:
        try:
            self.cluster.tick(node)
        except EngineStopped as error:
            if not isinstance(error.__cause__, PowerCut):
                raise Violation(f"{node} stopped: {error}") from error
            self._crash(node)

    def _deliver(self) -> None:
        busy = self.cluster.network.busy_links()
        for link in self.random.sample(busy, min(len(busy), 3)):
            try:
                self.cluster.network.deliver(*link, count=self.random.choice((1, 2, 99)))
            except PowerCut:
                self._crash(link[1])

    def _evolve(self) -> None:
        node = self._pick()
        if node:
            self.cluster.consumer(node).evolve(self.random.choice((1, 5, 99)))

    def _propose(self) -> None:
        ready_nodes = [n for n in self._alive() if self.cluster.consumer(n).ready_term]
        chosen = self.random.choice(ready_nodes) if ready_nodes else None
        node = chosen if self.random.random() < 0.8 else self._pick()
        if node is None:
            return
        engine = self.cluster.engine(node)
        ready = self.cluster.consumer(node).ready_term
        term = ready or self.random.randint(1, engine.status().term + 1)
        self.counts["offered"] += 1
        value = f"v{self.counts['offered']}@{term}" + "." * self.random.choice((0, 0, 30, 900))
        try:
            self._offered[engine, engine.propose(value.encode(), term)] = value
        except Overloaded:
            self.counts["overloaded"] += 1

    def _garble(self) -> None:
        network, busy = self.cluster.network, self.cluster.network.busy_links()
        if not busy:
            return
        link, chance = self.random.choice(busy), self.random.random()
        if chance < 0.4:
            network.lose(*link, count=self.random.choice((1, 3)))
        elif chance < 0.7:
            network.double(*link, self.random)
        else:
            network.reorder(*link, self.random)

    def _change_link(self) -> None:
        network = self.cluster.network
        a, b = self.random.sample(self.cluster.ids, 2)
        if not network.is_up(a, b):
            network.connect(a, b)
        elif self.random.random() < 0.3:
            network.deaf ^= {(a, b)}
        else:
            network.cut(a, b)

    def _mend(self) -> None:
        self.cluster.network.deaf.clear()
        self.cluster.connect_all()

    def _jump(self) -> None:
        self.cluster.clock.advance(self.random.uniform(0, 1.5))

    def _transfer(self) -> None:
        leaders = [n for n in self._alive() if self._role(n) == "leader"]
        if leaders:
            source = self.random.choice(leaders)
            target = self.random.choice([n for n in self.cluster.ids if n != source])
            self.cluster.engine(source).transfer(target)
            self.counts["transfers"] += 1

    def _snapshot(self) -> None:
        node = self._pick()
        if node and self.cluster.consumer(node).index:
            self.cluster.consumer(node).snapshot()
            self.counts["snapshots"] += 1

    def _drift(self) -> None:
        node = self._pick()
        if node:
            self.cluster.nodes[node].clock.set_rate(self.random.uniform(0.95, 1.05))

    def _crash(self, node: str) -> None:
        self.collect()
        self.cluster.crash(node)
        self.counts["crashes"] += 1

    def _kill(self) -> None:
        """Crash a node or bring one back, now and then with a new disk (S19)."""
        node = self.random.choice(self.cluster.ids)
        if node in self.cluster.nodes:
            self._crash(node)
            if self.random.random() < 0.3:
                return
        wiped = self.random.random() < 0.4 and self._all_disks_are_members()
        self.counts["wiped"] += wiped
        if wiped:
            self.unformed.add(node)
        self.cluster.disks[node].journal.repair()
        self.cluster.restart(node, wiped=wiped, bootstrap=self.random.random() < 0.5)
        self.cluster.connect_all()

    def _all_disks_are_members(self) -> bool:
        """One disk at a time: two of three replaced is a majority lost, which no rule survives."""
        identities = [disk.journal.load().identity for disk in self.cluster.disks.values()]
        return all(identity and identity.stage == "member" for identity in identities)

    def _cut_power(self) -> None:
        """The next commit of a node is its last."""
        node = self._pick()
        if node is None:
            return
        journal = self.cluster.disks[node].journal

        def die(_batch: object) -> None:
            journal.repair()
            raise PowerCut

        if self.random.random() < 0.5:
            journal.before_commit = die
        else:
            journal.after_commit = die
        self.counts["power cuts"] += 1

    # -- checks ------------------------------------------------------------------------

    def _role(self, node: str) -> str:
        return self.cluster.engine(node).status().role

    def check(self) -> None:
        """Raise Violation if any rule does not hold now."""
        self.collect()
        leaders, leases = [], []
        for name, node in self.cluster.nodes.items():
            state = node.engine.overlay.state
            if state.is_leader:
                leaders.append((state.term, name))
                if self._terms.setdefault(state.term, name) != name:
                    raise Violation(f"{name} and {self._terms[state.term]} led term {state.term}")
            lease = self.cluster.lease(name)
            if lease:
                leases.append((lease, name))
        if len(leases) > 1 or (leases and leaders and max(leaders) > max(leases)):
            raise Violation(f"S10: leases {leases} beside leaders {leaders}")

    def collect(self) -> None:
        """Look at what the consumers evolved, and who suspected its disk, since the last time."""
        self._collect_suspicions()
        for name, node in self.cluster.nodes.items():
            consumer = node.consumer
            applied, acknowledged = self._seen.get(node.engine, (0, 0))
            for item in consumer.applied[applied:]:
                self._check_entry(name, item)
            for proposal in consumer.acknowledged[acknowledged:]:
                if value := self._offered[node.engine, proposal]:
                    self.acknowledged.add(value)
            seen = (len(consumer.applied), len(consumer.acknowledged))
            self._seen[node.engine] = seen

    def _collect_suspicions(self) -> None:
        """A process takes another incarnation only when it gives its disk up (S21)."""
        for name, node in self.cluster.nodes.items():
            incarnation = node.engine.overlay.identity.incarnation
            if self._incarnations.setdefault(node.engine, incarnation) != incarnation:
                self._incarnations[node.engine] = incarnation
                self.suspected.append((name, name in self.unformed))
        for name in sorted(self.unformed):
            identity = self.cluster.disks[name].journal.load().identity
            if identity and identity.stage == "member":
                self.unformed.discard(name)

    def _check_entry(self, name: str, item: Applied) -> None:
        mine = (item.term, item.payload)
        if self._entries.setdefault(item.index, mine) != mine:
            other = self._entries[item.index]
            raise Violation(f"{name} applied {mine} at {item.index}, another node {other}")
        if item.payload:
            decided = int(item.payload.decode().rstrip(".").split("@")[1])
            if decided != item.term:
                raise Violation(f"S1: decided in {decided}, an entry of {item.term}")

    # -- the end ------------------------------------------------------------------------

    def heal(self) -> None:
        """End all faults; raises Violation unless the cluster converges and has lost nothing."""
        cluster = self.cluster
        cluster.network.deaf.clear()
        for disk in cluster.disks.values():
            disk.journal.repair()
        for node in cluster.ids:
            if node not in cluster.nodes:
                cluster.start(node)
        cluster.connect_all()
        for round_ in range(HEALING_ROUNDS):
            cluster.pump(seconds=0.03, calm=False)
            self.check()
            if round_ > 100 and self._converged():
                break
        else:
            states = {n: cluster.engine(n).status() for n in cluster.ids}
            raise Violation(f"no convergence: {states}")
        self._check_nothing_is_lost()

    def _converged(self) -> bool:
        nodes = self.cluster.nodes.values()
        return (
            all(n.engine.status().stage == "member" for n in nodes)
            and len({tuple(n.consumer.values) for n in nodes}) == 1
            and sum(bool(n.consumer.ready_term) for n in nodes) == 1
            and not any(n.consumer.unsettled for n in nodes)
        )

    def _check_nothing_is_lost(self) -> None:
        for name, node in self.cluster.nodes.items():
            held = Counter(node.consumer.values)
            for value in self.acknowledged:
                if held[value] != 1:
                    times = held[value]
                    raise Violation(f"{value} was acknowledged, {name} holds it {times} times")
