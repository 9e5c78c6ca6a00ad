"""S24: what may be cut off of the history, by what is on the log, and when it is due."""

from __future__ import annotations

from typing import Final

import pytest

from harness.core import Core
from holdfast.coordinator.cluster import evolve, settings
from holdfast.coordinator.cluster.retention import SealedPart, due, hindrance, last_allowed
from holdfast.coordinator.model.commands import (
    Caller,
    CreateTopics,
    CutHistory,
    FormCluster,
    ReportBackup,
    SealSegment,
)
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    BackupVerified,
    Cause,
    Event,
    HistoryCut,
    Record,
    SettingChange,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.rejections import UnsupportedVersion
from holdfast.coordinator.model.replies import DoneReply
from holdfast.coordinator.model.state import State

HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR
NOW: Final = 100 * DAY
DIGEST: Final = bytes(range(40))


def cluster(level: int = 2, **bounds: int) -> Core:
    """A cluster with a log of ten entries, and retention as told."""
    names = {key: f"log.retention_{key}" for key in bounds}
    core = Core()
    changes = tuple(SettingChange(names[key], str(value)) for key, value in bounds.items())
    core.submit(FormCluster("c", changes, level))
    while core.state.applied_index < 10:
        core.submit(CreateTopics(Caller(1), (TopicSize(f"t{core.state.applied_index}", 1),)))
    return core


def sealed(core: Core, *indexes: int) -> Core:
    for index in indexes:
        core.submit(SealSegment(Position(index, 0), core.state.sealed))
    return core


def cut(index: int) -> CutHistory:
    return CutHistory(Position(index, 0), 5, DIGEST)


def test_s24_the_history_is_cut_off_at_a_boundary() -> None:
    core = sealed(cluster(), 3, 6)

    assert core.submit(cut(3)) == (HistoryCut(Position(3, 0), 5, DIGEST),)
    assert core.state.history_cut == HistoryCut(Position(3, 0), 5, DIGEST)
    assert core.submit(cut(6)) == (HistoryCut(Position(6, 0), 5, DIGEST),)


@pytest.mark.parametrize("again", [2, 3])
def test_s24_a_cut_is_never_repeated_nor_taken_back(again: int) -> None:
    """Two leaders may have prepared one; the second finds the first on the log."""
    core = sealed(cluster(), 3)
    core.submit(cut(3))

    assert core.submit(cut(again)) == ()


def test_s24_what_is_not_sealed_is_not_cut_off() -> None:
    assert sealed(cluster(), 3).submit(cut(4)) == ()


def test_s24_a_cluster_of_the_first_level_cuts_nothing() -> None:
    """An older node would stop at the event."""
    core = sealed(cluster(level=1), 3)

    assert core.submit(cut(3)) == ()
    assert last_allowed(core.state) == Position(0, 0)


def test_s24_nothing_is_cut_off_that_is_in_no_verified_backup_if_one_is_required() -> None:
    core = sealed(cluster(require_backup=1), 3, 6)
    assert core.submit(cut(3)) == ()

    core.state = core.state._replace(backed_up=5)
    assert core.submit(cut(6)) == ()
    assert core.submit(cut(3)) == (HistoryCut(Position(3, 0), 5, DIGEST),)


def record(event: Event) -> Record:
    return Record(Position(9, 0), "", 1, 0, 0, Cause("S24", "x"), "", "", event)


def test_s24_a_cut_that_cannot_be_true_is_refused_by_every_node() -> None:
    state = State(sealed=Position(4, 0))
    event = HistoryCut(Position(4, 0), 1, DIGEST)
    after = evolve.history_cut(state, event, record(event))
    assert after.history_cut == event
    for wrong in (event, HistoryCut(Position(4, 1), 1, DIGEST)):
        with pytest.raises(InvariantBroken):
            evolve.history_cut(after, wrong, record(wrong))


def test_s24_an_older_backup_takes_nothing_back() -> None:
    state = evolve.backup_verified(State(), BackupVerified(7), record(BackupVerified(7)))
    assert evolve.backup_verified(state, BackupVerified(5), record(BackupVerified(5))) == state
    assert state.backed_up == 7


# --- when it is due ---

PARTS = tuple(SealedPart(Position(n, 0), NOW - (10 - n) * DAY, 1, 100) for n in range(1, 10))
"""Nine segments of 100 bytes; the n-th ends with a record that is 10 - n days old."""


