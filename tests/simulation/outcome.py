"""Runs one seed and says what came of it. `run_seed` is the one way in.

A patch is a context manager's maker: it is entered before the world is made and left at the end, so
that a seeded defect lies over the product for exactly one run.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.chaos.checkers import judge
from holdfast.chaos.history.happenings import Granted, Recorded, WatchGap
from holdfast.chaos.history.jsonl import line_of
from simulation import faults as planning
from simulation import node_rules
from simulation.hurry import hurried
from simulation.pinned import pinned
from simulation.populations import drawn, has_heartbeats, pause_ms
from simulation.schedule import US
from simulation.sealing import broken_segments, log_of, seals
from simulation.versions import exchanges, is_mixed
from simulation.world import Shape, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from holdfast.chaos.history.happenings import Happening
    from simulation.faults import Planned

    Patch = Callable[[], AbstractContextManager[object]]

HEALS_WITHIN_US: Final = 30 * US
BUSY: Final = Shape()


class Broken(NamedTuple):
    """A violation: which invariant, when, and what happened."""

    invariant: str
    at_us: int
    what: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `digest` covers the whole history, byte by byte."""

    seed: int
    faults: tuple[Planned, ...]
    history: Sequence[Happening]
    violations: tuple[Broken, ...]
    digest: str
    simulated_us: int
    healed_after_us: int | None
    counts: Counter[str] = field(default_factory=Counter)
    fault_counts: Counter[str] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        """Whether nothing was broken."""
        return not self.violations


def run_seed(
    seed: int,
    *,
    patches: Iterable[Patch] = (),
    faults: Sequence[Planned] | None = None,
    shape: Shape | None = None,
) -> Outcome:
    """Run a seed. `faults` None: the seed's own; a part of them otherwise (shrink.py).

    `shape` None: the seed's own, too.
    """
    shape = shape or shape_of(seed)
    chosen = planned(seed, shape) if faults is None else list(faults)
    alarms = _Alarms()
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch())
        stack.enter_context(alarms.listening())
        stack.enter_context(_no_collection())
        return _run(seed, chosen, shape, alarms)


def shape_of(seed: int) -> Shape:
    """The world of a seed: its groups; in some, nodes of two versions, targets apart, segments."""
    mixed = is_mixed(seed)
    kinds = drawn(seed, mixed_versions=mixed)
    apart_ms = 0 if mixed else pause_ms(seed, kinds)
    return BUSY._replace(mixed=mixed, kinds=kinds, pause_ms=apart_ms, seals=seals(seed))


def planned(seed: int, shape: Shape) -> list[Planned]:
    """All faults of a seed in a world: with the exchanges of versions, if it has some.

    Nodes of two versions do not change: a change of nodes needs the newest level.
    """
    begins_us, ends_us = (round(second * US) for second in shape.fault_s)
    faults = planning.plan(seed, begins_us, ends_us)
    if shape.mixed:
        faults = [fault for fault in faults if fault.kind not in planning.CHANGES]
    if has_heartbeats(shape.kinds):
        faults += planning.beats(seed, len(faults) + 1, begins_us, ends_us)
    if shape.mixed:
        faults += exchanges(seed, begins_us, ends_us, len(faults) + 1)
    return faults


