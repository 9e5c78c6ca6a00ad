"""The connections between the nodes, as the engine's transport (`holdfast.raft.api.Transport`).

Every message passes the real codec. A connection comes up when both ends run and can reach each
other, and is found broken after a silence; what is under way then is lost. Knows no Raft.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from holdfast.raft.wire.codec import decode, encode
from holdfast.raft.wire.greeting import OURS, version_problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Build, TransportHandler
    from holdfast.raft.messages import Message
    from holdfast.raft.wire.greeting import Versions
    from simulation.process import Process
    from simulation.schedule import Schedule
    from simulation.wire import Wire

LOOK_US: Final = 100_000
"""How often it is looked whether connections can be made or are broken."""
SILENCE_US: Final = (1_000_000, 4_000_000)
"""After how long a silence an end gives a connection up."""
RECONNECT_US: Final = (10_000, 400_000)
CONNECTED, GONE = object(), object()
"""News of a connection."""


class PeerEnd:
    """One running node's end. Messages wait in it until the engine's thread polls."""

    def __init__(self, peers: Peers, process: Process, machine: str) -> None:
        self._peers, self.process, self.machine = peers, process, machine
        self._handler: TransportHandler | None = None
        self._inbox: deque[tuple[str, object]] = deque()
        self.wake: Callable[[], None] = lambda: None
        self.departs_us: Callable[[], int] = lambda: process.schedule.now_us
        self.versions: Callable[[], Versions] = lambda: OURS
        """What this node tells of itself when a connection is made."""
        self.builds: dict[str, Build] = {}
        """What each peer told last."""

    # --- what the engine calls (Transport) ---

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        """Begin; who drives the engine's thread wakes it, so the engine's own way is not needed."""
        del wake
        self._handler = handler
        self._peers.attach(self)

    def send(self, peer: str, message: Message) -> bool:
        """Send a frame, if there is a connection."""
        return self._peers.carry(self, peer, encode(message))

    def poll(self) -> None:
        """Hand over what has arrived."""
        handler, inbox = self._handler, self._inbox
        while inbox and handler is not None:
            peer, what = inbox.popleft()
            if what is CONNECTED:
                handler.on_connected(peer)
            elif what is GONE:
                handler.on_disconnected(peer)
            else:
                handler.on_message(peer, decode(what))  # type: ignore[arg-type]  # neither: a frame

    def close(self) -> None:
        """End all connections."""
        self._peers.detach(self)

    # --- what the network calls ---

    def arrive(self, peer: str, what: object) -> None:
        """Put a frame, or the news of a connection, where the next poll finds it."""
        if self.process.alive:
            self._inbox.append((peer, what))
            self.wake()


class _Connection:
    """Between two running ends. What is sent on one never arrives on the next."""

    def __init__(self, a: PeerEnd, b: PeerEnd) -> None:
        self.ends = {a.machine: a, b.machine: b}
        self.is_up = True
        self.silent_since_us: int | None = None
        self.patience_us = 0


class Peers:
    """All nodes' ends and the connections between them."""

    def __init__(self, schedule: Schedule, wire: Wire, random: Random) -> None:
        self._schedule, self._wire, self._random = schedule, wire, random
        self._ends: dict[str, PeerEnd] = {}
        self._connections: dict[tuple[str, str], _Connection] = {}
        self._retry_us: dict[tuple[str, str], int] = {}
        schedule.after(LOOK_US, self._look)

    def attach(self, end: PeerEnd) -> None:
        """A node has started."""
        self._ends[end.machine] = end

    def detach(self, end: PeerEnd) -> None:
        """A node is gone; its peers notice when they are told, or by the silence."""
        if self._ends.get(end.machine) is end:
            del self._ends[end.machine]
        for pair in [pair for pair in self._connections if end.machine in pair]:
            self._break(pair)

    def carry(self, source: PeerEnd, target: str, frame: bytes) -> bool:
        """Send a frame on the present connection; False if there is none."""
        pair = _pair(source.machine, target)
        connection = self._connections.get(pair)
        if connection is None or connection.ends[source.machine] is not source:
            return False
        departs_us = source.departs_us()
        receiver = connection.ends[target]

        def deliver() -> None:
            died_us = source.process.died_at_us
            if connection.is_up and (died_us is None or departs_us <= died_us):
                receiver.arrive(source.machine, frame)

        self._wire.path(source.machine, target).frame(deliver, departs_us)
        return True

    # --- connections come and go ---

    def _look(self) -> None:
        names = sorted(self._ends)
        for place, a in enumerate(names):
            for b in names[place + 1 :]:
                self._look_at((a, b))
        self._schedule.after(LOOK_US, self._look)

    def _look_at(self, pair: tuple[str, str]) -> None:
        now = self._schedule.now_us
        reachable = self._reachable(pair)
        connection = self._connections.get(pair)
        if connection is None:
            if reachable and now >= self._retry_us.setdefault(pair, self._later()):
                self._connect(pair)
            elif not reachable:
                self._retry_us.pop(pair, None)
        elif reachable:
            connection.silent_since_us = None
        elif connection.silent_since_us is None:
            connection.silent_since_us = now
            connection.patience_us = self._random.randint(*SILENCE_US)
        elif now - connection.silent_since_us >= connection.patience_us:
            self._break(pair)

    def _later(self) -> int:
        return self._schedule.now_us + self._random.randint(*RECONNECT_US)

    def _reachable(self, pair: tuple[str, str]) -> bool:
        there, back = self._wire.both(*pair)
        running = all(self._ends[name].process.runs for name in pair)
        return running and not there.is_cut and not back.is_cut

    def _connect(self, pair: tuple[str, str]) -> None:
        a, b = (self._ends[name] for name in pair)
        self._retry_us.pop(pair, None)
        if version_problem(a.machine, b.machine, b.versions(), a.versions()):
            return
        self._connections[pair] = _Connection(a, b)
        a.builds[b.machine], b.builds[a.machine] = b.versions().build, a.versions().build
        a.arrive(b.machine, CONNECTED)
        b.arrive(a.machine, CONNECTED)

    def _break(self, pair: tuple[str, str]) -> None:
        connection = self._connections.pop(pair)
        connection.is_up = False
        for name, end in connection.ends.items():
            (other,) = (machine for machine in pair if machine != name)
            end.arrive(other, GONE)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)
