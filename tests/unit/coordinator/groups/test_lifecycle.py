"""Deleting groups, and which ids they may have (K-K10 to K-K13, K-I6)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.coordinator.groups import lifecycle
from holdfast.coordinator.model.commands import Caller, DeleteGroup
from holdfast.coordinator.model.events import Event, GroupCreated, GroupDeleted
from holdfast.coordinator.model.rejections import GroupIdNotFound, InvalidGroupId, NonEmptyGroup
from holdfast.coordinator.model.volatile import PENDING, DeadlineKey, Pending
from unit.coordinator.desk import Desk, member


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.prove()


def delete(desk: Desk, group_id: str) -> tuple[list[object], tuple[Event, ...]]:
    answer, events = desk.decide(lifecycle.delete, DeleteGroup(Caller(1), group_id), group_id)
    return [result.error for result in answer.results], events


def test_k13_absent_group_and_empty_id(desk: Desk) -> None:
    assert delete(desk, "g") == ([GroupIdNotFound("g")], ())
    assert delete(desk, "") == ([GroupIdNotFound("")], ())


def test_k12_group_with_members(desk: Desk) -> None:
    desk.stable_group("g", member("a"), member("b"))
    assert delete(desk, "g") == ([NonEmptyGroup(2)], ())


def test_k12_a_join_phase_without_members_still_belongs_to_somebody(desk: Desk) -> None:
    desk.rebalancing_group("g")
    assert delete(desk, "g") == ([NonEmptyGroup(0)], ())


def test_k10_empty_group_goes_with_its_pending_ids(desk: Desk) -> None:
    """A group that has only pending ids is deleted, and the ids are gone."""
    desk.happened("g", GroupCreated())
    key = DeadlineKey(PENDING, "m1")
    desk.volatile = desk.volatile._replace(
        pending=desk.volatile.pending.set("m1", Pending("")),
        armed=desk.volatile.armed.set(key, 1),
        offered=desk.volatile.offered.set("request", "m1"),
    )
    assert delete(desk, "g") == ([None], (GroupDeleted(),))
    assert not desk.volatile.pending
    assert not desk.volatile.armed
    assert not desk.volatile.offered
    assert "g" not in desk.state.groups


@pytest.mark.parametrize("bad", ["", "a\nb", "a\x7f", "a" * 513])
def test_i6_group_ids_that_cannot_be(bad: str) -> None:
    assert isinstance(lifecycle.invalid_group_id(bad), InvalidGroupId)


@pytest.mark.parametrize("good", ["g", "a b", "ä/ö", "a" * 512])
def test_group_ids_that_can(good: str) -> None:
    assert lifecycle.invalid_group_id(good) is None
