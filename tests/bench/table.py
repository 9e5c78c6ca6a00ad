"""Figures for people: a table; and for programs: JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.figures import Figure

HEAD = (
    "row", "what", "figure", "unit", "goal", "", "p50 ms", "p99 ms",
    "leader us/op", "leader", "others", "client", "foreign", "load",
)  # fmt: skip
_LEFT = (0, 1, 3)


def render(figures: Sequence[Figure]) -> str:
    """A line a figure; processor columns are in cores."""
    lines = [HEAD, *map(_line, figures)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(
            cell.ljust(widths[at]) if at in _LEFT else cell.rjust(widths[at])
            for at, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )


def _line(figure: Figure) -> tuple[str, ...]:
    effort = figure.effort
    cores = effort[1:5] if effort else ()
    name = figure.row if figure.system == "holdfast" else f"{figure.row} ({figure.system})"
    return (
        name,
        figure.what,
        _number(figure.value),
        figure.unit,
        str(figure.goal or ""),
        figure.verdict,
        *(_number(value) for value in (figure.p50_ms, figure.p99_ms, figure.leader_us)),
        *(f"{core:.2f}" for core in cores or ()),
        *([""] * (4 - len(cores))),
        f"{effort.load:.1f}" if effort else "",
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write(path: Path, conditions: dict[str, object], figures: Sequence[Figure]) -> None:
    """Write everything that was seen, and under which conditions."""
    rows = [_plain(figure) for figure in figures]
    path.write_text(json.dumps({"conditions": conditions, "figures": rows}, indent=2) + "\n")


def _plain(figure: Figure) -> dict[str, object]:
    found = asdict(figure)
    found["goal"] = str(figure.goal) if figure.goal else None
    found["verdict"] = figure.verdict
    found["effort"] = figure.effort._asdict() if figure.effort else None
    return found
