"""What a batch costs is proportional to what it changes, never to the group.

Counted, not timed: how many members the core looks at while it decides and applies.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from harness.calls import Calls, P
from holdfast.coordinator.kernel import apply as replay
from holdfast.coordinator.kernel import decide
from holdfast.coordinator.model.commands import (
    Command,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import LogEntry, Part
from holdfast.coordinator.structures.pmap import PMap

pytestmark = pytest.mark.source("it counts the walks over maps by replacing these")

MEMBERS = 300


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each walk over a persistent map has seen."""
    seen: list[int] = []
    original = PMap.__iter__

    def counted(self: PMap[Any, Any]) -> Iterator[Any]:
        seen.append(len(self))
        return original(self)

    monkeypatch.setattr(PMap, "__iter__", counted)
    monkeypatch.setattr(PMap, "items", lambda self: [(key, self[key]) for key in self])
    monkeypatch.setattr(PMap, "values", lambda self: [self[key] for key in self])
    return seen


def looked_at(calls: Calls, command: Command, walks: list[int]) -> int:
    """How many entries of maps are walked over while a command is decided and applied."""
    state, volatile = calls.core.state, calls.volatile
    walks.clear()
    decision = decide.decide(state, volatile, command)
    part = Part("g", 1, state.version_of("g"), decision.events)
    replay.apply_entry(state, state.applied_index + 1, 1, LogEntry(0, 0, (part,)))
    return sum(walks)


@pytest.fixture(scope="module")
def grown() -> Calls:
    """A stable group of many static members; its log is replayed by tests of smaller ones."""
    made = Calls()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.core.invariants.check", lambda _: [])
        made.stable(*(f"i{number}" for number in range(MEMBERS)))
    made.core.log.clear()
    return made


@pytest.fixture
def large(grown: Calls, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Such a group of a test's own: to let it grow again would cost more than all tests."""
    monkeypatch.setattr("harness.core.invariants.check", lambda _: [])
    return deepcopy(grown)


def test_a_static_rejoin_in_stable_touches_one_member(large: Calls, walks: list[int]) -> None:
    large.core.fail_over()
    join = JoinGroup(large.caller(), "g", "", "i7", 10_000, 15_000, "app", P, "i7-x")
    assert looked_at(large, join, walks) >= MEMBERS, "a new leader counts the protocols, once"
    large.submit(join)
    again = JoinGroup(large.caller(), "g", "", "i8", 10_000, 15_000, "app", P, "i8-x")

    assert looked_at(large, again, walks) == 0


def test_syncs_and_heartbeats_touch_one_member(large: Calls, walks: list[int]) -> None:
    sync = SyncGroup(large.caller(), "g", 1, "i7-1", None, "app", "p", ())
    beat = Heartbeat(large.caller(), "g", 1, "i7-1", None)

    assert looked_at(large, sync, walks) == 0
    assert looked_at(large, beat, walks) == 0


def test_a_join_into_an_open_round_touches_one_member(large: Calls, walks: list[int]) -> None:
    """10,000 reconnects must not cost 10,000 looks at 10,000 members."""
    large.join("new", fresh="new-1")
    join = JoinGroup(large.caller(), "g", "", "newer", 10_000, 15_000, "app", P, "newer-1")
    rejoin = JoinGroup(large.caller(), "g", "i5-1", "i5", 10_000, 15_000, "app", P, "unused")

    assert looked_at(large, join, walks) == 0
    assert looked_at(large, rejoin, walks) == 0


def test_a_leave_that_opens_a_join_phase_is_allowed_to_look_around(
    large: Calls, walks: list[int]
) -> None:
    """The counter counts: a new join phase asks everyone, so this one walks over the members."""
    leave = LeaveGroup(large.caller(), "g", (LeavingMember("i7-1", None),))

    assert looked_at(large, leave, walks) >= MEMBERS
