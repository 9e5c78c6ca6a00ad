"""Both shells on a session that speaks no protocol at all: they know the interface alone.

The session asks nobody for anything. It gives two partitions under a grant each, as a service can
that assigns partition by partition, and ends when it is told to.
"""

# ruff: noqa: ARG002 (the interface says what is given; this session has use for little of it)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until
from holdfast.client import TopicPartition, Unavailable
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._session.member_session import SESSIONS, make_session
from holdfast.client._session.session import Session
from holdfast.client._session.session_io import (
    Assigned,
    Grant,
    Identity,
    Revoke,
    Settings,
    Stage,
    Stopped,
)
from unit.client._session.driver import make_settings
from unit.client.both_shells import Shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client import LostReason
    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.requests import RequestIdSource
    from holdfast.client._session.session_io import Output
    from holdfast.client.errors import HoldfastError

NOWHERE = "127.0.0.1:1"
LEASE_MS, TICK_MS = 60_000, 5
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = Grant("m-1", 4, 7, 0), Grant("m-1", 6, 9, 250)


class IdleSession:
    """Owns what it gave itself until it is told to end."""

    def __init__(self, settings: Settings, request_ids: RequestIdSource) -> None:
        self.settings = settings
        self.identity = Identity("m-1")
        self.stage, self.phase_name = Stage.NEW, "idle"
        self.error: HoldfastError | None = None
        self.unconfirmed: HoldfastError | None = None
        self.pausing = False
        self.held: dict[TopicPartition, Grant] = {}
        self.lease_ends_at_ms: int | None = None
        self.loss: LostReason | None = None
        self.wake_at_ms: int | None = None
        self.wanted_back: tuple[TopicPartition, ...] = ()
        self._going: tuple[TopicPartition, ...] = ()
        self._outputs: list[Output] = []

    def start(self, now_ms: int) -> None:
        self.stage, self.held = Stage.RUNNING, {P0: OLD, P1: NEW}
        self.lease_ends_at_ms, self.wake_at_ms = now_ms + LEASE_MS, now_ms
        self._outputs += [Assigned((P0,), OLD), Assigned((P1,), NEW)]

    def tick(self, now_ms: int) -> None:
        self.wake_at_ms = now_ms + TICK_MS
        if self.wanted_back:
            self.take(*self.wanted_back)
            self.wanted_back = ()

    def take(self, *names: TopicPartition) -> None:
        """Ask the user for these back."""
        self._going = names
        self._outputs.append(Revoke(names))

    def revoked(self, now_ms: int) -> None:
        self.held = {name: self.held[name] for name in self.held if name not in self._going}
        self._going = ()
        if self.stage is Stage.LEAVING:
            self._stop(None)

    def leave(self, now_ms: int) -> None:
        if self.stage is Stage.RUNNING:
            self.stage = Stage.LEAVING
            self.take(*self.held)

    restart = leave

    def fail(self, error: HoldfastError, now_ms: int) -> None:
        self._stop(error)

    def abort(self, error: HoldfastError) -> None:
        self._stop(error)

    def _stop(self, error: HoldfastError | None) -> None:
        self.error, self.stage, self.phase_name = error, Stage.STOPPED, "stopped"
        self._outputs.append(Stopped(error))

    def outputs(self) -> list[Output]:
        taken, self._outputs = self._outputs, []
        return taken

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        return self.held.get(partition) is grant and self.owns(now_ms)

    def lets_go_of(self, partition: TopicPartition) -> bool:
        return partition in self._going

    def owns(self, now_ms: int) -> bool:
        return bool(self.held) and now_ms < (self.lease_ends_at_ms or 0)

    def ready(self, now_ms: int) -> bool:
        return self.stage is Stage.RUNNING

    def answered(self, *_: Any) -> None:  # noqa: ANN401 - nothing is asked, so nothing is answered
        raise AssertionError("nothing was asked")

    delivered = failed = pushed = refused = answered


IDLE: Callable[[Settings, RequestIdSource], MemberSession] = IdleSession
"""It has all that the interface asks for."""


@pytest.fixture(params=list(Shell), ids=lambda shell: shell.name)
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Both shells, whose members get a session that asks nobody."""
    monkeypatch.setitem(SESSIONS, "classic", IDLE)
    chosen: Shell = request.param
    return chosen


def session_of(member: Any) -> IdleSession:  # noqa: ANN401 - of either shell
    inner = member._member if hasattr(member, "_member") else member._it
    session = inner._session
    assert isinstance(session, IdleSession)
    return session


def make(shell: Shell, **options: Any) -> Any:  # noqa: ANN401 - of either shell
    return shell.member(NOWHERE, group="g", topics=["t"], **options)


def taken(shell: Shell, member: Any, count: int) -> list[Any]:  # noqa: ANN401 - of either shell
    return [shell.wait(member.next_owned()) for _ in range(count)]


def test_each_partition_has_the_token_of_its_own_grant(shell: Shell) -> None:
    """S13: storage compares per partition, and so does whoever grants per partition."""
    with make(shell) as member:
        partitions = taken(shell, member, 2)
        assert [(p.name, p.fencing_token, p.predecessor_ms) for p in partitions] == [
            (P0, 7, 0),
            (P1, 9, 250),
        ]
        assert all(p.owned for p in partitions)
        health = member.health()
        assert (health.phase, health.owned, health.ready) == ("idle", 2, True)


def test_a_part_is_let_go_of_and_the_rest_is_owned_on(shell: Shell) -> None:
    """What goes is told by name, so a session may take back one partition and leave the others."""
    gone: list[Any] = []
    with make(shell, on_revoked=gone.extend) as member:
        kept, going = taken(shell, member, 2)
        session_of(member).wanted_back = (P1,)
        until(lambda: not going.owned, "on_revoked has returned")
        assert [p.name for p in gone] == [P1]
        assert (kept.owned, kept.revoking) == (True, False)


def test_leaving_ends_it_and_starting_again_is_refused(shell: Shell) -> None:
    member = make(shell)
    member.start()
    with pytest.raises(RuntimeError, match="used once"):
        member.start()
    member.leave()
    assert (member.stopped, member.health().phase) == (True, "stopped")


def test_a_commit_needs_an_identity_that_the_group_knows(shell: Shell) -> None:
    with make(shell) as member, pytest.raises(Unavailable, match="in no generation"):
        member.commit({P0: 1})


def test_the_classic_protocol_is_spoken_unless_another_one_is_asked_for() -> None:
    """Kafka's default for group.protocol is classic as well."""
    session: MemberSession = make_session(make_settings(), RequestIds())
    assert isinstance(session, Session)
