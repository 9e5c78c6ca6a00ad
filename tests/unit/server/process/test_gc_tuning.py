"""Cyclic garbage is looked for less often once a node serves, and still found."""

import gc
import sys
import weakref

import pytest

from holdfast.server.process import gc_tuning


class Knot:
    """Refers to itself, so that counting alone never frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_a_serving_node_still_frees_cycles_but_searches_seldom() -> None:
    """Memory: what is made after the start is not left out."""
    before, turn_s = gc.get_threshold(), sys.getswitchinterval()
    try:
        gc_tuning.begin_start()
        assert not gc.isenabled()
        gc_tuning.settle()
        assert gc.isenabled()
        made = weakref.ref(Knot())
        assert gc.get_threshold() == (gc_tuning.YOUNG_MAX, *gc_tuning.SEARCHES_A_STEP)
        assert gc.get_freeze_count() > 0
        assert sys.getswitchinterval() == pytest.approx(gc_tuning.TURN_S)
        gc.collect()
        assert made() is None
    finally:
        gc.enable()
        gc.unfreeze()
        gc.set_threshold(*before)
        sys.setswitchinterval(turn_s)
