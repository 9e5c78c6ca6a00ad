"""The engines' threads of a cluster on a busy machine: they wake up late, their disks are slow.

Each thread takes in what has arrived, syncs, ticks, syncs, and sleeps until something is due or
arrives; all on the virtual clock of `harness.cluster`, so a seed reproduces a run. What is sent
leaves when the sync before it is over. Knows no rules.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from harness.cluster import Cluster

TICK_S = 0.02
"""How long a thread sleeps at most, as `holdfast.raft.thread` does."""
TRAVEL_S = 0.0002
SYNC_S = (0.001, 0.06)
LATE_S = 0.02


class BusyMachine:
    """Lets time pass for the nodes of a cluster that has a leader."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        """Begin with all threads asleep, at random moments of their sleep."""
        self.cluster, self._random = cluster, random
        now = cluster.clock.now
        self._wakes = {node: now + random.uniform(0, TICK_S) for node in cluster.ids}
        self._free = dict.fromkeys(cluster.ids, now)
        self._syncs = {node: cluster.disks[node].journal.commits for node in cluster.ids}
        self._is_polled: set[str] = set()
        """Nodes that have taken in what had arrived, and are still syncing it."""
        self._arrives: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._ends: dict[str, list[tuple[float, str]]] = defaultdict(list)
        """When each node can see that a connection has ended, and whose."""
        for source, target in cluster.network.busy_links():
            self._sent(source, target, now)

    def run(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until this holds, or for so long; whether it holds."""
        clock, until = self.cluster.clock, self.cluster.clock.now + seconds
        while not holds():
            node = min(self._wakes, key=lambda each: (self._wakes[each], each))
            if self._wakes[node] > until:
                return False
            clock.advance(max(0.0, self._wakes[node] - clock.now))
            self._turn(node)
        return True

    def kill(self, node: str) -> None:
        """Kill -9: what it has sent arrives, and then the end of the connection."""
        network, now = self.cluster.network, self.cluster.clock.now
        for peer in [peer for peer in self._wakes if peer != node]:
            network.end(node, peer)
            self._arrives.pop((peer, node), None)
            last = max(self._arrives[node, peer], default=now)
            self._ends[peer].append((max(now, last) + TRAVEL_S, node))
            self._wake(peer, max(now, last) + TRAVEL_S)
        network.forget(node)
        del self.cluster.nodes[node], self._wakes[node]

    # -- a turn of a thread ------------------------------------------------------------

    def _turn(self, node: str) -> None:
        engine = self.cluster.engine(node)
        if node not in self._is_polled:
            self._take_in(node)
            engine.overlay.completion.run()
            self._is_polled.add(node)
            if self._work(node):
                self._wakes[node] = self._free[node]
                return
        self._is_polled.discard(node)
        engine.tick()
        self.cluster.consumer(node).evolve()
        self._work(node)
        self._sleep(node)

    def _take_in(self, node: str) -> None:
        now, network = self.cluster.clock.now, self.cluster.network
        for (source, target), times in sorted(self._arrives.items()):
            if target == node:
                count = sum(at <= now for at in times)
                network.deliver(source, target, count)
                for _ in range(count):
                    times.popleft()
        for end in [end for end in self._ends[node] if end[0] <= now]:
            self._ends[node].remove(end)
            self.cluster.engine(node).on_disconnected(end[1])

    def _work(self, node: str) -> bool:
        """Take the time for the syncs that were made; then what was sent leaves."""
        commits = self.cluster.disks[node].journal.commits
        count, self._syncs[node] = commits - self._syncs[node], commits
        cost = sum(self._random.uniform(*SYNC_S) for _ in range(count))
        self._free[node] = self.cluster.clock.now + cost
        for source, target in self.cluster.network.busy_links():
            if source == node:
                self._sent(source, target, self._free[node])
        return count > 0

    def _sent(self, source: str, target: str, at: float) -> None:
        """Note when the messages arrive that were sent since the last time."""
        times = self._arrives[source, target]
        new = len(self.cluster.network.waiting(source, target)) - len(times)
        times.extend([at + TRAVEL_S] * new)
        if new:
            self._wake(target, at + TRAVEL_S)

    def _sleep(self, node: str) -> None:
        waits = self.cluster.engine(node).patience(TICK_S)
        self._wakes[node] = max(self._free[node], self.cluster.clock.now + waits) + self._late()
        for (_, target), times in self._arrives.items():
            if target == node and times:
                self._wake(node, times[0])
        for at, _ in self._ends[node]:
            self._wake(node, at)

    def _wake(self, node: str, at: float) -> None:
        """Something arrives: a thread that sleeps wakes up, one that syncs finds it later."""
        if node in self._wakes and node not in self._is_polled:
            self._wakes[node] = min(self._wakes[node], max(at, self._free[node]) + self._late())

    def _late(self) -> float:
        """How late a thread gets the processor: mostly little."""
        return self._random.choice((0.0, 0.001, self._random.uniform(0, LATE_S)))
