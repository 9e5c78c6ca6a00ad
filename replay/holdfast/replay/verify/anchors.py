"""Compare a log with anchors: what nodes told of it earlier, and the states on their own disks.

Who rewrites the logs of all nodes makes new hash chains as well, and nothing inside of the logs
shows it. An anchor was kept elsewhere: chain and digest at its index must be those to which the log
leads. Knows what a fold came to at each index, no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.read.anchor_files import KIND, Anchor
from holdfast.replay.read.log_rows import Beginning
from holdfast.replay.verify.anchor_marks import Mark, Reached, Restore


class Outcome(NamedTuple):
    """What a comparison came to: how many anchors were compared, and what was found and left."""

    compared: int
    findings: list[Finding]
    notes: list[str]


def marks_of(anchors: Iterable[Anchor], begins: Beginning) -> list[Mark]:
    """Return the places that a fold has to tell of; none before the log begins."""
    marks = {Mark(a.index, a.log_time_ms) for a in anchors if not _is_before(a, begins)}
    return sorted(marks)


def compared(
    anchors: Sequence[Anchor],
    reached: dict[Mark, Reached],
    restores: Sequence[Restore],
    begins: Beginning,
    last: Position,
) -> Outcome:
    """Compare all anchors with a log that was folded. `last`: its last record."""
    outcome = Outcome(0, [], [])
    count = 0
    for anchor in anchors:
        if _is_before(anchor, begins):
            outcome.notes.append(f"{anchor} lies before {begins}: it was not compared")
            continue
        here = reached[Mark(anchor.index, anchor.log_time_ms)]
        differing = _differing(anchor, here)
        restore = _which_dropped(anchor, restores) if differing else None
        if restore is not None:
            outcome.notes.append(_dropped(anchor, restore))
        elif anchor.index > last.index and here.chain != anchor.chain:
            _beyond(anchor, last, outcome)
        else:
            count += 1
            outcome.findings.extend(differing)
    return outcome._replace(compared=count)


def _is_before(anchor: Anchor, begins: Beginning) -> bool:
    return anchor.index < begins.last.index


def _which_dropped(anchor: Anchor, restores: Sequence[Restore]) -> Restore | None:
    """Find the restore that dropped the entries up to which an anchor goes (S13).

    Who told it did not know of the restore yet. Entries of the restored log before the one that
    raises the number are told with the old number, too; there chain and digest are equal.
    """
    return next(
        (
            restore
            for restore in restores
            if restore.number > anchor.recovery_number and restore.kept < anchor.index
        ),
        None,
    )


def _dropped(anchor: Anchor, restore: Restore) -> str:
    return (
        f"{anchor} is of recovery {anchor.recovery_number}, and by the log recovery "
        f"{restore.number} kept entries up to {restore.kept} only: it was not compared. If nobody "
        "restored the cluster then, the log was rewritten"
    )


def _beyond(anchor: Anchor, last: Position, outcome: Outcome) -> None:
    """Say that records are missing up to an anchor.

    Behind the last record there may be entries without one: an equal chain proves it, and then the
    anchor does not get here. Who gave an anchor wants it compared, so it must not pass in silence;
    a node's own state is ahead of its segments as a rule.
    """
    text = f"{anchor} lies beyond the log, whose last record is {last.index}.{last.ordinal}"
    if anchor.own:
        outcome.notes.append(f"{text}: it was not compared. Export the tail to have it compared")
        return
    text += ": it was not compared. Records are missing, or the tail has to be exported first"
    outcome.findings.append(_finding(anchor, text))


def _differing(anchor: Anchor, here: Reached) -> list[Finding]:
    pairs = (
        ("the chain", anchor.chain.hex(), here.chain.hex()),
        ("the state's digest", f"{anchor.digest:016x}", f"{here.digest:016x}"),
    )
    return [
        _finding(anchor, f"{anchor} tells {what} {told[:16]}, and the log leads to {here_[:16]}")
        for what, told, here_ in pairs
        if told != here_
    ]


def _finding(anchor: Anchor, text: str) -> Finding:
    """Make a finding; it names a node whose disk contradicts its log, never one that told."""
    node = anchor.node if anchor.own else ""
    return Finding(KIND, node, "", Position(anchor.index, 0), text)
