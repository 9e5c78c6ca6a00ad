"""Figures for people: two tables; and for programs: JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from bench.figures import Cost, Figure
from bench.shapes import floors, to_floor

HEAD: Final = (
    "row", "what", "figure", "unit", "goal", "", "p50 ms", "p99 ms", "us/op",
    "leader", "others", "client", "foreign", "load",
)  # fmt: skip
_LEFT: Final = (0, 1, 3)
COST_HEAD: Final = (
    "row", "what", "us/op", "leader", "followers", "client", "x bare",
    "switches/op", "leader", "followers",
)  # fmt: skip
_COST_LEFT: Final = (0, 1)


def render(figures: Sequence[Figure]) -> str:
    """A line a figure; the columns from `leader` on are conditions, in cores."""
    return align([HEAD, *map(_line, figures)], _LEFT)


def render_costs(figures: Sequence[Figure]) -> str:
    """What an operation costs: a line for each figure that counts operations."""
    bare = floors(figures)
    lines = [
        _cost_line(figure, figure.cost, to_floor(figure, bare))
        for figure in figures
        if figure.cost is not None
    ]
    return align([COST_HEAD, *lines], _COST_LEFT)


def align(lines: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Columns of equal width; those in `left` begin at the left, the others end at the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(widths[at]) if at in left else cell.rjust(widths[at])
            for at, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )


def _line(figure: Figure) -> tuple[str, ...]:
    effort = figure.effort
    cores = effort[1:5] if effort else ()
    sum_us = figure.cost.sum_us if figure.cost else None
    return (
        _name(figure),
        figure.what,
        number(figure.value),
        figure.unit,
        str(figure.goal or ""),
        figure.verdict,
        *(number(value) for value in (figure.p50_ms, figure.p99_ms, sum_us)),
        *(f"{core:.2f}" for core in cores),
        *([""] * (4 - len(cores))),
        f"{effort.load:.1f}" if effort else "",
    )


def _cost_line(figure: Figure, cost: Cost, ratio: float | None) -> tuple[str, ...]:
    return (
        _name(figure),
        figure.what,
        number(cost.sum_us),
        number(cost.leader_us),
        " + ".join(map(number, cost.followers_us)),
        number(cost.client_us),
        "" if ratio is None else f"{ratio:.2f}",
        number(cost.leader_switches + sum(cost.followers_switches)),
        number(cost.leader_switches),
        " + ".join(map(number, cost.followers_switches)),
    )


def _name(figure: Figure) -> str:
    return figure.row if figure.system == "holdfast" else f"{figure.row} ({figure.system})"


def number(value: float | None) -> str:
    """Three digits that tell; whole numbers from 100 on."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(path: Path, conditions: dict[str, object], figures: Sequence[Figure]) -> None:
    """Write everything that was seen, and under which conditions."""
    rows = [plain(figure, floors(figures)) for figure in figures]
    path.write_text(json.dumps({"conditions": conditions, "figures": rows}, indent=2) + "\n")


def plain(figure: Figure, bare: dict[str, float]) -> dict[str, object]:
    """A figure as JSON has it; `to_bare` is the ratio of its sum to its shape's in `bare`."""
    found = asdict(figure)
    found["goal"] = str(figure.goal) if figure.goal else None
    found["verdict"] = figure.verdict
    found["effort"] = figure.effort._asdict() if figure.effort else None
    cost = figure.cost
    found["cost"] = cost._asdict() | {"sum_us": cost.sum_us} if cost else None
    found["to_bare"] = to_floor(figure, bare)
    return found
