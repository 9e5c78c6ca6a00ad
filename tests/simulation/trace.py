"""A failing run on disk: its history as JSON lines, the schedule of faults in its first one.

`run.py` writes it, `debug.py` steps through it, `checkers` can judge it again. Reading it needs
nothing of the simulator: a trace is a history like any other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.chaos.history import jsonl
from holdfast.chaos.history.happenings import Began
from simulation.faults import Planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.chaos.history.happenings import Happening
    from simulation.outcome import Outcome

FOLDER: Final = Path("build") / "simulation"


def path_of(seed: int, folder: Path = FOLDER) -> Path:
    """Where the trace of a seed lies."""
    return folder / f"seed-{seed}.jsonl"


def write(outcome: Outcome, folder: Path = FOLDER) -> Path:
    """Write a run's trace."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(outcome.seed, folder)
    jsonl.write(path, outcome.history)
    return path


def faults_of(history: Sequence[Happening]) -> list[Planned]:
    """The schedule that a history was made with."""
    first = history[0]
    if not isinstance(first, Began):
        return []
    return [Planned(*fault) for fault in first.details["faults"]]
