"""Two checkouts side by side: medians over turns, and ratios over pairs of turns. Pure data.

A is the other checkout, B is this one. The two turns of a pair ran one right after the other, so
the ratio of a pair suffers least from the machine's moods; how far the pairs differ says what a
ratio of medians is worth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, NamedTuple

from bench.figures import REST, Figure
from bench.shapes import BARE_ROW

_REPLAYED: Final = re.compile(r", [\d,]+ of them replayed")
"""An amount that differs from run to run once stood in the name of a figure of the row `start`."""


class Seen(NamedTuple):
    """One figure of one turn, from either checkout's run. `sum_us`, `switches`: an operation's."""

    what: str
    unit: str
    value: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    sum_us: float | None = None
    switches: float | None = None
    shape: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One row, measured once on one checkout's nodes.

    `lacking`: by figure, what the nodes or the checkout cannot do; by REST for the row as such.
    `failed`: what went wrong; the figures before that count.
    """

    row: str
    pair: int
    side: str
    figures: Mapping[str, Seen] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""


class Line(NamedTuple):
    """One measure of one figure on both checkouts.

    `ratio`: B's median to A's, `low` and `high`: the smallest and largest of a pair; None where A
    has a zero. `a_to_bare`, `b_to_bare`: processor time as a multiple of the bare server's.
    """

    row: str
    what: str
    measure: str
    a: float
    b: float
    ratio: float | None
    low: float | None
    high: float | None
    pairs: int
    a_to_bare: float | None = None
    b_to_bare: float | None = None


class Comparison(NamedTuple):
    """What could be compared, and why the rest could not, by `row: what`."""

    lines: list[Line]
    left_out: dict[str, str]


A: Final = "A"
B: Final = "B"
BARE: Final = BARE_ROW
MEASURES: Final[tuple[tuple[str, Callable[[Seen], float | None]], ...]] = (
    ("", lambda seen: seen.value),
    ("p50 ms", lambda seen: seen.p50_ms),
    ("p99 ms", lambda seen: seen.p99_ms),
    ("us/op", lambda seen: seen.sum_us),
    ("leader's switches/op", lambda seen: seen.switches),
)
_SUM: Final = "us/op"


def plan(rows: Sequence[str], pairs: int) -> Iterator[tuple[int, str, str]]:
    """Pair, row and side of each turn: one row on A, B, A, B, ...; then the next row.

    What runs before a turn is felt in it (same code, one caller: a turn after another row took up
    to a fifth more processor time than the one after it). So it has to be the same row, too: only a
    row's first turn follows another one.
    """
    for row in rows:
        for pair in range(pairs):
            for side in (BARE,) if row == BARE else (A, B):
                yield pair, row, side


def seen(figure: Figure) -> Seen:
    """A figure of this process."""
    cost = figure.cost
    return Seen(
        name_of(figure.what),
        figure.unit,
        figure.value,
        figure.p50_ms,
        figure.p99_ms,
        cost.sum_us if cost else None,
        cost.leader_switches if cost else None,
        figure.shape,
        figure.instead,
    )


def seen_in(found: Mapping[str, Any]) -> Seen:
    """A figure of another process's bench.json, also of one that tells no costs."""
    cost = found.get("cost") or {}
    return Seen(
        name_of(found["what"]),
        found["unit"],
        found["value"],
        found.get("p50_ms"),
        found.get("p99_ms"),
        cost.get("sum_us"),
        cost.get("leader_switches"),
    )


def name_of(what: str) -> str:
    """A figure's name without what differs from run to run."""
    return _REPLAYED.sub("", what)


def by_name(figures: Iterable[Seen]) -> dict[str, Seen]:
    """Figures of one turn, by name."""
    return {figure.what: figure for figure in figures}


def compare(turns: Sequence[Turn]) -> Comparison:
    """Set B's turns against A's, row by row."""
    bare = _floors([turn for turn in turns if turn.side == BARE])
    lines, left_out = list[Line](), dict[str, str]()
    for row in dict.fromkeys(turn.row for turn in turns if turn.side != BARE):
        paired = list(_pairs([turn for turn in turns if turn.row == row]))
        if not paired:
            left_out[row] = _why(turn for turn in turns if turn.row == row)
            continue
        lines += _compare_row(row, paired, bare, left_out)
    return Comparison(lines, left_out)


