"""An in-memory network: every message passes the real codec; the test decides what becomes of it.

A link is a queue per direction. Nothing is delivered, lost, doubled or reordered by itself.
Cutting a link loses what is under way and tells both ends; a deaf link loses silently.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.raft.wire.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import TransportHandler
    from holdfast.raft.messages import Message

ALL_OF_THEM = 1 << 30

Link = tuple[str, str]


class MemoryTransport:
    """One node's end; implements `holdfast.raft.api.Transport`."""

    def __init__(self, network: Network, node: str) -> None:
        self._network, self._node = network, node
        self.handler: TransportHandler | None = None

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        del wake  # nobody waits on a virtual clock
        self.handler = handler
        self._network.attach(self._node, self)

    def send(self, peer: str, message: Message) -> bool:
        return self._network.post(self._node, peer, encode(message))

    def poll(self) -> None:
        """Deliver nothing: the test calls `Network.deliver`."""

    def close(self) -> None:
        self._network.detach(self._node)


class Network:
    """All links of a cluster."""

    def __init__(self) -> None:
        self._ends: dict[str, MemoryTransport] = {}
        self._queues: dict[Link, deque[bytes]] = {}
        self._up: set[frozenset[str]] = set()
        self.deaf: set[Link] = set()

    def attach(self, node: str, end: MemoryTransport) -> None:
        """A node has started; its links are down."""
        self._ends[node] = end

    def detach(self, node: str) -> None:
        """A node is gone: its peers notice, what was under way is lost."""
        for peer in list(self._ends):
            if peer != node:
                self.cut(node, peer)
        self._ends.pop(node, None)

    def is_up(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self._up

    def connect(self, a: str, b: str) -> None:
        """Bring a link up, if both ends are there."""
        if a in self._ends and b in self._ends and not self.is_up(a, b):
            self._up.add(frozenset((a, b)))
            for one, other in ((a, b), (b, a)):
                self._handler(one).on_connected(other)

    def cut(self, a: str, b: str) -> None:
        """Take a link down, with what is on it."""
        if self.is_up(a, b):
            self._up.discard(frozenset((a, b)))
            for one, other in ((a, b), (b, a)):
                self._queues.pop((one, other), None)
                if one in self._ends:
                    self._handler(one).on_disconnected(other)

    def end(self, node: str, peer: str) -> None:
        """Take a link down as a dying process does: what `node` has sent arrives, nothing else.

        Neither end is told: the peer sees the end when it has read what was sent.
        """
        self._up.discard(frozenset((node, peer)))
        self._queues.pop((peer, node), None)

    def forget(self, node: str) -> None:
        """A node is gone whose links have ended."""
        del self._ends[node]

    def _handler(self, node: str) -> TransportHandler:
        handler = self._ends[node].handler
        if handler is None:
            raise RuntimeError(f"{node} has not started")
        return handler

    # -- messages ------------------------------------------------------------------

    def post(self, source: str, target: str, frame: bytes) -> bool:
        """Queue a frame, unless the link is down; a deaf link swallows it."""
        if not self.is_up(source, target):
            return False
        if (source, target) not in self.deaf:
            self._queues.setdefault((source, target), deque()).append(frame)
        return True

    def busy_links(self) -> list[Link]:
        """Return the links that carry something, in a fixed order."""
        return sorted(link for link, queue in self._queues.items() if queue)

    def waiting(self, source: str, target: str) -> list[Message]:
        """Return what is on a link, oldest first."""
        return [decode(frame) for frame in self._queues.get((source, target), ())]

    def deliver(self, source: str, target: str, count: int = ALL_OF_THEM) -> int:
        """Deliver the oldest messages of a link; those sent meanwhile wait for the next call."""
        queue = self._queues.get((source, target))
        count = min(count, len(queue)) if queue else 0
        for done in range(count):
            if not queue:
                return done
            self._handler(target).on_message(source, decode(queue.popleft()))
        return count

    def lose(self, source: str, target: str, count: int = ALL_OF_THEM) -> None:
        """Lose the oldest messages of a link."""
        queue = self._queues.get((source, target), deque())
        for _ in range(min(count, len(queue))):
            queue.popleft()

    def double(self, source: str, target: str, random: Random) -> None:
        """Let some message of a link arrive twice."""
        queue = self._queues.get((source, target))
        if queue:
            queue.insert(random.randrange(len(queue) + 1), random.choice(queue))

    def reorder(self, source: str, target: str, random: Random) -> None:
        """Let some message of a link overtake or fall back."""
        queue = self._queues.get((source, target))
        if queue and len(queue) > 1:
            frame = queue[at := random.randrange(len(queue))]
            del queue[at]
            queue.insert(random.randrange(len(queue) + 1), frame)
