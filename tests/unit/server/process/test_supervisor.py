"""What a node tells its supervisor: sd_notify(3) and sd_watchdog_enabled(3) are the rules."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.server.process.supervisor import SIGNS_A_PERIOD, Supervisor
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PERIOD_USEC = 60_000_000


class Timer:
    """The timer of the supervisor; a test lets it fire."""

    def __init__(self) -> None:
        self.call: Callable[[], None] | None = None
        self.delay = 0.0

    def later(self, delay: float, call: Callable[[], None]) -> Any:  # noqa: ANN401 - its handle
        self.delay, self.call = delay, call
        return self

    def cancel(self) -> None:
        self.call = None

    def fire(self) -> None:
        assert self.call
        assert self.delay == pytest.approx(PERIOD_USEC / 1_000_000 / SIGNS_A_PERIOD)
        self.call()


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The supervisor's socket; its path is short, since such addresses have 108 bytes at most."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind("notify")
        supervisor.settimeout(0)
        yield supervisor


def messages(heard: socket.socket) -> list[str]:
    told: list[str] = []
    with contextlib.suppress(BlockingIOError):
        while True:
            told.append(heard.recv(4096).decode())
    return told


def watched(**beside: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": "notify", "WATCHDOG_USEC": str(PERIOD_USEC), **beside}


def test_a_node_that_works_says_that_it_serves_and_lives(heard: socket.socket) -> None:
    """Each sign is sent because the engine has ticked since the one before."""
    ticks, timer = iter(range(100)), Timer()
    Supervisor(watched(), lambda: next(ticks), timer.later).serving()
    timer.fire()
    timer.fire()

    assert messages(heard) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]


def test_for_an_engine_that_hangs_no_sign_of_life_is_sent(heard: socket.socket) -> None:
    """The loop alone proves nothing: a node whose disk hangs looks alive to it."""
    timer = Timer()
    Supervisor(watched(), lambda: 7, timer.later).serving()
    timer.fire()
    timer.fire()

    assert messages(heard) == ["READY=1", "WATCHDOG=1"]


@pytest.mark.parametrize(
    "without", [{"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_PID": "1"}]
)
def test_no_signs_of_life_are_sent_unless_they_are_asked_of_this_process(
    heard: socket.socket, without: dict[str, str]
) -> None:
    """sd_watchdog_enabled(3): both variables are for the process with that pid alone."""
    timer = Timer()
    Supervisor(watched(**without), lambda: 1, timer.later).serving()

    assert (messages(heard), timer.call) == (["READY=1"], None)


def test_the_watched_process_may_be_named(heard: socket.socket) -> None:
    Supervisor(watched(WATCHDOG_PID=str(os.getpid())), lambda: 1, Timer().later).serving()

    assert messages(heard) == ["READY=1", "WATCHDOG=1"]


def test_who_leads_is_told_for_people(heard: socket.socket) -> None:
    replica = FakeReplica()
    Supervisor(watched(), lambda: 1, Timer().later).listen(replica)
    replica.lead(3)
    replica.step_down()

    assert messages(heard) == ["STATUS=leads in term 3", "STATUS=does not lead"]


def test_a_stop_is_told_and_ends_the_signs_of_life(heard: socket.socket) -> None:
    timer = Timer()
    supervisor = Supervisor(watched(), lambda: 1, timer.later)
    supervisor.serving()
    supervisor.stopping()

    assert timer.call is None
    assert messages(heard) == ["READY=1", "WATCHDOG=1", "STOPPING=1"]


def test_an_abstract_address_is_understood() -> None:
    """sd_notify(3): a leading @ stands for the zero byte of an abstract socket."""
    name = f"holdfast-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind("\0" + name)
        supervisor.settimeout(0)
        Supervisor({"NOTIFY_SOCKET": "@" + name}, lambda: 1, Timer().later).stopping()

        assert messages(supervisor) == ["STOPPING=1"]


def test_a_supervisor_that_does_not_listen_harms_no_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = str(tmp_path / "gone")
    with caplog.at_level(logging.WARNING):
        Supervisor({"NOTIFY_SOCKET": gone}, lambda: 1, Timer().later).stopping()

    assert gone in caplog.text


def test_without_a_supervisor_nothing_is_sent() -> None:
    """As in a terminal, or under a supervisor of another kind."""
    timer = Timer()
    supervisor = Supervisor({"WATCHDOG_USEC": "1"}, lambda: 1, timer.later)
    supervisor.serving()
    supervisor.stopping()

    assert timer.call is None
