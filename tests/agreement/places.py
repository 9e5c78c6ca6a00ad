"""Where a log is compared: indexes chosen at random, with what nodes told of their state there.

Knows the log's ends and anchors, no records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from holdfast.replay.read.anchor_files import Anchor
from holdfast.replay.read.node_logs import NodeLog


class Place(NamedTuple):
    """A place behind an entry."""

    index: int  # type: ignore[assignment]  # `tuple.index` is not missed
    told: tuple[Anchor, ...] = ()
    """What nodes told there while they ran; empty: SQL and fold alone are compared."""


def chosen(log: NodeLog, anchors: Iterable[Anchor], count: int, seed: int) -> list[Place]:
    """Choose so many places: of those that anchors are of, or any if there is no anchor.

    Anchors behind the last record are left out: of what they tell, records may be missing.
    """
    at = defaultdict[int, list[Anchor]](list)
    for anchor in anchors:
        at[anchor.index].append(anchor)
    indexes = sorted(at) or range(1, log.last.index + 1)
    reached = [index for index in indexes if index <= log.last.index]
    picked = Random(seed).sample(reached, min(count, len(reached)))
    return [Place(index, tuple(at.get(index, ()))) for index in sorted(picked)]
