"""What a `Watch` knows, as plain data for JSON, so that the next batch goes on with it.

Knows the fields of the timelines, which it must name one by one: a new field belongs here as well.
No Spark, no files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.coordinator.model.ids import TopicPartition
from holdfast.replay.analyse.intervals import Held, Ledger
from holdfast.replay.analyse.ownership import OwnershipTimeline
from holdfast.replay.analyse.stepwise import StepwiseTimeline
from holdfast.replay.stream.watch import WINDOW_MS, GroupWatch, Limits, Watch

FORMAT: Final = 1

_Plain = dict[str, Any]


def plain(watch: Watch, now_ms: int) -> _Plain:
    """Return what a watch knows; counts that can matter no more at `now_ms` are left out."""
    groups = [_group(each, now_ms) for _, each in sorted(watch.groups.items())]
    return {"format": FORMAT, "groups": groups}


def watch(known: _Plain, limits: Limits) -> Watch:
    """Return the watch that goes on from there. Raises ValueError for another format."""
    if known.get("format") != FORMAT:
        raise ValueError(f"its state has format {known.get('format')!r}, not {FORMAT}")
    made = Watch(limits)
    for each in known["groups"]:
        made.begin(_read_group(each))
    return made


def _group(group: GroupWatch, now_ms: int) -> _Plain:
    timeline, oldest_ms = group.timeline, now_ms - WINDOW_MS
    times = {name: t for name, t in group.times.items() if t and t[-1] >= oldest_ms}
    return {
        "group": timeline.group,
        "owners": timeline.owners,
        "granted": [[name, _places(some)] for name, some in timeline.granted.items()],
        "consumer": timeline.consumer,
        "stable": timeline.stable,
        "now_ms": timeline.now_ms,
        "held": [[*place, who, *held] for (place, who), held in timeline.ledger.held.items()],
        "stepwise": timeline.stepwise and _stepwise(timeline.stepwise),
        "free": [[*place, since_ms] for place, since_ms in group.free.items()],
        "times": times,
        "loud": sorted(group.loud & times.keys()),
    }


def _stepwise(timeline: StepwiseTimeline) -> _Plain:
    kept = timeline.kept.items()
    return {
        "owners": timeline.owners,
        "asked": [[name, _places(some)] for name, some in timeline.asked.items()],
        "kept": [[name, [[*p, token] for p, token in some.items()]] for name, some in kept],
        "classic": sorted(timeline.classic),
        "predecessors_until_ms": timeline.predecessors_until_ms,
    }


def _read_group(known: _Plain) -> GroupWatch:
    ledger = Ledger(known["group"])
    for topic, number, who, *held in known["held"]:
        ledger.held[TopicPartition(topic, number), who] = Held(*held)
    timeline = OwnershipTimeline(
        known["group"],
        owners=known["owners"],
        granted={name: tuple(_read_places(some)) for name, some in known["granted"]},
        consumer=known["consumer"],
        stable=known["stable"],
        now_ms=known["now_ms"],
        stepwise=known["stepwise"] and _read_stepwise(known["stepwise"], ledger),
    )
    timeline.ledger = ledger
    free = {TopicPartition(topic, number): since for topic, number, since in known["free"]}
    return GroupWatch(timeline, free, known["times"], set(known["loud"]))


def _read_stepwise(known: _Plain, ledger: Ledger) -> StepwiseTimeline:
    kept = {
        name: {TopicPartition(topic, number): token for topic, number, token in some}
        for name, some in known["kept"]
    }
    return StepwiseTimeline(
        ledger,
        owners=known["owners"],
        asked={name: set(_read_places(some)) for name, some in known["asked"]},
        kept=kept,
        classic=set(known["classic"]),
        predecessors_until_ms=known["predecessors_until_ms"],
    )


def _places(some: Iterable[TopicPartition]) -> list[list[object]]:
    return [[*place] for place in sorted(some)]


def _read_places(some: Iterable[tuple[str, int]]) -> Iterable[TopicPartition]:
    return (TopicPartition(*place) for place in some)
