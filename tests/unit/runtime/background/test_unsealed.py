"""What lies behind the last boundary: the oldest record, and where the next may be set (S22)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupCreated,
    HistoryCut,
    Record,
    RequestRecorded,
    SegmentSealed,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State
from holdfast.runtime.background import unsealed
from unit.runtime.fake_history import FakeHistory
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import Mapping

SEALED: Final = Position(2, 1)
OWN: Final[dict[tuple[int, int], Event]] = {
    (3, 0): SegmentSealed(SEALED),
    (3, 1): RequestRecorded("id", b"d", b"a"),
}
SOMETHING: Final[Event] = GroupCreated()
CUT: Final[Event] = HistoryCut(Position(1, 0), 1, b"digest")


def history(records: Mapping[tuple[int, int], Event]) -> FakeHistory:
    """A log with these records behind a boundary, and two before it."""
    replica = FakeReplica()
    before = {(2, 0): SOMETHING, (2, 1): SOMETHING}
    replica.records = [
        Record(Position(*at), "g", 1, 1, 1, Cause("", ""), "", "", event)
        for at, event in {**before, **records}.items()
    ]
    return FakeHistory(replica)


@pytest.mark.parametrize(
    ("records", "first"),
    [
        ({}, None),
        ({(3, 0): SegmentSealed(SEALED)}, None),
        (OWN, None),
        ({(3, 0): SOMETHING, (4, 0): SegmentSealed(SEALED)}, (3, 0)),
        ({**OWN, (3, 2): SOMETHING}, (3, 2)),
        ({**OWN, (4, 0): RequestRecorded("other", b"d", b"a")}, (4, 0)),
        ({(3, 0): SegmentSealed(SEALED), (3, 1): SOMETHING}, (3, 1)),
    ],
)
def test_s22_what_belongs_to_the_boundary_itself_is_passed_over(
    records: Mapping[tuple[int, int], Event], first: tuple[int, int] | None
) -> None:
    """S22, S15: its record, and the stored answer of the call that asked for it."""
    found = asyncio.run(unsealed.oldest(history(records), SEALED))

    assert (found and found.position) == (Position(*first) if first else None)


@pytest.mark.parametrize("cuts", [1, 2, 100])
@pytest.mark.parametrize("something", [False, True])
def test_s24_a_cut_of_the_history_is_nothing_to_seal_however_many_there_are(
    *, cuts: int, something: bool
) -> None:
    """S22, S24: sealed, it would be cut off by the next one, which would be sealed, and so on."""
    records = {**OWN, **{(4 + n, 0): CUT for n in range(cuts)}}
    if something:
        records[4 + cuts, 0] = SOMETHING
    state = State(sealed=SEALED, applied_index=200)
    found = asyncio.run(unsealed.oldest(history(records), SEALED))
    chosen = asyncio.run(unsealed.boundary(history(records), state))

    assert (found and found.position) == (Position(4 + cuts, 0) if something else None)
    assert chosen.last == (Position(4 + cuts, 0) if something else SEALED)


@pytest.mark.parametrize("applied", [5, 6, 200])
def test_s22_the_next_boundary_is_behind_the_last_record(applied: int) -> None:
    """S22: it holds the record of the one before it; newer entries may have no record at all."""
    records = {**OWN, (4, 0): SOMETHING, (5, 0): SOMETHING, (5, 1): SOMETHING}
    state = State(sealed=SEALED, applied_index=applied)
    found = asyncio.run(unsealed.boundary(history(records), state))

    assert found == unsealed.Boundary(Position(5, 1), SEALED)


def test_an_entry_of_many_records_is_read_to_its_end() -> None:
    last = 2 * unsealed.PAGE + 3
    records: dict[tuple[int, int], Event] = {(4, n): SOMETHING for n in range(last + 1)}
    state = State(sealed=SEALED, applied_index=4)
    found = asyncio.run(unsealed.boundary(history(records), state))

    assert found.last == Position(4, last)


def test_s22_where_there_is_nothing_to_seal_the_last_boundary_stays() -> None:
    state = State(sealed=SEALED, applied_index=9)
    found = asyncio.run(unsealed.boundary(history(OWN), state))

    assert found == unsealed.Boundary(SEALED, SEALED)
