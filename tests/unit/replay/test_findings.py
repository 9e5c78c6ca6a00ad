"""How findings name times: log time in the form in which `--at` takes it (S8)."""

from __future__ import annotations

import pytest

from holdfast.cli.places import place_at
from holdfast.replay.findings import log_time_of


@pytest.mark.parametrize(
    "at_ms", [-60_000_000_000_000, 0, 1_700_000_000_007, 1_700_000_000_500, 253_402_300_799_999]
)
def test_s8_a_log_time_is_told_as_it_may_be_given(at_ms: int) -> None:
    assert place_at(log_time_of(at_ms), "--at") == (None, at_ms)


@pytest.mark.parametrize("at_ms", [1 << 62, -(1 << 62)])
def test_a_log_time_that_no_calendar_has_is_told_as_a_number(at_ms: int) -> None:
    """A forged record may say any."""
    assert log_time_of(at_ms) == f"{at_ms} ms"
