"""Sealed segments of simulated nodes: the real `Sealing`, over a modelled child and folder (S22).

What a segment holds is worked out by the child's own code, from the modelled directory of the
state. Nothing is dropped there afterwards: to read a segment, or to fetch one, takes files
(tests/cluster). In some seeds boundaries are set by number, by age and by an operator's call, and
in the end every node must have the segments that the log tells of.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from holdfast.coordinator.model.events import SegmentSealed, SettingChange
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended
from holdfast.runtime.event_log.seal import Sealing, SealingPlace
from holdfast.storage.codec.event_codec import decode_record
from holdfast.storage.segments import seal
from holdfast.storage.segments.segments import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.storage.state.state_store import StateStore
    from simulation.disk import Disk, StateDisk
    from simulation.nodes import SimNode

SEALED: Final = 0.3
"""In how many of the seeds boundaries are set."""
BOUNDS: Final = (
    SettingChange("log.segment_events_max", "150"),
    SettingChange("log.segment_age_ms_max", "5000"),
)
TAKES_S: Final = (0.02, 1.5)
"""How long a child takes until it has its first segment."""
NEXT_S: Final = (0.0, 0.3)
"""And from one segment to the next."""
DIES: Final = 0.15
"""How likely it is that a child dies on its way."""
PAUSE_S_MAX: Final = 2.0
"""What failed is tried again sooner than on a real node: a run lasts a minute."""
_BEGINNING: Final = Position(0, 0)


def seals(seed: int) -> bool:
    """Whether boundaries are set in this seed."""
    return Random(f"{seed} sealing").random() < SEALED


class Segment(NamedTuple):
    """What a segment on a modelled disk holds; `digest`: over positions and payloads."""

    first: Position
    last: Position
    digest: str


def sealing_of(node: SimNode, turn: int) -> Sealing:
    """Make what seals on a node; its children are models from now on.

    `turn`: how many nodes seal before it.
    """
    process, replica = node.process, node.replica
    if process is None or replica is None:
        raise RuntimeError(f"{node.name} does not run")
    process.child = Child(node.disk, node.sealers)
    place = SealingPlace(Path("state"), Path("segments"), "simulated", node.name, turn)
    store = cast("StateStore", Store(node.disk.state))
    return Sealing(place, store, replica.snapshot, lambda: replica.state.level, _pause)


async def _pause(seconds: float) -> None:
    await asyncio.sleep(min(seconds, PAUSE_S_MAX))


class Store:
    """The part of a `StateStore` that sealing needs, over a modelled directory."""

    generation: Final = 0

    def __init__(self, disk: StateDisk) -> None:
        self._disk = disk

    def event_count(self) -> int:
        """How many records the event log has."""
        return len(self._disk.stored.events)

    def drop_events(self, through: tuple[int, int], **_: object) -> bool:
        """Keep them, since nobody here can read a segment."""
        del through
        return True

    def release_dead_readers(self) -> None:
        """There are none."""


class Child:
    """The process that seals: a model of its time and its death around its own code."""

    def __init__(self, disk: Disk, random: Random) -> None:
        self._disk = disk
        self.random = random
        """Of the world's seed: when it is done, and whether it dies."""

    async def __call__(self, module: str, *arguments: str) -> Ended:
        """Seal segment by segment; what is done before its death stays."""
        if module != seal.__name__:
            raise RuntimeError(f"no model of {module}")
        last = Position(int(arguments[2]), int(arguments[3]))
        done = max((each.last for each in self._disk.segments), default=_BEGINNING)
        dies = self.random.random() < DIES
        await asyncio.sleep(self.random.uniform(*TAKES_S))
        printed = ""
        for rows in seal.segments_due(self._disk.state, done, last):
            if dies and self.random.random() < 0.5:
                break
            self._disk.segments.append(segment_of(rows))
            _, last_in_it, _ = self._disk.segments[-1]
            printed += f"{seal.Made(str(last_in_it.index), last_in_it)}\n"
            await asyncio.sleep(self.random.uniform(*NEXT_S))
        return Ended(-9, printed, "killed") if dies else Ended(0, printed, "")


def segment_of(rows: Iterable[Row]) -> Segment:
    """Make the segment of these records."""
    held = list(rows)
    digest = sha256(repr(held).encode()).hexdigest()
    return Segment(held[0].position, held[-1].position, digest)


# --- what must be true in the end ---


def broken_segments(
    name: str, found: Sequence[Segment], log: Iterable[Row], at_least: int
) -> list[str]:
    """S22: a node has the segments that its log tells of, from the first one on, and no others.

    `at_least`: the entry up to which boundaries are so old that it has sealed up to them.
    """
    rows = sorted(set(log))
    told = list(_boundaries(rows))
    ends = [_BEGINNING, *(last for _, last in told)]
    wanted = [
        segment_of(row for row in rows if before < row.position <= last)
        for before, last in pairwise(ends)
    ]
    due = sum(position.index <= at_least for position, _ in told)
    if [*found] != wanted[: len(found)]:
        return [f"{name} has sealed {_named(found)}, and the log tells {_named(wanted)}"]
    if len(found) < due:
        return [f"{name} has sealed {_named(found)} only, of {_named(wanted[:due])}"]
    return []


def log_of(node: SimNode) -> Iterator[Row]:
    """Yield all records that a node has, some of them twice."""
    events = [*node.disk.state.stored.events]
    if node.snapshots is not None:
        events += node.snapshots.tail.since(_BEGINNING).records
    for event in events:
        yield Row(Position(event.index, event.ordinal), event.payload)


def _boundaries(rows: Iterable[Row]) -> Iterator[tuple[Position, Position]]:
    """Yield where each boundary is told, and where it is."""
    for row in rows:
        event = decode_record(row.content).event
        if isinstance(event, SegmentSealed):
            yield row.position, event.last


def _named(segments: Iterable[Segment]) -> str:
    places = (
        f"{s.first.index}.{s.first.ordinal}-{s.last.index}.{s.last.ordinal}" for s in segments
    )
    return ", ".join(places) or "nothing"
