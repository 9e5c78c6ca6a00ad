"""A run lets go of its world while it still hides what a dead process never began."""

from __future__ import annotations

import gc

from simulation.outcome import BUSY, run_seed
from simulation.world import World

SHORT = BUSY._replace(fault_s=(4.0, 5.0))


def test_no_world_outlives_its_run() -> None:
    """Else its coroutines end with the program, with a warning about `Member._perform`."""
    run_seed(7, faults=(), shape=SHORT)

    assert [each for each in gc.get_objects() if type(each) is World] == []