def _run(seed: int, faults: list[Planned], shape: Shape, alarms: _Alarms) -> Outcome:
    opened: list[World] = []

    def open_channel(address: str, credentials: object) -> Any:  # noqa: ANN401 - a channel
        return opened[0].open_channel(address, credentials)

    with pinned(seed, open_channel):
        world = World(seed, faults, shape)
        opened.append(world)
        alarms.now_us = lambda: world.schedule.now_us
        world.run()
    outcome = _outcome(world, faults, alarms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # what a dead process never began
        world.close()
    alarms.now_us = _beginning  # else it would keep this world until the next run is over
    return outcome


def _outcome(world: World, faults: list[Planned], alarms: _Alarms) -> Outcome:
    history = world.recorder.history
    broken = [*alarms.heard, *_complaints(world), *_liveness(world), *_judged(history)]
    broken += _gaps(history)
    broken += [Broken("level", *found) for found in world.recorder.beyond]
    broken += _of_nodes_that_changed(world)
    broken += _of_segments(world)
    broken += [Broken("hurry", *each) for each in hurried(history)]
    return Outcome(
        seed=world.seed,
        faults=tuple(faults),
        history=history,
        violations=tuple(broken),
        digest=digest_of(history),
        simulated_us=world.schedule.now_us,
        healed_after_us=_healed_after(world),
        counts=_counts(world),
        fault_counts=world.nemesis.counts,
    )


def digest_of(history: Iterable[Happening]) -> str:
    """SHA-256 over the history as a file would have it."""
    digest = hashlib.sha256()
    for happening in history:
        digest.update(line_of(happening).encode() + b"\n")
    return digest.hexdigest()


def _counts(world: World) -> Counter[str]:
    history = world.recorder.history
    kinds = Counter(type(happening).__name__ for happening in history)
    counts = world.recorder.counts
    return Counter(
        events=world.schedule.happened,
        happenings=len(history),
        calls=kinds["Invoked"],
        records=kinds["Recorded"],
        acknowledged=len(world.recorder.acknowledged),
        elections=counts["elections"],
        installs=counts["installs"],
        grants=kinds["Granted"],
        kept=sum(isinstance(each, Granted) and each.tokens != () for each in history),
        writes=kinds["Wrote"],
        watched=kinds["Watched"],
        moves=moves_of(history),
        **_of_heartbeats(history),
        faults=sum(world.nemesis.counts.values()),
        **_of_nodes(world),
        boundaries=sum(isinstance(e, Recorded) and e.kind == "SegmentSealed" for e in history),
        segments=sum(len(node.disk.segments) for node in world.nodes.values()),
    )


def _of_heartbeats(history: Iterable[Happening]) -> dict[str, int]:
    """How often groups of the heartbeat protocol raised their epoch, and groups changed it."""
    kinds = Counter(each.kind for each in history if isinstance(each, Recorded))
    return {"epochs": kinds["EpochRaised"], "conversions": kinds["GroupConverted"]}


def _of_nodes(world: World) -> dict[str, int]:
    """Changes of nodes that were made, questions and refusals, and nodes that were told to go."""
    asked = world.changes.counts
    return {
        "node_changes": world.recorder.counts["node changes"],
        "changes_asked": asked["asked"],
        "changes_refused": asked["refused"],
        "nodes_told": sum(node.is_out for node in world.nodes.values()),
    }


def moves_of(history: Iterable[Happening]) -> int:
    """How often a partition has got another owner than the one before."""
    owners: dict[tuple[str, str, int], str] = {}
    moves = 0
    for happening in history:
        if type(happening).__name__ != "Granted":
            continue
        owner = happening.instance_id or happening.member_id  # type: ignore[union-attr]  # a Granted
        for topic, number in happening.partitions:  # type: ignore[union-attr]  # a Granted
            place = (happening.group, topic, number)  # type: ignore[union-attr]  # a Granted
            moves += owners.get(place, owner) != owner
            owners[place] = owner
    return moves


# --- what was broken ---


def _healing_us(world: World) -> int:
    history = world.recorder.history
    phases = [each for each in history if type(each).__name__ == "Phase"]
    return next(each.at_us for each in phases if each.name == "healing")  # type: ignore[union-attr]  # a Phase


def _healed_after(world: World) -> int | None:
    if world.healed_us is None:
        return None
    return world.healed_us - _healing_us(world)


def _liveness(world: World) -> list[Broken]:
    """INV-15: without faults the cluster is whole again in time, serves, and comes to one state."""
    after_us = _healed_after(world)
    late = after_us is None or after_us > HEALS_WITHIN_US
    if not late and not world.sick:
        return []
    what = f"not healed within {HEALS_WITHIN_US // US} s" if late else "healed, but not well"
    return [Broken("I15", world.schedule.now_us, f"{what}: {world.sick}")]


def _complaints(world: World) -> list[Broken]:
    """What was raised where nobody handled it."""
    return [
        Broken(
            "defect",
            0,
            f"{process.name}: {complaint.get('message')} {complaint.get('exception')!r}",
        )
        for process in world.processes
        for complaint in process.loop.complaints
    ]


def _judged(history: Sequence[Happening]) -> list[Broken]:
    """INV-1 to INV-12 and INV-17; what a checker could not decide is no pass either."""
    judgement = judge(history)
    end_us = history[-1].at_us
    undecided = [Broken("undecided", end_us, sentence) for sentence in judgement.undecided]
    return [*(Broken(*violation) for violation in judgement.violations), *undecided]


def _of_nodes_that_changed(world: World) -> list[Broken]:
    """INV-16, of the whole history; and whoever was removed has been told by its end."""
    found = node_rules.broken_rules(world.recorder.history)
    outlasting = [
        Broken("I16", world.schedule.now_us, f"{name} was removed, was not told, and runs")
        for name in world.outlasting
    ]
    return [*(Broken("I16", *each) for each in found), *outlasting]


def _of_segments(world: World) -> list[Broken]:
    """S22: all nodes have sealed the same segments, those that the log tells of."""
    if not world.shape.seals:
        return []
    nodes = [node for node in world.cluster if node.runs and node.replica is not None]
    return [
        Broken("segments", world.schedule.now_us, what)
        for node in nodes
        for what in broken_segments(node.name, node.disk.segments, log_of(node), world.healed_index)
    ]


def _gaps(history: Sequence[Happening]) -> list[Broken]:
    """INV-10, and more: nothing is ever dropped here, so every node holds the whole log."""
    return [
        Broken("I10", each.at_us, f"{each.watch} was told of a gap, but nothing was ever dropped")
        for each in history
        if isinstance(each, WatchGap)
    ]


def _beginning() -> int:
    return 0


class _Alarms(logging.Handler):
    """Hears what the product says loudest: an alarm is a violation, whoever raises it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[Broken] = []
        self.now_us: Callable[[], int] = _beginning

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "alarm" in text:
            why = record.exc_info[1] if record.exc_info else None
            self.heard.append(Broken("alarm", self.now_us(), f"{text} {why!r}"))

    def listening(self) -> AbstractContextManager[object]:
        return _listening(self)


@contextmanager
def _listening(handler: logging.Handler) -> Iterator[None]:
    logger = logging.getLogger("holdfast")
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


@contextmanager
def _no_collection() -> Iterator[None]:
    """Garbage is collected after the run: coroutines of dead processes end late, and unseen.

    What was there before the run is frozen, so that the one collection need not walk it.
    """
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what a dead process never began
            gc.collect()
        gc.unfreeze()
        gc.enable()
