"""The table of what events do to members tells what the fold does; `harness.core` always looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

import pytest

from harness.members import contradictions
from holdfast.coordinator.model import events as ev
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.membership import TABLE, Line
from holdfast.coordinator.model.state import State
from unit.coordinator.desk import Desk, member

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER = MemberProfile("c", "h", 10_000, 60_000, (Protocol("p", b"other", ()),))
RECALLED = ev.RebalanceStarted("why", "d", initial=False, timeout_ms=3_000)
STORY: tuple[ev.Event, ...] = (
    ev.StaticMemberReplaced("i", "b", "b2", OTHER, "", 0),
    ev.InstanceReleased("i", "b2"),
    ev.MemberUpdated("a", OTHER, ""),
    RECALLED,
    member("f", "t"),
    ev.MembersLeft(("a",), "done"),
    ev.MembersRemoved(("b2",), "disk lost"),
    ev.MemberExpired("c", "session"),
    ev.MemberRefused("d"),
    ev.GenerationStarted(2, "p", "e", (ev.Rejoin("e", ""),), (), ("f",)),
    ev.AssignmentStored(2, (ev.Assigned("e", b"all"),)),
    RECALLED,
    ev.GenerationStarted(3, "p", "e", (ev.Rejoin("e", ""),), (), ()),
    RECALLED,
    ev.MembersLeft(("e",), ""),
    ev.GroupEmptied(4),
    ev.GroupDeleted(),
)
"""After a stable group of five: each event of members at least once, the last of an empty group."""


@pytest.fixture
def records() -> Sequence[ev.Record]:
    desk = Desk()
    b = member("b", "t", instance_id="i")
    desk.stable_group("g", member("a", "t"), b, *(member(each, "t") for each in "cde"))
    for event in STORY:
        desk.happened("g", event)
    return desk.records


def test_each_event_has_a_line() -> None:
    assert set(TABLE) == {*get_args(ev.Event)}


def test_the_table_tells_what_the_fold_does(records: Sequence[ev.Record]) -> None:
    assert contradictions(State(), records) == []


@pytest.mark.parametrize("event", sorted({type(e) for e in STORY} - {ev.GroupDeleted}, key=str))
def test_a_line_that_tells_nothing_contradicts_the_fold(
    event: type, records: Sequence[ev.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cast("dict[type, Any]", TABLE), event, Line())

    assert contradictions(State(), records) != []
