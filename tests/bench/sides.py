"""A comparison of two checkouts for people: a table; and for programs: JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Protocol

from bench.comparison import Comparison, Line, Turn
from bench.table import align, number

HEAD: Final = ("row", "what", "", "A", "B", "B/A", "of a pair", "pairs", "A x bare", "B x bare")
_LEFT: Final = (0, 1, 2)


class Named(Protocol):
    """A checkout: shown by str(), with what is known of its environment."""

    @property
    def about(self) -> Mapping[str, object]:
        """Python and packages, among others."""


def text(checkouts: Mapping[str, Named], turns: Sequence[Turn], found: Comparison) -> str:
    """The whole comparison: who is who, the table, what could not be compared, what failed."""
    parts = [f"{side}: {checkout}" for side, checkout in checkouts.items()]
    parts += _differences([_versions(checkout.about) for checkout in checkouts.values()])
    parts += ["", render(found.lines), ""]
    parts += [f"not compared: {name}: {why}" for name, why in found.left_out.items()]
    parts += [
        f"failed: {turn.row}, pair {turn.pair + 1}, {turn.side}: {turn.failed}"
        for turn in turns
        if turn.failed
    ]
    return "\n".join(parts)


def _versions(about: Mapping[str, object]) -> dict[str, object]:
    packages = about.get("packages")
    return {"python": about.get("python"), **(packages if isinstance(packages, dict) else {})}


def _differences(versions: Sequence[Mapping[str, object]]) -> list[str]:
    """A line that names what is of another version in the other environment, if anything is."""
    names = dict.fromkeys(name for each in versions for name in each)
    found = [
        f"{name} {' / '.join(str(each.get(name)) for each in versions)}"
        for name in names
        if len({each.get(name) for each in versions}) > 1
    ]
    return [f"the environments differ: {', '.join(found)}"] if found else []


def render(lines: Sequence[Line]) -> str:
    """A line a measure; row and figure are named where they begin."""
    shown, before = [], ("", "")
    for line in lines:
        named = (line.row, line.what)
        shown.append((*(("", "") if named == before else named), *_cells(line)))
        before = named
    return align([HEAD, *shown], _LEFT)


def _cells(line: Line) -> tuple[str, ...]:
    between = "" if line.low is None or line.high is None else f"{line.low:.2f}–{line.high:.2f}"
    return (
        line.measure,
        number(line.a),
        number(line.b),
        _ratio(line.ratio),
        between,
        str(line.pairs),
        _ratio(line.a_to_bare),
        _ratio(line.b_to_bare),
    )


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def write(
    path: Path, conditions: dict[str, object], turns: Sequence[Turn], found: Comparison
) -> None:
    """Write every turn's figures, the comparison, and under which conditions."""
    every = [
        asdict(turn) | {"figures": [figure._asdict() for figure in turn.figures.values()]}
        for turn in turns
    ]
    compared = [line._asdict() for line in found.lines]
    content = {"conditions": conditions, "compared": compared, "left_out": found.left_out}
    path.write_text(json.dumps({**content, "turns": every}, indent=2) + "\n")
