"""What the buckets of a log told, put together: the driver's part, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, TypeVar

from holdfast.replay.analyse.analysis import Bar, Cause
from holdfast.replay.analyse.one_pass.arrow_rows import unpacked
from holdfast.replay.analyse.one_pass.drawing import Plan, Row, Sums
from holdfast.replay.analyse.one_pass.listed import first_of
from holdfast.replay.analyse.one_pass.ownership_sums import SIZES_MAX, place_of_size
from holdfast.replay.analyse.one_pass.percentiles import median_of_counts
from holdfast.replay.analyse.one_pass.rebalance_tally import Taken
from holdfast.replay.analyse.sweep import Piece, sweep
from holdfast.replay.analyse.timeline import (
    COLUMNS_STRIP,
    NONE,
    REST,
    Bundle,
    CellRun,
    Scale,
    Size,
    Timeline,
    Totals,
    column_ms,
    scales,
)

T = TypeVar("T", bound="tuple[Any, ...]")


class Told:
    """The rows of all buckets, by their kind."""

    def __init__(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """`rows`: as `bucket_tasks` makes them."""
        self._contents: dict[str, list[bytes]] = {}
        for name, content in rows:
            self._contents.setdefault(name, []).append(content)

    def of(self, kind: type[T]) -> Iterator[T]:
        """Yield all rows of a kind."""
        for content in self._contents.get(kind.__name__, ()):
            yield from unpacked(kind, content)

    def first(self, kind: type[T], place: Callable[[T], Any]) -> tuple[T, ...]:
        """Return the first rows of a list."""
        return tuple(first_of(self.of(kind), place))


def causes(taken: Iterable[Taken]) -> list[Cause]:
    """Sum up each cause, the most frequent first."""
    of: dict[str, list[Taken]] = {}
    for each in taken:
        of.setdefault(each.cause, []).append(each)
    told = [_cause(cause, mine) for cause, mine in of.items()]
    return sorted(told, key=lambda cause: (-cause.rebalances, cause.cause))


def _cause(cause: str, taken: Sequence[Taken]) -> Cause:
    stable = [(each.stable_ms, each.rebalances) for each in taken if each.stable_ms is not None]
    number = sum(each.rebalances for each in taken)
    return Cause(
        cause=cause,
        rebalances=number,
        never=number - sum(number for _, number in stable),
        stable_p50_ms=median_of_counts(stable) if stable else None,
        stable_max_ms=max((stable_ms for stable_ms, _ in stable), default=None),
    )


def bars(several: Iterable[Bar]) -> list[Bar]:
    """Add up the bars of all buckets."""
    counts: Counter[tuple[int, str]] = Counter()
    for at, cause, number in several:
        counts[at, cause] += number
    return [Bar(at, cause, counts[at, cause]) for at, cause in sorted(counts)]


def plan_of(sizes: Iterable[Size], begun_ms: int, last_ms: int, exact_max: tuple[int, int]) -> Plan:
    """Choose how all groups are drawn.

    `exact_max`: of how many partitions each interval can be shown, and how many intervals in all.
    """
    busiest = sorted(sizes, key=place_of_size)[:SIZES_MAX]
    span_ms = max(1, last_ms - begun_ms)
    chosen = scales(busiest, span_ms)
    size_of = {size.group: size for size in busiest}
    return Plan(
        begun_ms=begun_ms,
        rest=Scale(REST, "", 1, column_ms(span_ms, COLUMNS_STRIP)),
        scales={scale.group: scale for scale in chosen},
        partitions={scale.group: size_of[scale.group].partitions for scale in chosen},
        exact=frozenset(_exact(chosen, size_of, *exact_max)),
    )


def _exact(
    chosen: Sequence[Scale], size_of: dict[str, Size], partitions_max: int, left: int
) -> Iterator[str]:
    """Yield the busiest groups whose every interval is shown; a group is there whole or not."""
    for scale in chosen:
        size = size_of[scale.group]
        fits = scale.rows == size.partitions <= partitions_max
        if scale.group and fits and size.intervals <= left:
            yield scale.group
            left -= size.intervals


def timelines(plan: Plan, drawn: Told, whole: Totals) -> Iterator[Timeline]:
    """Put the timelines together; `whole` counts what those that share a strip have."""
    totals = _totals(drawn.of(Sums))
    rows: dict[int, list[Row]] = {}
    for row in _rows(drawn.of(Row)):
        rows.setdefault(row.key, []).append(row)
    runs: dict[int, list[CellRun]] = {}
    for run in drawn.of(CellRun):
        runs.setdefault(run.key, []).append(run)
    runs[REST] = list(sweep(drawn.of(Piece)))
    partitions = dict(plan.partitions)
    others = whole.groups - len(plan.scales), whole.partitions - sum(partitions.values())
    for scale in (*plan.scales.values(), plan.rest):
        if scale.key in totals:
            groups, lanes = others if scale.key == REST else (1, partitions[scale.group])
            told = totals[scale.key]._replace(groups=groups, partitions=lanes)
            bundles = tuple(_bundles(rows[scale.key], scale.rows, lanes))
            cells = sorted(runs.get(scale.key, ()), key=lambda run: (run.row, run.column))
            yield Timeline(scale.group, scale.column_ms, bundles, tuple(cells), told)


def _totals(several: Iterable[Sums]) -> dict[int, Totals]:
    found: dict[int, Totals] = {}
    for key, *sums in several:
        found[key] = found.get(key, NONE).plus(Totals(0, 0, *sums))
    return found


def _rows(several: Iterable[Row]) -> list[Row]:
    """Join the rows of a strip that groups of several buckets share."""
    found: dict[tuple[int, int], Row] = {}
    for row in several:
        known = found.get(row[:2], row)
        first, last = min(row[2:4], known[2:4]), max(row[4:6], known[4:6])
        found[row[:2]] = Row(row.key, row.row, *first, *last)
    return [found[key] for key in sorted(found)]


def _bundles(rows: Sequence[Row], number: int, lanes: int) -> Iterator[Bundle]:
    """Name the partitions of each row: the nth of all partitions is in row n x rows // all."""
    for row in rows:
        first, until = (-(-at * lanes // number) for at in (row.row, row.row + 1))
        names = f"{row.topic}/{row.partition}", f"{row.last_topic}/{row.last_partition}"
        yield Bundle(*names, until - first)


def added(several: Iterable[Totals]) -> Totals:
    """Add up what there is in all buckets."""
    return reduce(Totals.plus, several, NONE)
