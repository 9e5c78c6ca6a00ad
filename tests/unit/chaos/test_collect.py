"""Putting a history together: who was killed left calls and rights open, and maybe half a line."""

from __future__ import annotations

from pathlib import Path

from holdfast.chaos import collect
from holdfast.chaos.history.happenings import Granted, Happening, Invoked, Returned, Surrendered
from holdfast.chaos.history.jsonl import line_of
from holdfast.coordinator.model.events import Cause, GroupCreated, Record
from holdfast.coordinator.model.ids import Position as LogPosition
from holdfast.storage.codec.event_codec import encode_record
from holdfast.v1.events_pb2 import EventRecord
from holdfast.v1.extras_pb2 import Position

DIED_US = 1_000


def file_with(path: Path, *happenings: Happening, tail: str = "") -> Path:
    path.write_text("".join(line_of(each) + "\n" for each in happenings) + tail)
    return path


def granted(at_us: int) -> Granted:
    return Granted(at_us, "m", "g", "m-1", "", 1, (("t", 0),), 7, 0, at_us + 500)


def test_s5_a_call_of_a_killed_process_is_unknown_from_its_death_on(tmp_path: Path) -> None:
    sent = Invoked(10, 1, "m", "OffsetCommit", "g", {})
    history = collect.merged({file_with(tmp_path / "f", sent): DIED_US}, [])

    assert history == [sent, Returned(DIED_US, 1, "unknown", "the caller died", {})]


def test_a_killed_member_acts_no_more(tmp_path: Path) -> None:
    grant = granted(10)
    history = collect.merged({file_with(tmp_path / "f", grant): DIED_US}, [])

    assert history == [grant, Surrendered(DIED_US, "m", "g", "m-1", "crashed")]


def test_what_was_closed_in_time_stays_as_it_is(tmp_path: Path) -> None:
    own: list[Happening] = [
        Invoked(10, 1, "m", "Heartbeat", "g", {}),
        Returned(20, 1, "ok", "", {}),
        granted(30),
        Surrendered(40, "m", "g", "m-1", "revoked"),
    ]

    assert collect.merged({file_with(tmp_path / "f", *own): DIED_US}, []) == own


def test_half_a_line_of_a_killed_process_is_left_out(tmp_path: Path) -> None:
    sent = Invoked(10, 1, "m", "Heartbeat", "g", {})
    answer = Returned(20, 1, "ok", "", {})
    file = file_with(tmp_path / "f", sent, answer, tail='{"type":"Invo')

    assert collect.merged({file: DIED_US}, []) == [sent, answer]


def test_all_files_and_the_log_are_one_history_in_order_of_time(tmp_path: Path) -> None:
    one = Returned(20, 1, "ok", "", {})
    other = Invoked(10, 1, "m", "Heartbeat", "g", {})
    last = Surrendered(30, "m", "g", "m-1", "lost")
    files = {file_with(tmp_path / "1", one): 0, file_with(tmp_path / "2", other, one): 0}

    assert collect.merged(files, [last])[0] == other
    assert collect.merged(files, [last])[-1] == last


def record(index: int, group: str = "g") -> EventRecord:
    return EventRecord(position=Position(index=index), group_id=group)


def test_s3_two_nodes_with_different_logs_are_told_apart() -> None:
    """Not only a record that differs: one that is missing at the end, too."""
    log = [record(1), record(2)]

    assert collect.difference("a", log, "b", [record(1), record(2)]) == ""
    assert "2.0" in collect.difference("a", log, "b", [record(1), record(2, "h")])
    assert "2 records" in collect.difference("a", log, "b", [record(1)])


def logged(index: int, wall_ms: int) -> EventRecord:
    """A record that a leader decided when its wall clock stood there."""
    cause = Cause("A1", "JoinGroup")
    place = LogPosition(index, 0)
    made = Record(place, "g", index, 1, wall_ms, cause, "", "", GroupCreated())
    return EventRecord.FromString(encode_record(made))


class Seen:
    """What an observer saw: when each record arrived, and the terms."""

    def __init__(self, arrived_us: dict[int, int]) -> None:
        self.arrived = {(index, 0): at_us for index, at_us in arrived_us.items()}
        self.terms = [(1, 1), (3, 2)]


def moments(records: list[EventRecord], arrived_us: dict[int, int]) -> list[int]:
    made = collect.records_of(collect.CollectedLog(records, []), Seen(arrived_us), wall_behind_us=0)
    return [each.at_us for each in made]


def test_a_record_stands_at_the_moment_at_which_it_was_decided() -> None:
    """S12: a swap ends the old holder's right before the new one's begins; never later.

    Also where the watch brought it much later, as after a partition.
    """
    records = [logged(1, 10), logged(2, 20), logged(3, 30)]

    assert moments(records, {1: 10_500, 2: 9_000_000, 3: 9_000_000}) == [10_000, 20_000, 30_000]


def test_a_wall_clock_that_is_wrong_moves_no_record() -> None:
    """FAULT-9: ahead of what was seen, or behind the record before, it cannot be right."""
    records = [logged(1, 10), logged(2, 99_999_999), logged(3, 1), logged(4, 40)]

    assert moments(records, {1: 10_500, 2: 20_500, 3: 30_500, 4: 40_500}) == [
        10_000,
        10_000,
        10_000,
        40_000,
    ]


def test_records_that_came_while_the_logs_were_read_are_not_compared() -> None:
    """A released member's session ends when it ends; one node is read before that, one after."""
    before = [EventRecord(position=Position(index=index)) for index in (7, 8)]
    after = [*before, EventRecord(position=Position(index=9))]

    assert collect.difference("a", before, "b", after) == "a has 2 records, b has 3"
    assert collect.upto(8, after) == before
