"""Defects of the client: when it believes to own, and what it takes for a sign of life (S11)."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.client._session.lease import Lease
from holdfast.client._session.phases import IN_GROUP
from holdfast.client._session.session import Session
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client._session.calls_in_flight import Sent

OWNERSHIP = "tests/unit/client/_session/test_ownership.py::"
FOR_EVER_MS = 10_000_000


@seeded("S11", Simulated(("I1",), "frozen-clients"))
def own_fencing_off() -> Iterator[None]:
    """A member acts until it is told not to: cut off, it is told nothing."""

    def ends_at_ms(self: Lease) -> int | None:
        known = self._accepted_ms is not None and self._confirmed_ms is not None
        return FOR_EVER_MS if known else None

    with replaced(Lease, "ends_at_ms", property(ends_at_ms)):
        yield


@seeded(
    "S11",
    Scenario(
        OWNERSHIP
        + "test_s11_a_cut_off_member_with_a_30_minute_session_stops_at_its_rebalance_timeout"
    ),
)
def session_half_only() -> Iterator[None]:
    """Only the session limits ownership: a member acts long after a rebalance gave it away."""

    def ends_at_ms(self: Lease) -> int | None:
        known = self._accepted_ms is not None and self._confirmed_ms is not None
        return self._accepted_ms + self.session_ms * 8 // 10 if known else None  # type: ignore[operator]  # known

    with replaced(Lease, "ends_at_ms", property(ends_at_ms)):
        yield


@seeded("S11", Scenario(OWNERSHIP + "test_s11_an_answer_read_after_a_long_freeze_proves_nothing"))
def heartbeat_counts_from_its_answer() -> Iterator[None]:
    """A sign of life counts from when its answer was read, and not from when it was sent."""
    answered: Any = Session._heartbeat_answered

    def now(self: Session, sent: Sent, response: Any, now_ms: int) -> None:
        answered(self, replace(sent, sent_ms=now_ms), response, now_ms)

    with replaced(Session, "_heartbeat_answered", now):
        yield


@seeded("S11", Simulated(("I1",), "frozen-clients"))
def push_renews_the_right() -> Iterator[None]:
    """A rebalance that is pushed counts as a heartbeat that was answered NONE."""
    pushed: Any = Session.pushed

    def renewing(self: Session, push: Any, now_ms: int) -> None:
        if push.member_id == self.identity.member_id and self.phase in IN_GROUP:
            self.ownership.confirmed(now_ms, self.identity.generation)
        pushed(self, push, now_ms)

    with replaced(Session, "pushed", renewing):
        yield


@seeded("S11", Scenario(OWNERSHIP + "test_s11_the_timeouts_in_force_count_and_not_those_asked_for"))
def asked_timeouts_count() -> Iterator[None]:
    """A member reckons with the timeouts that it asked for, not with those in force."""
    with replaced(Lease, "set_timeouts", lambda _self, _session_ms, _rebalance_ms: None):
        yield
