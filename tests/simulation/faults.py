"""What goes wrong, when, to whom and for how long: a list that is made before the run begins.

The list is plain data, so that a part of it can be replayed (shrink.py) and a trace can hold it.
Who leads is not known beforehand: a target may be a role, which is looked up when the time comes.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from simulation.beats import DOUBLED, LATE, LOST
from simulation.nodes import NAMES

SECONDS: Final = 1_000_000


class Planned(NamedTuple):
    """One fault. `target`: `leader`, `follower`, a node, `all`, `two`, or `client:<n>`.

    A change of nodes stands among them; its target may be `new`, `voter` or `learner`, too.
    `lasts_us` 0: it is over at once. `number` names it within its seed, and is its chance.
    """

    number: int
    at_us: int
    kind: str
    target: str
    lasts_us: int
    amount: float = 0.0


class Kind(NamedTuple):
    """A kind of fault: how long it lasts in seconds, and at whom it is aimed."""

    lasts_s: tuple[float, float]
    targets: tuple[str, ...]
    amount: tuple[float, float] = (0.0, 0.0)


_ONE: Final = ("leader", "leader", "follower", *NAMES)
_CLIENT: Final = ("client",)

KINDS: Final[dict[str, Kind]] = {
    "crash": Kind((0.1, 4.0), _ONE),
    "restart": Kind((0.1, 2.0), _ONE),
    "pause": Kind((0.2, 6.0), _ONE),
    "power-cut": Kind((0.5, 4.0), ("leader", "follower", "two", "all", "all")),
    "partition": Kind((0.5, 7.0), _ONE),
    "one-way-in": Kind((0.5, 6.0), _ONE),
    "one-way-out": Kind((0.5, 6.0), _ONE),
    "leader-cut-off": Kind((0.5, 6.0), ("leader",)),
    "bridge": Kind((0.5, 6.0), _ONE),
    "loss": Kind((1.0, 6.0), ("nodes", "everybody"), (0.01, 0.30)),
    "delay": Kind((1.0, 6.0), ("nodes", "everybody"), (0.01, 0.30)),
    "doubling": Kind((1.0, 6.0), ("nodes",), (0.05, 0.50)),
    "reordering": Kind((1.0, 6.0), ("nodes",), (0.05, 0.50)),
    "slow-disk": Kind((1.0, 6.0), _ONE, (0.02, 0.90)),
    "failed-sync": Kind((0.0, 0.0), _ONE),
    "clock-rate": Kind((3.0, 15.0), (*NAMES, "client"), (0.9, 1.1)),
    "snapshot": Kind((0.0, 0.0), _ONE),
    "transfer": Kind((0.0, 0.0), ("leader",)),
    "new-disk": Kind((0.2, 3.0), ("follower",)),
    "client-pause": Kind((0.5, 12.0), _CLIENT),
    "client-cut": Kind((0.5, 9.0), _CLIENT),
    "connections-reset": Kind((0.0, 0.0), _ONE),
    "pause-then-crash": Kind((0.5, 3.0), ("leader",)),
}
CHANGES: Final[dict[str, Kind]] = {
    "add-node": Kind((2.0, 8.0), ("new",)),
    "promote-node": Kind((2.0, 10.0), ("learner",)),
    "remove-node": Kind((2.0, 8.0), ("leader", "leader", "voter", "voter", "learner")),
}
"""What is asked for where nodes come and go (node_changes.py), and for how long."""
BEATS: Final[dict[str, Kind]] = {
    LOST: Kind((1.0, 5.0), _CLIENT, (0.2, 0.9)),
    LATE: Kind((1.0, 6.0), _CLIENT, (0.2, 0.9)),
    DOUBLED: Kind((1.0, 6.0), _CLIENT, (0.3, 1.0)),
}
"""What becomes of the heartbeats of one machine, of so large a part of them (beats.py)."""
BEATS_GAP_S: Final = (0.5, 4.0)
CHANGING: Final = 0.2
"""In how many of the seeds they do, beside all faults."""
CHANGE_WEIGHTS: Final = (3, 4, 2)
CHANGE_GAP_S: Final = (0.5, 5.0)
FEWEST_KINDS: Final = 9
GAP_S: Final = (0.3, 3.2)
"""Between two faults; some begin while others still last."""
WORST: Final = 4.0
"""How much more often the favourite kind of a seed comes than the others."""


def plan(seed: int, begins_us: int, ends_us: int) -> list[Planned]:
    """The faults of a seed. Some kinds are left out, some come often: no seed is the average."""
    random = Random(f"{seed} faults")
    kinds = random.sample(sorted(KINDS), random.randint(FEWEST_KINDS, len(KINDS)))
    weights = [random.choice((1.0, 1.0, WORST)) for _ in kinds]
    first = list(kinds)
    planned: list[Planned] = []
    at_us = begins_us
    while at_us < ends_us:
        kind = first.pop() if first else random.choices(kinds, weights)[0]
        planned.append(_one(random, len(planned) + 1, at_us, kind))
        at_us += round(random.uniform(*GAP_S) * SECONDS)
    if changes_nodes(seed):
        planned += changes(seed, len(planned) + 1, begins_us, ends_us)
    return planned


def changes_nodes(seed: int) -> bool:
    """Whether nodes come and go in this seed's own plan."""
    return Random(f"{seed} changing").random() < CHANGING


def changes(seed: int, first: int, begins_us: int, ends_us: int) -> list[Planned]:
    """Changes of nodes, numbered from `first` on. Their chance is their own: faults stay as is."""
    random, at_us = Random(f"{seed} changes"), begins_us
    planned: list[Planned] = []
    while at_us < ends_us:
        (kind,) = random.choices(tuple(CHANGES), CHANGE_WEIGHTS)
        planned.append(_one(random, first + len(planned), at_us, kind))
        at_us += round(random.uniform(*CHANGE_GAP_S) * SECONDS)
    return planned


def beats(seed: int, first: int, begins_us: int, ends_us: int) -> list[Planned]:
    """Faults of heartbeats, numbered from `first` on. Their chance is their own, as above."""
    random, at_us = Random(f"{seed} beats"), begins_us
    planned: list[Planned] = []
    while at_us < ends_us:
        planned.append(_one(random, first + len(planned), at_us, random.choice(tuple(BEATS))))
        at_us += round(random.uniform(*BEATS_GAP_S) * SECONDS)
    return planned


def _one(random: Random, number: int, at_us: int, kind: str) -> Planned:
    how = KINDS.get(kind) or CHANGES.get(kind) or BEATS[kind]
    lasts_us = round(random.uniform(*how.lasts_s) * SECONDS)
    target = random.choice(how.targets)
    if target == "client":
        target = f"client:{random.randint(0, 999)}"
    return Planned(number, at_us, kind, target, lasts_us, round(random.uniform(*how.amount), 3))
