"""K-J32: what becomes of groups that were named and never got anywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.coordinator.model.commands import Caller, CommitOffsets, ExpireOffsets
from holdfast.coordinator.model.events import (
    Event,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    MembersLeft,
    OffsetCommitted,
)
from holdfast.coordinator.model.volatile import Pending
from holdfast.coordinator.offsets import commits
from holdfast.coordinator.structures.pmap import PMap
from unit.coordinator.desk import Desk, member

WEEK_MS = 7 * 24 * 3_600_000


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.topics(t=2)
    yield made
    made.prove()


def sweep(desk: Desk, at_ms: int) -> tuple[Event, ...]:
    return desk.decide(commits.expire, ExpireOffsets("g", at_ms), "g")[1]


def test_j32_a_group_that_never_had_a_generation_goes_at_the_next_sweep(desk: Desk) -> None:
    """Nobody was told a generation of it, so none can start over: a made-up name costs no week."""
    desk.happened("g", GroupCreated())

    assert sweep(desk, 0) == (GroupDeleted(),)


def test_j32_a_first_join_phase_that_nobody_finished_gave_no_generation(desk: Desk) -> None:
    """K-D9 counts a join phase that closes with nobody in it; no member has seen that number."""
    desk.rebalancing_group("g", member("a", "t"))
    assert sweep(desk, WEEK_MS) == (), "its member is in its first join phase"
    desk.happened("g", MembersLeft(("a",), ""), GroupEmptied(1))

    assert sweep(desk, 0) == (GroupDeleted(),)


def test_j32_a_group_with_offsets_and_no_generation_is_kept(desk: Desk) -> None:
    place = OffsetCommitted("t", 0, 7, -1, "")
    command = CommitOffsets(Caller(1), "g", -1, "", None, (place,))
    assert desk.decide(commits.commit, command, "g")[1] != ()

    assert sweep(desk, 0) == ()


def test_j32_a_group_is_not_deleted_under_a_member_id_that_was_handed_out(desk: Desk) -> None:
    desk.happened("g", GroupCreated())
    desk.volatile = desk.volatile._replace(pending=desk.volatile.pending.set("a", Pending("")))
    assert sweep(desk, WEEK_MS) == ()
    desk.volatile = desk.volatile._replace(pending=PMap())

    assert sweep(desk, 0) == (GroupDeleted(),), "its time is over, and nobody used it"
