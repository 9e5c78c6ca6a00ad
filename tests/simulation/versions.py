"""Mixed versions: nodes that are older at first, and are upgraded while things go wrong (ADR 26).

An older node runs the same code and tells its peers a lower newest level; what it would not be able
to read is looked for by `beyond`. Exchanges of versions are faults like any other, so that a part
of them can be replayed. One node stays older until all others are done: before that, nobody may
end the upgrade, whatever is asked and whoever is away.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN, level_of
from holdfast.raft.api import Build
from simulation.faults import Planned, changes_nodes
from simulation.nodes import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.events import Record

OLDER: Final = Build("older", LEVEL_MIN, LEVEL_MAX - 1)
NEWER: Final = Build("newer", LEVEL_MIN, LEVEL_MAX)
UPGRADE, DOWNGRADE = "upgrade", "downgrade"
BUILDS: Final = {UPGRADE: NEWER, DOWNGRADE: OLDER}
MIXED_ONE_IN: Final = 3
LAST: Final = (0.6, 0.8)
"""When the last node is upgraded, as a part of the time in which there are faults."""
LASTS_S: Final = (0.3, 2.0)
"""How long an exchange takes, in seconds: a stop, an installation, and a start."""


def is_mixed(seed: int) -> bool:
    """Whether the nodes of a seed are of two versions. Nodes that change begin at the newest."""
    return Random(f"{seed} mixed").randrange(MIXED_ONE_IN) == 0 and not changes_nodes(seed)


def first_builds(seed: int) -> dict[str, Build]:
    """What each node of a mixed seed runs at first; one at least is older."""
    random = Random(f"{seed} builds")
    older = random.sample(NAMES, random.randint(1, len(NAMES)))
    return {name: OLDER if name in older else NEWER for name in NAMES}


def exchanges(seed: int, begins_us: int, ends_us: int, first: int) -> list[Planned]:
    """The exchanges of a mixed seed, numbered from `first`; in the end all nodes are newer."""
    random = Random(f"{seed} exchanges")
    builds = first_builds(seed)
    last = random.choice([name for name, build in builds.items() if build == OLDER])
    last_us = begins_us + round(random.uniform(*LAST) * (ends_us - begins_us))
    planned = [(last_us, UPGRADE, last)]
    for name, build in builds.items():
        if name != last:
            kinds = [UPGRADE] if build == OLDER else []
            kinds += [DOWNGRADE, UPGRADE] * random.randint(0, 2)
            moments = sorted(random.randrange(begins_us, last_us) for _ in kinds)
            planned += [(at_us, kind, name) for at_us, kind in zip(moments, kinds, strict=True)]
    return [
        Planned(number, at_us, kind, name, round(random.uniform(*LASTS_S) * 1e6))
        for number, (at_us, kind, name) in enumerate(sorted(planned), first)
    ]


def beyond(build: Build | None, level: int, records: Iterable[Record] = ()) -> str:
    """Say what a node could not read whose state is of this level; "" if it could read all.

    Its state must never be above its newest level, nor any event that it applies (S3).
    """
    if build is None:
        return ""
    if level > build.newest:
        return f"its state is of level {level}, its newest is {build.newest}"
    above = [each.event for each in records if level_of(each.event) > build.newest]
    return f"it has applied {above[0]}, its newest level is {build.newest}" if above else ""
