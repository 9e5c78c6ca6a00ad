"""The state machine beside its state: histories follow the log, and nothing depends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.consumers import Consumers, owning
from holdfast.coordinator.model.events import (
    Cause,
    GroupEmptied,
    LogEntry,
    Part,
    Proposed,
    RebalanceStarted,
)
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.replica.state_machine import StateMachine
from holdfast.storage.codec.event_codec import encode_entry

if TYPE_CHECKING:
    from harness.core import Core


@pytest.fixture
def core() -> Core:
    """A log with two rebalances, in which a partition moved."""
    consumers = Consumers()
    consumers.form(a=owning(0, 1))
    consumers.join("b")
    consumers.rejoin()
    consumers.assign(a=owning(0), b=owning(1))
    return consumers.calls.core


def applied(core: Core, machine: StateMachine, first: int = 0) -> StateMachine:
    for entry in core.log[first:]:
        machine.apply(entry.index, entry.term, encode_entry(entry.entry))
    return machine


def test_s3_every_node_has_the_same_histories(core: Core) -> None:
    """So whoever leads next tells the same, wherever it began to follow the log."""
    for cut in range(len(core.log)):
        from_here = StateMachine(core.log[cut].before, {}, core.log[cut].told)
        assert applied(core, from_here, cut).histories == core.histories
    assert [each.moved for each in core.histories["g"]] == [0, 1]


def test_s3_the_digest_does_not_depend_on_the_histories(core: Core) -> None:
    """A node that told something else would else be stopped by its peers."""
    one, other = (applied(core, StateMachine(State())) for _ in range(2))
    other.histories = PMap()

    assert one.histories != other.histories
    assert one.digest() == other.digest()


@pytest.mark.source("it puts a defect in the place of a function")
def test_s6_a_record_that_cannot_be_told_stops_nothing(
    core: Core, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No group is quarantined, no entry skipped, and the state is that of every other node."""

    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("holdfast.runtime.replica.state_machine.tell", broken)
    machine = applied(core, StateMachine(State()))

    assert machine.state == core.state
    assert not machine.state.groups["g"].quarantined
    assert not machine.histories
    assert "is missing in its group's history" in caplog.text


def test_s6_a_part_that_fails_half_way_leaves_no_trace_in_chains_and_histories(core: Core) -> None:
    """Its first event would open a rebalance; the second one cannot be true."""
    machine = applied(core, StateMachine(State()))
    heads, histories, group = machine.heads, machine.histories, machine.state.groups["g"]
    halves = RebalanceStarted("why", "", initial=False, timeout_ms=1), GroupEmptied(9)
    events = tuple(Proposed(each, Cause("B3", "x")) for each in halves)
    log_time_ms, index = machine.state.log_time_ms, machine.state.applied_index + 1
    entry = LogEntry(log_time_ms, 1, (Part("g", 1, group.version, events),))

    done = machine.apply(index, 1, encode_entry(entry))

    assert (done.records, done.skipped) == ((), {0: "S6"})
    marked = machine.state.groups["g"]
    assert marked.quarantined
    assert marked._replace(quarantined="", version=group.version) == group
    assert machine.heads == heads
    assert machine.histories == histories
