"""The stock engine on a virtual clock: to show the defects that the overlay closes.

Links are first-in first-out; nothing is lost, doubled or reordered by them. Whatever goes wrong
here needs no bad network.
"""

# ruff: noqa: ANN401 (the stock engine is untyped; typings/ declares what the overlay uses, no more)

from __future__ import annotations

import importlib
import pickle
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pysyncobj.syncobj
from pysyncobj.node import Node

from harness.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

stock: Any = importlib.import_module("pysyncobj")
transport: Any = importlib.import_module("pysyncobj.transport")
ALL_OF_THEM = 1 << 30
SUCCESS = 0


class StockNode(stock.SyncObj):  # type: ignore[misc]  # untyped on purpose
    """A list that is replicated by the engine as published."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.items: list[str] = []
        self.tries = 0

    @stock.replicated  # type: ignore[untyped-decorator]  # the same
    def put(self, value: str) -> int:
        self.items.append(value)
        return len(self.items)

    @stock.replicated  # type: ignore[untyped-decorator]  # the same
    def fail(self) -> None:
        self.tries += 1
        raise ValueError("a command that raises")


class _Wire(transport.Transport):  # type: ignore[misc]  # untyped on purpose
    def __init__(self, world: StockWorld, node: str) -> None:
        super().__init__(None, None, [])
        self.world, self.node = world, node

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        return self.world.post(self.node, str(node.id), message)


class StockWorld:
    """Stock nodes, their clock and their links; with a folder, their journals and dumps in it."""

    def __init__(self, ids: str, folder: Path | None = None, **settings: Any) -> None:
        self.clock, self._folder = VirtualClock(), folder
        pysyncobj.syncobj.monotonicTime = self.clock
        self.wires: dict[str, _Wire] = {}
        self.queues: dict[tuple[str, str], deque[bytes]] = {}
        self.up: set[frozenset[str]] = set()
        self.nodes = {node: self._start(node, ids, settings) for node in ids}

    def _start(self, node: str, ids: str, settings: dict[str, Any]) -> Any:
        given = {"autoTick": False, "appendEntriesPeriod": 0.1, "raftMinTimeout": 0.4}
        conf = stock.SyncObjConf(**(given | {"raftMaxTimeout": 1.0} | self._files(node) | settings))
        self.wires[node] = _Wire(self, node)
        peers = [Node(peer) for peer in ids if peer != node]
        wire = self.wires[node]
        return StockNode(Node(node), peers, conf=conf, nodeClass=Node, transport=wire)

    def _files(self, node: str) -> dict[str, str]:
        if self._folder is None:
            return {}
        journal, dump = self._folder / f"{node}.journal", self._folder / f"{node}.dump"
        return {"journalFile": str(journal), "fullDumpFile": str(dump)}

    def post(self, source: str, target: str, message: dict[str, Any]) -> bool:
        if frozenset((source, target)) not in self.up:
            return False
        self.queues.setdefault((source, target), deque()).append(pickle.dumps(message))
        return True

    def connect(self, *links: str) -> None:
        for a, b in map(tuple, links):
            self.up.add(frozenset((a, b)))
            self.wires[a]._onNodeConnected(Node(b))
            self.wires[b]._onNodeConnected(Node(a))

    def cut(self, *links: str) -> None:
        for a, b in map(tuple, links):
            self.up.discard(frozenset((a, b)))
            for one, other in ((a, b), (b, a)):
                self.queues.pop((one, other), None)
                self.wires[one]._onNodeDisconnected(Node(other))

    def deliver(self, a: str, b: str, count: int = ALL_OF_THEM) -> None:
        queue = self.queues.get((a, b), deque())
        for _ in range(min(count, len(queue))):
            message = pickle.loads(queue.popleft())  # noqa: S301 - its own, from above
            self.wires[b]._onMessageReceived(Node(a), message)

    def tick(self, node: str) -> None:
        self.nodes[node].doTick(0)

    def calm(self) -> None:
        for node in self.nodes.values():
            node._SyncObj__raftElectionDeadline = self.clock.now + 1000

    def pump(self, among: str, rounds: int = 1, seconds: float = 0.0) -> None:
        for _ in range(rounds):
            self.clock.advance(seconds)
            self.calm()
            for a, b in sorted(self.queues):
                if a in among and b in among:
                    self.deliver(a, b)
            for node in among:
                self.tick(node)

    def elect(self, who: str, among: str) -> None:
        self.pump(among, rounds=2)
        self.clock.advance(2)
        self.calm()
        self.nodes[who]._SyncObj__raftElectionDeadline = 0
        self.tick(who)
        self.pump(among, rounds=6, seconds=0.11)
        assert self.nodes[who]._isLeader()

    def acknowledged(self, node: str, values: Iterable[str]) -> list[str]:
        """Put them all; the list grows by those that the node says are safe."""
        told: list[str] = []

        def note(value: str) -> Callable[[Any, int], None]:
            return lambda _result, error: told.append(value) if error == SUCCESS else None

        for value in values:
            self.nodes[node].put(value, callback=note(value))
        return told

    def close(self) -> None:
        for node in self.nodes.values():
            node.destroy()

    def log_end(self, node: str) -> int:
        end: int = self.nodes[node]._SyncObj__raftLog[-1][1]
        return end
