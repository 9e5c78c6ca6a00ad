"""S3: the replays that end every test of the core see a log that lies, and a fold that errs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness import core
from harness.calls import Calls
from holdfast.coordinator.kernel.apply import Applied, apply_entry

if TYPE_CHECKING:
    from holdfast.coordinator.model.events import LogEntry
    from holdfast.coordinator.model.state import State

ENTRIES = 12


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """A log with cuts three entries apart, so that most entries are no cut."""
    monkeypatch.setattr(core, "REPLAYS_MAX", 4)
    calls = Calls()
    while len(calls.core.log) < ENTRIES:
        calls.join(f"i{len(calls.core.log)}")
    assert len(calls.core.log) == ENTRIES
    calls.core.check_replays()
    return calls


@pytest.mark.parametrize("at", range(ENTRIES))
def test_records_that_an_entry_did_not_make_are_seen(made: Calls, at: int) -> None:
    log = made.core.log
    log[at] = replace(log[at], records=log[at].records[1:])

    with pytest.raises(AssertionError):
        made.core.check_replays()


@pytest.mark.parametrize("at", range(ENTRIES))
def test_a_state_that_a_replay_does_not_come_to_is_seen(
    made: Calls, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Also one that nothing later builds on."""
    index = made.core.log[at].index

    def errs(state: State, number: int, term: int, entry: LogEntry) -> Applied:
        right = apply_entry(state, number, term, entry)
        wrong = right.state._replace(recovery_number=7)
        return right._replace(state=wrong) if number == index else right

    monkeypatch.setattr(core, "apply_entry", errs)

    with pytest.raises(AssertionError):
        made.core.check_replays()


def test_a_replayed_state_that_does_not_bear_what_follows_is_seen(
    made: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It equals what was there at the next cut: only a replay that goes on from it can tell."""
    live, depth = [id(each.before) for each in made.core.log], [0]

    def errs(state: State, index: int, term: int, entry: LogEntry) -> Applied:
        depth[0] = 0 if id(state) in live else depth[0] + 1
        right = apply_entry(state, index, term, entry)
        return right._replace(steps=()) if depth[0] > ENTRIES // 4 else right

    monkeypatch.setattr(core, "apply_entry", errs)

    with pytest.raises(AssertionError):
        made.core.check_replays()
