"""The result for people: a line a phase, then what had to hold and did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import shorten

from demo.diary import Note
from demo.measure import Interval, longest_gap, moves
from demo.phases import Phase, Stage
from demo.store import Claim

TEXT_MAX = 110


def render(stage: Stage, owned: Sequence[Interval], errors: Sequence[Note]) -> str:
    """The whole table."""
    claims = stage.store.claims()
    changes = stage.cluster.protocol.changes
    head = ("phase", changes, "moved", "without owner", "errors", "rows by others")
    lines = [head, *(_line(phase, claims, owned, errors) for phase in stage.phases)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    )


def told(errors: Iterable[Note], began: float) -> str:
    """What the workers saw go wrong, a line each, with the seconds since the beginning."""
    seen = ((note, shorten(note.text, TEXT_MAX, placeholder=" …")) for note in errors)
    lines = [f"  {note.at - began:5.1f} s  {note.worker}  {text}" for note, text in seen]
    return "\n".join(["errors seen by workers:", *lines]) if lines else "no worker saw an error"


def _line(
    phase: Phase, claims: Iterable[Claim], owned: Iterable[Interval], errors: Iterable[Note]
) -> tuple[str, ...]:
    begin, end = phase.window
    seen = sum(begin <= note.at < end for note in errors)
    gap = f"{longest_gap(owned, phase.window):.1f} s"
    moved = str(moves(claims, phase.window))
    return (phase.name, str(phase.changes), moved, gap, str(seen), str(phase.rows))
