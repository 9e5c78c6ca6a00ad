"""S13: after a restore one event lifts every token, once, before anything else is decided."""

from __future__ import annotations

import pytest

from harness.core import Core
from holdfast.coordinator.cluster import evolve
from holdfast.coordinator.model.commands import FormCluster, RaiseRecoveryNumber
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    Cause,
    LevelRaised,
    Record,
    RecoveryNumberRaised,
)
from holdfast.coordinator.model.ids import TOKEN_SPAN, Position, fencing_token
from holdfast.coordinator.model.state import State

RAISE = RaiseRecoveryNumber(1, 42)


def formed(level: int) -> Core:
    core = Core()
    core.submit(FormCluster("c", (), level))
    return core


def test_s13_a_restore_raises_the_number_by_one_event() -> None:
    core = formed(level=2)
    assert core.submit(RAISE) == (RecoveryNumberRaised(1, 42),)
    assert core.state.recovery_number == 1
    assert core.state.recovered_at == core.state.applied_index
    least = fencing_token(core.state.recovery_number, 0)
    assert least > fencing_token(0, TOKEN_SPAN - 1)


def test_s13_who_leads_next_raises_it_no_further() -> None:
    """Every restored disk says the same, so each leader asks for the same number."""
    core = formed(level=2)
    core.submit(RAISE)
    at = core.state.recovered_at
    assert core.submit(RAISE) == ()
    assert core.submit(RaiseRecoveryNumber(0, 0)) == ()
    assert core.state.recovered_at == at


def test_a_cluster_of_the_first_level_is_raised_with_it() -> None:
    core = formed(level=1)
    assert core.submit(RAISE) == (LevelRaised(2), RecoveryNumberRaised(1, 42))
    assert core.state.level == 2


def test_s13_a_number_on_the_log_never_falls() -> None:
    record = Record(
        Position(7, 0), "", 1, 0, 0, Cause("S13", "x"), "", "", RecoveryNumberRaised(3, 1)
    )
    state = evolve.recovery_number_raised(State(), RecoveryNumberRaised(3, 1), record)
    assert (state.recovery_number, state.recovered_at) == (3, 7)
    with pytest.raises(InvariantBroken):
        evolve.recovery_number_raised(state, RecoveryNumberRaised(3, 1), record)
