"""One record of a log damaged, in the ways that disks, bugs and people do it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from holdfast.storage.segments.segments import MANIFEST, Row, segments_in
from spark.event_logs import write_node

Damage = Callable[[list[Row], int], list[Row]]


def lost(rows: list[Row], at: int) -> list[Row]:
    return [*rows[:at], *rows[at + 1 :]]


def duplicated(rows: list[Row], at: int) -> list[Row]:
    return [*rows[: at + 1], *rows[at:]]


def swapped(rows: list[Row], at: int) -> list[Row]:
    """Two neighbours change places: each position holds what belongs to the other."""
    one, two = rows[at], rows[at + 1]
    return [
        *rows[:at],
        Row(one.position, two.content),
        Row(two.position, one.content),
        *rows[at + 2 :],
    ]


def flipped(rows: list[Row], at: int) -> list[Row]:
    """One bit, in a place that leaves the record readable."""
    changed = rows[at].content.replace(b"JoinGroup", b"JoinGrouq", 1)
    assert changed != rows[at].content
    return [*rows[:at], Row(rows[at].position, changed), *rows[at + 1 :]]


def damage_after_sealing(folder: Path, node: str, rows: list[Row], damaged: list[Row]) -> Path:
    """A node whose manifest is of the whole log, and whose data files are of the damaged one."""
    write_node(folder, node, rows)
    write_node(folder / "other", node, damaged)
    good, bad = (segments_in(place / "segments")[0] for place in (folder, folder / "other"))
    for file in bad.iterdir():
        if file.name != MANIFEST:
            shutil.copy(file, good / file.name)
    return folder