def _pairs(turns: Sequence[Turn]) -> Iterator[tuple[Turn, Turn]]:
    """Turns of A and B of which both have figures."""
    sides = {(turn.pair, turn.side): turn for turn in turns if turn.figures}
    for pair in sorted({pair for pair, _ in sides}):
        if (pair, A) in sides and (pair, B) in sides:
            yield sides[pair, A], sides[pair, B]


def _why(turns: Iterable[Turn]) -> str:
    """Why a row has no pair: the first reason of each side that has one."""
    reasons: dict[str, str] = {}
    for turn in turns:
        reason = turn.lacking.get(REST) or turn.failed or next(iter(turn.lacking.values()), "")
        if reason:
            reasons.setdefault(turn.side, f"{turn.side}: {reason}")
    return "; ".join(reasons.values()) or "no pair of turns was finished"


def _compare_row(
    row: str,
    paired: Sequence[tuple[Turn, Turn]],
    bare: Mapping[str, float],
    left_out: dict[str, str],
) -> Iterator[Line]:
    """Lines of all figures of a row; what has no counterpart goes into `left_out`."""
    first: dict[str, Seen] = {}
    taken = set[str]()
    for _, ours in paired:
        first = {**first, **ours.figures}
    for what, figure in first.items():
        theirs = _counterpart(figure, [turn for turn, _ in paired])
        if theirs is None:
            left_out[f"{row}: {what}"] = _lack(what, (turn for turn, _ in paired), A)
            continue
        taken.add(theirs)
        values = [
            (one.figures[theirs], other.figures[what])
            for one, other in paired
            if theirs in one.figures and what in other.figures
        ]
        name = what if theirs == what else f"{what} (A: {theirs})"
        yield from _lines(row, name, values, bare)
    for what in dict.fromkeys(what for turn, _ in paired for what in turn.figures):
        if what not in taken:
            left_out[f"{row}: {what}"] = _lack(what, (turn for _, turn in paired), B)


def _counterpart(figure: Seen, theirs: Sequence[Turn]) -> str | None:
    """The name of A's figure to compare with: the same, or the nearest that A can do."""
    for what in (figure.what, figure.instead):
        if any(what in turn.figures for turn in theirs):
            return what
    return None


def _lack(what: str, turns: Iterable[Turn], side: str) -> str:
    """Why one side has no such figure."""
    for turn in turns:
        reason = turn.lacking.get(what) or turn.lacking.get(REST) or turn.failed
        if reason:
            return f"{side}: {reason}"
    return f"{side}: gives no such figure"


def _lines(
    row: str, what: str, values: Sequence[tuple[Seen, Seen]], bare: Mapping[str, float]
) -> Iterator[Line]:
    for measure, get in MEASURES:
        both = [(get(a), get(b)) for a, b in values]
        known = [(a, b) for a, b in both if a is not None and b is not None]
        if known:
            unit = measure or values[0][1].unit
            line = _line(row, what, unit, known)
            yield _beside_bare(line, values[0], bare) if measure == _SUM else line


def _line(row: str, what: str, measure: str, known: Sequence[tuple[float, float]]) -> Line:
    a, b = median(one for one, _ in known), median(other for _, other in known)
    count = len(known)
    if any(not one for one, _ in known):
        return Line(row, what, measure, a, b, None, None, None, count)
    ratios = [other / one for one, other in known]
    return Line(row, what, measure, a, b, b / a, min(ratios), max(ratios), count)


def _beside_bare(line: Line, figures: tuple[Seen, Seen], bare: Mapping[str, float]) -> Line:
    """A sum of processor time, also as a multiple of its own shape's in `bare`."""
    a, b = (bare.get(figure.shape) for figure in figures)
    return line._replace(a_to_bare=line.a / a if a else None, b_to_bare=line.b / b if b else None)


def _floors(turns: Sequence[Turn]) -> dict[str, float]:
    """Median over the turns of the bare server: processor time of an operation of each shape."""
    sums: dict[str, list[float]] = {}
    for turn in turns:
        for figure in turn.figures.values():
            if figure.shape and figure.sum_us:
                sums.setdefault(figure.shape, []).append(figure.sum_us)
    return {shape: median(values) for shape, values in sums.items()}
