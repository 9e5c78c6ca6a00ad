"""What a member may do is written down by the clock of its lease, however late it looks (S11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.chaos.evidence.rights import rights
from holdfast.chaos.history.happenings import Granted, Happening, Renewed, Surrendered
from holdfast.chaos.history.jsonl import happening_of
from holdfast.chaos.workload import members
from holdfast.chaos.workload.members import RightsLog
from holdfast.chaos.workload.recorder import Recorder
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._session.phases import Phase
from holdfast.client._session.session import Session
from holdfast.client._session.session_io import Grant, Settings, TopicPartition
from holdfast.client.errors import HoldfastError
from holdfast.coordinator.assignors import RangeAssignor

SESSION_MS, REBALANCE_MS = 1_000, 5_000
BEGAN_MS = 10_000
ENDS_MS = BEGAN_MS + 800
"""S11: 0.8 of the session after the last accepted sign of life was sent."""


class Scene:
    """A session that holds one partition, on a clock that the test sets."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._now_ms = BEGAN_MS
        monkeypatch.setattr(members, "boot_us", lambda: self._now_ms * 1_000)
        settings = Settings(
            group="g",
            topics=("t",),
            assignors=(RangeAssignor(),),
            instance_id="i",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )
        self.recorder = Recorder(path, 0)
        self.session = Session(settings, RequestIds())
        self.rights = RightsLog(self.session, self.recorder, "m#1")
        self.session.phase = Phase.STABLE
        grant = Grant("m-1", 3, 77, 0)
        self.session.ownership.assigned(grant, (TopicPartition("t", 4),), BEGAN_MS)
        self.at(BEGAN_MS)

    def at(self, now_ms: int) -> None:
        """Time has come so far, and the session looks."""
        self._now_ms = now_ms
        self.session.ownership.update(now_ms)
        self.look()

    def look(self) -> None:
        """The shell takes what the session has decided."""
        self.rights.look(self.session.outputs())

    def heard(self, sent_ms: int) -> None:
        """A heartbeat that was sent then was answered NONE."""
        self.session.ownership.confirmed(sent_ms, 3)

    def written(self) -> list[Happening]:
        return [happening_of(line) for line in self._path.read_text().splitlines()]

    def interval(self, number: int) -> tuple[int, float, float]:
        """The right to one partition, as the checkers see it: token, from and to in ms."""
        (right,) = (each for each in rights(self.written()) if each.partition[2] == number)
        return right.token, right.start_us / 1_000, right.end_us / 1_000


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path / "history", monkeypatch)
    yield made
    made.recorder.close()


def granted() -> Granted:
    parts = (("t", 4),)
    return Granted(BEGAN_MS * 1_000, "m#1", "g", "m-1", "i", 3, parts, 77, 0, ENDS_MS * 1_000)


def test_a_grant_says_until_when_it_holds_by_itself(scene: Scene) -> None:
    assert scene.written() == [granted()]


def test_s11_who_wakes_up_late_had_lost_his_right_when_the_lease_ended(scene: Scene) -> None:
    """Frozen for ten sessions: the right ended in the middle of it, not at the awakening."""
    scene.at(BEGAN_MS + 10 * SESSION_MS)

    assert scene.written()[1:] == [Surrendered(ENDS_MS * 1_000, "m#1", "g", "m-1", "lost")]


def test_an_accepted_heartbeat_moves_the_end(scene: Scene) -> None:
    scene.heard(BEGAN_MS + 500)
    scene.at(BEGAN_MS + 510)
    scene.at(BEGAN_MS + 10 * SESSION_MS)
    moved_us = (ENDS_MS + 500) * 1_000

    assert scene.written()[1:] == [
        Renewed((BEGAN_MS + 510) * 1_000, "m#1", "g", "m-1", moved_us),
        Surrendered(moved_us, "m#1", "g", "m-1", "lost"),
    ]


def test_a_crash_ends_the_right_at_once_and_only_once(scene: Scene) -> None:
    scene.at(BEGAN_MS + 100)
    scene.rights.crashed()
    scene.session.abort(HoldfastError("killed"))
    scene.look()
    crashed_us = (BEGAN_MS + 100) * 1_000

    assert scene.written()[1:] == [Surrendered(crashed_us, "m#1", "g", "m-1", "crashed")]


def test_letting_go_is_written_before_the_group_can_hear_of_it(scene: Scene) -> None:
    """S12: nothing is owned any more when the goodbye is sent."""
    scene.session.leave(BEGAN_MS)
    scene.look()
    scene.session.revoked(BEGAN_MS)
    scene.look()

    assert scene.written()[1:] == [Surrendered(BEGAN_MS * 1_000, "m#1", "g", "m-1", "revoked")]


def test_what_a_cooperative_member_keeps_is_written_with_its_older_token(scene: Scene) -> None:
    """KIP-429, S13: 4 is kept under its grant, 5 comes with the next one; then 4 goes alone."""
    table, now_us = scene.session.ownership, (BEGAN_MS + 100) * 1_000
    four, five = TopicPartition("t", 4), TopicPartition("t", 5)
    table.assigned(Grant("m-1", 4, 90, 0), (four, five), BEGAN_MS + 100)
    scene.at(BEGAN_MS + 100)
    table.revoke((four,))
    scene.at(BEGAN_MS + 110)
    assert len(scene.written()) == 2, "it still acts on what it lets go of"
    table.release()
    scene.at(BEGAN_MS + 120)
    ends_us = now_us + 800 * 1_000

    whose = ("m#1", "g", "m-1", "i", 4)
    assert scene.written()[1:] == [
        Granted(now_us, *whose, (("t", 4), ("t", 5)), 90, 0, ends_us, (77, 90)),
        Granted(now_us + 20_000, *whose, (("t", 5),), 90, 0, ends_us),
    ]
    assert scene.interval(4) == (77, BEGAN_MS, BEGAN_MS + 120)
    assert scene.interval(5) == (90, BEGAN_MS + 100, BEGAN_MS + 900)


def test_s11_what_is_owned_again_after_the_clock_took_it_is_another_right(scene: Scene) -> None:
    """Both in one look: the answer that brings it back is the first thing a process sees again."""
    woken_ms = BEGAN_MS + 2 * SESSION_MS
    scene.session.ownership.update(woken_ms)
    scene.heard(woken_ms)
    scene.at(woken_ms)

    assert [type(each) for each in scene.written()[1:]] == [Surrendered, Granted]
    assert scene.written()[1] == Surrendered(ENDS_MS * 1_000, "m#1", "g", "m-1", "lost")