def found(**bounds: int) -> int:
    """The last segment that is due; 0: none."""
    state = sealed(cluster(**bounds), 9).state
    last = due(state, PARTS, NOW)
    return 0 if last is None else last.index


def test_s24_nothing_is_ever_due_by_default() -> None:
    assert found() == 0


@pytest.mark.parametrize(
    ("bounds", "last"),
    [
        ({"ms": 4 * DAY}, 5),  # the sixth ends exactly four days ago: not yet older
        ({"ms": 30 * DAY}, 0),
        ({"ms": 0, "min_ms": 0}, 9),
        ({"ms": 0}, 9),  # all end a day ago or earlier, which is the least that is kept
        ({"ms": 0, "min_ms": 3 * DAY}, 7),
        ({"bytes": 899}, 1),
        ({"bytes": 900}, 0),
        ({"bytes": 250}, 7),
        ({"bytes": 0, "min_ms": 6 * DAY}, 4),
        ({"bytes": 850, "ms": 4 * DAY}, 5),
        ({"bytes": 250, "ms": 8 * DAY}, 7),
    ],
)
def test_s24_the_oldest_segments_are_due_by_age_or_by_bytes(
    bounds: dict[str, int], last: int
) -> None:
    assert found(**bounds) == last


def test_s24_segments_that_were_cut_off_count_no_more() -> None:
    """They may be on the disk still, for a moment."""
    core = sealed(cluster(bytes=250), 9)
    core.submit(cut(7))
    assert due(core.state, PARTS, NOW) is None


def test_s24_no_more_is_due_than_is_allowed() -> None:
    core = sealed(cluster(ms=0, min_ms=0, require_backup=1), 9)
    core.state = core.state._replace(backed_up=4)
    assert due(core.state, PARTS, NOW) == Position(4, 0)
    core.state = core.state._replace(backed_up=0)
    assert due(core.state, PARTS, NOW) is None


def test_the_least_that_is_kept_is_a_day_unless_it_is_lowered() -> None:
    state = cluster().state
    assert settings.of_cluster(state).history_age_ms_min == DAY


# --- what is backed up ---


def report(index: int, *, cluster_id: str = "c", recovery_number: int = 0) -> ReportBackup:
    return ReportBackup(Caller(7), cluster_id, index, recovery_number)


def test_s24_a_verified_backup_is_noted_and_one_that_reaches_less_far_is_not() -> None:
    core = cluster()

    assert core.submit(report(5)) == (BackupVerified(5),)
    assert core.state.backed_up == 5
    assert core.submit(report(4)) == ()
    assert core.answers[7] == DoneReply(None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (report(11), "the log at 10"),
        (report(5, cluster_id="d"), "of cluster 'd'"),
        (report(5, recovery_number=1), "restored in between"),
    ],
)
def test_s24_a_backup_that_does_not_hold_this_log_is_refused(
    wrong: ReportBackup, said: str
) -> None:
    core = cluster()

    assert core.submit(wrong) == ()
    reply = core.answers[7]
    assert isinstance(reply, DoneReply)
    assert said in str(reply.error)
    assert core.state.backed_up == 0


def test_s24_a_cluster_of_the_first_level_notes_no_backup() -> None:
    core = cluster(level=1)

    assert core.submit(report(5)) == ()
    reply = core.answers[7]
    assert isinstance(reply, DoneReply)
    assert isinstance(reply.error, UnsupportedVersion)


def old_parts() -> list[SealedPart]:
    return [SealedPart(Position(3, 0), NOW - 9 * DAY, 3, 100)]


def hindered(core: Core) -> str:
    return hindrance(core.state, old_parts(), NOW)


def test_s24_what_keeps_an_old_segment_is_said() -> None:
    """Off, or nothing due, is no hindrance; a missing backup, an old one and the level are."""
    assert hindered(sealed(cluster(), 3)) == ""
    assert hindered(sealed(cluster(ms=10 * DAY), 3)) == ""
    assert hindered(sealed(cluster(ms=DAY), 3)) == ""
    assert "upgrade finish" in hindered(sealed(cluster(level=1, ms=DAY), 3))

    required = sealed(cluster(ms=DAY, require_backup=1), 3)
    assert "none was verified" in hindered(required)
    backed_up = required.state._replace(backed_up=2)
    assert "ends at entry 2" in hindrance(backed_up, old_parts(), NOW)
    assert hindrance(required.state._replace(backed_up=3), old_parts(), NOW) == ""
