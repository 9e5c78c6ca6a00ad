"""INV-10: whatever a watch leaves out, repeats, invents or tells differently is found."""

from holdfast.chaos.history.happenings import Recorded, Watched, WatchGap, WatchOpened
from unit.chaos.scribe import Scribe, offsets, whats


def logged() -> Scribe:
    """Groups g and h, with three and two records."""
    s = Scribe()
    s.create()
    s.create("h")
    s.entry(offsets(1))
    s.entry(offsets(1), group="h")
    s.entry(offsets(2))
    return s


def open_watch(s: Scribe, index: int = 0, group: str = "", watch: str = "x") -> None:
    s.say(WatchOpened(s.now_us, watch, group, index, 99 if index else 0))


def deliver(s: Scribe, *indexes: int, watch: str = "x", **other: str) -> None:
    """The records of these entries, as the log has them."""
    log = {e.index: e for e in s.history if isinstance(e, Recorded)}
    for index in indexes:
        record = log[index]
        told = {"group": record.group, "kind": record.kind, **other}
        place = (record.index, record.ordinal, record.group_seq)
        s.say(Watched(s.now_us, watch, *place, told["group"], told["kind"]))


def test_the_whole_log_in_order_passes() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, 2, 3, 4, 5)

    verdict = s.judged("I10")

    assert verdict.violations == []
    assert verdict.checked == {"deliveries": 5, "watches": 1}


def test_one_groups_records_pass() -> None:
    s = logged()
    open_watch(s, group="h")
    deliver(s, 2, 4)

    assert s.judged("I10").violations == []


def test_a_gap_is_found() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, 3)

    said = "x: record 3.0 after 1.0 left out record 2.0 (GroupCreated)"
    assert whats(s.judged("I10")) == said


def test_a_gap_at_the_beginning_is_found() -> None:
    s = logged()
    open_watch(s, index=1)
    deliver(s, 3)

    assert "left out record 2.0" in whats(s.judged("I10"))


def test_a_duplicate_is_found() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, 2, 2)

    assert "out of order, or again" in whats(s.judged("I10"))


def test_a_wrong_order_is_found() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 2, 1)

    assert "out of order, or again" in whats(s.judged("I10"))


def test_a_watch_goes_on_where_it_was() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, 2)
    open_watch(s, index=2)
    deliver(s, 3, 4, 5)

    assert s.judged("I10").violations == []


def test_a_record_left_out_on_going_on_is_found() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, 2)
    open_watch(s, index=2)
    deliver(s, 4)

    assert "left out record 3.0" in whats(s.judged("I10"))


def test_a_record_that_was_never_committed_is_found() -> None:
    s = logged()
    open_watch(s, group="g")
    s.say(Watched(s.now_us, "x", 1, 0, 1, "g", "GroupCreated"))
    s.say(Watched(s.now_us, "x", 2, 7, 2, "g", "OffsetsCommitted"))

    assert "record 2.7 after 1.0 is not in the log" in whats(s.judged("I10"))


def test_a_record_that_is_told_differently_is_found() -> None:
    s = logged()
    open_watch(s)
    deliver(s, 1, kind="GroupDeleted")

    assert "was told as" in whats(s.judged("I10"))


def test_a_told_gap_needs_a_new_beginning() -> None:
    s = logged()
    open_watch(s, index=1)
    s.say(WatchGap(s.now_us, "x"))
    deliver(s, 3)
    assert "behind a gap, without a new beginning" in whats(s.judged("I10"))

    s = logged()
    open_watch(s, index=1)
    s.say(WatchGap(s.now_us, "x"))
    open_watch(s, index=3)
    deliver(s, 4, 5)
    assert s.judged("I10").violations == []


def test_a_watch_that_nobody_opened_is_found() -> None:
    s = logged()
    deliver(s, 1)

    assert "x was never opened" in whats(s.judged("I10"))


def test_a_watch_without_deliveries_is_no_proof() -> None:
    s = logged()
    open_watch(s)

    assert s.judged("I10").empty
