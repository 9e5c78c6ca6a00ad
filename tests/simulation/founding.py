"""A disk on which somebody had started a node alone, with --bootstrap, before it is added (S25 f).

The real engine founds a cluster of one on it, leads it and commits an entry, all before the world
looks: nobody called that cluster, and nobody ever will. Knows no world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.journal import SimDisk
from holdfast.coordinator.model.events import LogEntry
from holdfast.raft.api import Applied
from holdfast.raft.pysyncobj.engine import Engine
from holdfast.storage.codec.event_codec import encode_entry

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Settings, TransportHandler
    from holdfast.raft.messages import Message
    from simulation.disk import Disk

TICKS: Final = 8
TICK_S: Final = 0.2
STARTS: Final = (1, 4, 24)
"""How often such a node was started, of which one is chosen: each start is an election."""


class _Nobody:
    """A transport without peers."""

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        """Nobody is there."""

    def send(self, peer: str, message: Message) -> bool:
        """Nobody hears it."""
        del peer, message
        return False

    def poll(self) -> None:
        """Nothing comes."""

    def close(self) -> None:
        """Nothing was open."""


class _Watch:
    """A clock that goes on by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def found_alone(name: str, cluster: str, settings: Settings, disk: Disk, random: Random) -> None:
    """Found a cluster of one on a disk, and start its node so often that its term grows, or not."""
    disk.founded_alone = True
    for start in range(random.choice(STARTS)):
        clock = _Watch()
        engine = Engine(
            node_id=name,
            peers=(),
            cluster_id=cluster,
            settings=settings,
            journal=disk.journal,
            transport=_Nobody(),
            clock=clock,
            random=random,
            snapshots=SimDisk(),
            notes=disk.notes,
            bootstrap=start == 0,
        )
        _lead(engine, clock)
        disk.journal.die(synced=True)


def _lead(engine: Engine, clock: _Watch) -> None:
    """Be elected, by nobody else, and commit an entry."""
    for tick in range(TICKS):
        clock.now += TICK_S
        if tick == TICKS // 2:
            engine.propose(encode_entry(LogEntry(1, 1, ())), engine.status().term)
        engine.tick()
        for item in engine.take():
            if isinstance(item, Applied):
                engine.evolved(item.index)
    assert engine.status().commit_index == engine.status().last_index > 1
    engine.close()
