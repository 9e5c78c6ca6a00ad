"""A record of the log becomes a happening, and can be had back."""

from __future__ import annotations

import pytest

from holdfast.chaos.history.records import fields_of, record_of, recorded
from holdfast.coordinator.model import events as e
from holdfast.coordinator.model.ids import Position
from unit.chaos.scribe import assignment, joined, started


def test_a_record_can_be_had_back() -> None:
    event = started(3, "a", "b", removed=("c",))
    cause = e.Cause("S16", "JoinGroup")
    record = e.Record(Position(9, 1), "g", 4, 77, 78, cause, "p", "r1", event)

    assert record_of(recorded(5, 2, record)) == record
    with pytest.raises(ValueError, match=r"9\.1 was kept without its bytes"):
        record_of(recorded(5, 2, record, payload=False))


def test_all_requests_that_a_record_serves_are_named() -> None:
    """S14: a generation answers every join in it."""
    rejoined = (e.Rejoin("a", "r1"), e.Rejoin("b", ""), e.Rejoin("c", "r3"))
    event = e.GenerationStarted(1, "range", "a", rejoined, (), ())
    record = e.Record(Position(1, 0), "g", 1, 0, 0, e.Cause("", ""), "", "r9", event)

    assert recorded(0, 1, record).request_ids == ("r9", "r1", "r3")


def test_fields_are_what_json_can_hold() -> None:
    assert fields_of(joined("a.1"))["protocols"] == [
        {"name": "range", "metadata": "", "topics": ["t"]}
    ]
    stored = e.AssignmentStored(1, (e.Assigned("a", assignment([2, 0])), e.Assigned("b", b"\xff")))
    assert [row["partitions"] for row in fields_of(stored)["assignments"]] == [
        [["t", 2], ["t", 0]],
        [],
    ]
