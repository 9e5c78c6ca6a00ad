"""Intervals as columns: each is linked to those before it on its partition, and to no other."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.replay.analyse.intervals import Interval
from holdfast.replay.analyse.one_pass import interval_table
from holdfast.replay.analyse.one_pass.interval_table import IntervalTable, Linked
from holdfast.replay.analyse.one_pass.ownership_sums import StepSums

FAR_MS = 1 << 62
"""A time that no sum of times and partitions may overflow with: a log may say anything."""


def interval(place: tuple[str, str, int], owner: str, start: int, end: int) -> Interval:
    return Interval(*place, owner, f"{owner}-{start}", start, start, end, "generation", 0)


def linked(owned: list[Interval]) -> Linked:
    table = IntervalTable()
    for each in owned:
        table.add([each])
    return table.linked()


@pytest.mark.parametrize("waiting_max", [1, 7, 10_000])
def test_a_gap_is_counted_from_the_latest_end_before_it(
    waiting_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many partitions, intervals in any order, some within others, one at the end of all times."""
    monkeypatch.setattr(interval_table, "_WAITING_MAX", waiting_max)
    chance = Random(3)
    places = [(g, t, n) for g in ("g", "h") for t in ("t", "u", "é") for n in (0, 9, 10)]
    owned = [
        interval(place, chance.choice("ab"), start, start + chance.choice((0, 5, 90)))
        for place in places
        for start in chance.sample(range(1_000), 12)
    ]
    owned.append(interval(places[4], "a", 2_000, FAR_MS))
    chance.shuffle(owned)

    found = linked(owned)

    wanted: list[tuple[int, int, int | None]] = []
    for place in sorted(places):
        reach: int | None = None
        for each in sorted((o for o in owned if o[:3] == place), key=lambda o: o.start_ms):
            wanted.append((each.start_ms, each.end_ms, reach))
            reach = each.end_ms if reach is None else max(reach, each.end_ms)
    spans = found.spans
    told = zip(
        *(c.tolist() for c in (spans.start, spans.end, spans.reach, spans.after)), strict=True
    )
    assert [(s, e, reach if after else None) for s, e, reach, after in told] == wanted


def test_steps_are_moves_gaps_and_overlaps_and_kept_partitions_are_none() -> None:
    """A goes on under another member id at once; b comes 5 ms late, and c 3 ms too early."""
    place = ("g", "t", 0)
    owned = [interval(place, "a", 0, 10), interval(place, "a", 10, 20)]
    owned += [interval(place, "b", 25, 40), interval(place, "c", 37, 50)]

    sums = StepSums(linked(owned))

    steps = [(each.before, each.after, each.gap_ms, each.moved) for each in sums.steps()]
    assert steps == [("a", "b", 5, True), ("b", "c", -3, True)]
    assert sums.total == len(steps)
    (told,) = sums.groups()
    assert told._asdict() == {
        "group": "g",
        "steps": 3,
        "moves": 2,
        "kept": 1,
        "ownerless_ms": 5,
        "ownerless_max_ms": 5,
        "overlaps": 1,
    }


def test_a_bucket_without_intervals_tells_of_no_group() -> None:
    sums = StepSums(linked([]))

    assert (sums.steps(), list(sums.groups()), sums.sizes(), sums.total) == ([], [], [], 0)
    assert sums.whole().intervals == 0
