"""Transports of a few nodes in one process, on real sockets, and what they are told."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from holdfast.raft.messages import Message
from holdfast.raft.transport.streams import GrpcTransport, PeerTls

DEADLINE = 20.0


class Recorder:
    """A handler that notes what it is told; `pump` polls as the tick thread would."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []
        self.woken = threading.Event()

    def on_message(self, peer: str, message: Message) -> None:
        self.seen.append((peer, message))

    def on_connected(self, peer: str) -> None:
        self.seen.append((peer, "up"))

    def on_disconnected(self, peer: str) -> None:
        self.seen.append((peer, "down"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Nodes:
    """Transports of a few nodes, polled together until something holds."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.transports: dict[str, GrpcTransport] = {}
        self.recorders: dict[str, Recorder] = {}

    def start(
        self,
        node: str,
        listen: str,
        peers: dict[str, str],
        cluster: str = "c",
        tls: PeerTls | None = None,
    ) -> None:
        transport = GrpcTransport(cluster, node, listen, peers, tls)
        recorder = self.recorders[node] = Recorder()
        self.stack.callback(transport.close)
        transport.start(recorder, recorder.woken.set)
        self.transports[node] = transport

    def until(self, condition: Callable[[], bool], within_s: float = DEADLINE) -> bool:
        end = time.monotonic() + within_s
        while not condition() and time.monotonic() < end:
            for node, transport in self.transports.items():
                self.recorders[node].woken.wait(0.02)
                transport.poll()
        return condition()


def addresses(*names: str) -> dict[str, str]:
    return {name: f"127.0.0.1:{free_port()}" for name in names}
