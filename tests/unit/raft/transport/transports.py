"""Transports of a few nodes in one process, on real sockets, and what they are told."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

from holdfast.raft.api import UNTOLD, Build
from holdfast.raft.messages import Message
from holdfast.raft.transport.peer_transport import PeerTransport
from holdfast.raft.transport.side_calls import Answer
from holdfast.raft.transport.tls import PeerTls

DEADLINE = 20.0
T = TypeVar("T")


class Recorder:
    """A handler that notes what it is told."""

    def __init__(self, *, holds_nothing: bool = False) -> None:
        self._holds_nothing = holds_nothing
        self.seen: list[tuple[str, object]] = []
        self.later: list[str] = []
        """The peers of a later restore."""
        self.then: Callable[[], None] = lambda: None
        """What a message leads to, in the midst of the turn that delivers it."""

    def on_message(self, peer: str, message: Message) -> None:
        self.seen.append((peer, message))
        self.then()

    def on_connected(self, peer: str) -> None:
        self.seen.append((peer, "up"))

    def on_disconnected(self, peer: str) -> None:
        self.seen.append((peer, "down"))

    def holds_nothing(self) -> bool:
        return self._holds_nothing

    def on_later_restore(self, peer: str) -> None:
        self.later.append(peer)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Nodes:
    """Transports of a few nodes, polled together until something holds."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.transports: dict[str, PeerTransport] = {}
        self.recorders: dict[str, Recorder] = {}

    def start(
        self,
        node: str,
        listen: str,
        peers: dict[str, str],
        cluster: str = "c",
        tls: PeerTls | None = None,
        build: Build = UNTOLD,
        age_seconds: float = math.inf,
        offers: Mapping[str, Answer] | None = None,
    ) -> None:
        transport = PeerTransport(cluster, node, listen, peers, tls, build=build)
        transport.end_connections_after(age_seconds)
        transport.tell_address(listen)
        for method, answer in (offers or {}).items():
            transport.offer(method, answer)
        self.recorders[node] = Recorder()
        self.stack.callback(transport.close)
        transport.start(self.recorders[node], transport.unpark)
        self.transports[node] = transport

    def recorder(self, node: str) -> Recorder:
        """The handler of one more node."""
        return self.recorders.setdefault(node, Recorder())

    def until(self, condition: Callable[[], bool], within_s: float = DEADLINE) -> bool:
        end = time.monotonic() + within_s
        while not condition() and time.monotonic() < end:
            self.turn()
        return condition()

    def meanwhile(self, call: Callable[[], T]) -> T:
        """Go on with the ticks while a call blocks: a node that does not is taken for dead."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(call)
            assert self.until(done.done, 3 * DEADLINE)
        return done.result()

    def turn(self) -> None:
        """One tick of each."""
        for transport in self.transports.values():
            transport.park(0.005)
            transport.poll()


def addresses(*names: str) -> dict[str, str]:
    return {name: f"127.0.0.1:{free_port()}" for name in names}
