"""Writes a generated history to a folder: directories of nodes, the witness file, and anchors.

All is written beside the folder and renamed at the end, so a folder that is there is whole. What a
failure or Ctrl-C leaves is removed. Knows files; what is in them is made by the other modules.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.replay.generate.anchors import Anchors, Told
from holdfast.replay.generate.history import History
from holdfast.replay.generate.node_files import NodeFiles
from holdfast.replay.generate.plan import Plan, PlanRefused
from holdfast.replay.generate.witness import Witness
from holdfast.storage.codec.state_image import digest_of
from holdfast.storage.disk.files import rename_durably, sync_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from holdfast.replay.generate.leader import Leader

WITNESS: Final = "witness.jsonl"
ANCHOR: Final = "anchor.json"
ANCHORS: Final = "anchors.jsonl"
NEW_OBJECTS: Final = 200_000
"""So many more objects than before make the collector look at the new ones."""


class Made(NamedTuple):
    """What was written, and what a verification of it has to come to."""

    folder: Path
    told: Told
    """Of the log's end."""


def write_history(plan: Plan, folder: Path, told: Callable[[int], None] = lambda _: None) -> Made:
    """Make the history of a plan in a new folder, or an empty one.

    `told`: called with the number of records after each entry. Raises PlanRefused for a folder that
    holds anything, OSError if the disk refuses; then nothing is left behind.
    """
    _refuse_used(folder)
    with _unfinished(folder) as place, _rare_collections():
        leader = _play(plan, place, told)
        made = Made(folder, Told.by(leader, digest_of(leader.state)))
        (place / ANCHOR).write_text(json.dumps(made.told.anchor()) + "\n")
        sync_path(place / ANCHOR)
    return made


def _play(plan: Plan, place: Path, told: Callable[[int], None]) -> Leader:
    out = NodeFiles(place, plan.nodes)
    with (
        _written(place / WITNESS, plan.witness) as file,
        _written(place / ANCHORS, plan.anchors) as lines,
    ):
        history = History(plan, out, Witness(file))
        anchors = Anchors(plan, history.leader, lines)

        def entry_is_there(count: int) -> None:
            anchors.entry_is_there()
            told(count)

        history.play(entry_is_there)
    return history.leader


@contextmanager
def _written(path: Path, wanted: int) -> Iterator[TextIO | None]:
    """Open a new file, if it is wanted, which is on the disk when this ends."""
    if not wanted:
        yield None
        return
    with path.open("w") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let the collector of cycles look seldom: records make none, and there are very many."""
    before = gc.get_threshold()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _refuse_used(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PlanRefused(f"{folder} is no directory; name one that does not exist")
    if folder.is_dir() and any(folder.iterdir()):
        raise PlanRefused(f"{folder} is not empty, and nothing is overwritten; name another one")


@contextmanager
def _unfinished(folder: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the folder at the end, and only then."""
    target = folder.absolute()
    place = target.parent / f".{target.name}.unfinished"
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        raise PlanRefused(
            f"{place} is there: another run is making {folder}, or was killed; delete it if none is"
        ) from None
    try:
        yield place
        sync_path(place)
        rename_durably(place, target)  # an empty directory is replaced
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
