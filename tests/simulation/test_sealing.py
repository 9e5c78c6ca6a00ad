"""S22: the judge of segments says no to what breaks the rule, and to nothing else.

And what it judges differs from seed to seed.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.events import SegmentSealed
from holdfast.coordinator.model.ids import Position
from simulation.outcome import BUSY
from simulation.pinned import pinned
from simulation.sealing import Child, Segment, broken_segments, seals, segment_of
from simulation.world import World
from spark.event_logs import EventLog, busy_log, committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.storage.segments.segments import Row


def log_with_boundaries() -> tuple[EventLog, list[Position], list[int]]:
    """A log, its boundaries, and the entries that tell them."""
    log, ends, told = busy_log(groups=2, commits=9), [Position(0, 0)], []
    for nth in range(3):
        ends.append(log.records[-1].position)
        told.append(log.entry("", SegmentSealed(ends[-1])))
        log.entry("g0", committed(0, 100 + nth))
    return log, ends, told


LOG, ENDS, TOLD = log_with_boundaries()


def between(after: Position, last: Position) -> list[Row]:
    return [row for row in LOG.rows if after < row.position <= last]


RIGHT = [segment_of(between(*each)) for each in pairwise(ENDS)]


@pytest.mark.parametrize("sealed", [2, 3])
def test_segments_up_to_a_boundary_of_long_ago_are_right(sealed: int) -> None:
    """A node may not have come to the newest one yet; some records are found in two places."""
    assert not broken_segments("n", RIGHT[:sealed], [*LOG.rows, *LOG.rows[-3:]], TOLD[1])


def merged() -> list[Segment]:
    return [segment_of(between(ENDS[0], ENDS[2])), RIGHT[2]]


def other_bytes() -> list[Segment]:
    first, *others = between(ENDS[1], ENDS[2])
    return [RIGHT[0], segment_of([first._replace(content=b"other"), *others]), RIGHT[2]]


def out_of_order() -> list[Segment]:
    return [RIGHT[1], RIGHT[0]]


def one_more() -> list[Segment]:
    return [*RIGHT, segment_of(row for row in LOG.rows if row.position > ENDS[3])]


def too_few() -> list[Segment]:
    return RIGHT[:1]


@pytest.mark.parametrize("wrong", [merged, other_bytes, out_of_order, one_more, too_few])
def test_everything_else_is_told_with_the_name_of_the_node(
    wrong: Callable[[], list[Segment]],
) -> None:
    (what,) = broken_segments("node-7", wrong(), LOG.rows, TOLD[1])

    assert what.startswith("node-7 has sealed")


def test_boundaries_are_set_in_some_of_the_seeds() -> None:
    """The others keep their time for what is judged everywhere."""
    count = sum(seals(seed) for seed in range(1, 201))

    assert 30 <= count <= 100


def no_channel(*_: object) -> object:
    """Clients open none before the nodes have started."""
    raise AssertionError("a client has begun already")


def fates(seed: int) -> list[float]:
    """What the chance of a node's children that seal says first in the world of a seed."""
    with pinned(seed, no_channel):
        world = World(seed, [], BUSY._replace(seals=True))
        world.schedule.run(1_000)
        process = world.nodes["node-1"].process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what has not begun yet
            world.close()
    assert process is not None
    assert isinstance(process.child, Child)
    return [process.child.random.random() for _ in range(8)]


def test_each_seed_has_its_own_fates_of_children_that_seal() -> None:
    """Else all seeds try the same few deaths of a child, at the same of its segments."""
    assert fates(1) == fates(1)
    assert fates(1) != fates(2)
