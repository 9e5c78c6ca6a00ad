"""Defects of pushes to members of the heartbeat protocol: hints that are taken for more."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client._session.consumer.session import ConsumerSession
from teeth.catalogue import Scenario, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

JOINING = "tests/unit/client/_session/consumer/test_session_joining.py::"


@seeded("S11", Scenario(f"{JOINING}test_a_push_is_a_hint_to_beat_now_and_proves_nothing"))
def push_is_taken_as_proof() -> Iterator[None]:
    """A member acts on by a push, while the group has given its partitions to others."""
    pushed: Any = ConsumerSession.pushed

    def renewing(self: ConsumerSession, push: Any, now_ms: int) -> None:
        self.owned.lease.accepted(now_ms)
        self.owned.lease.confirmed(now_ms)
        pushed(self, push, now_ms)

    with replaced(ConsumerSession, "pushed", renewing):
        yield


@seeded(
    "S12",
    Scenario(
        f"{JOINING}test_a_push_to_a_fenced_or_removed_member_is_asked_about_whatever_its_epoch"
    ),
)
def push_of_a_fence_is_taken_as_its_answer() -> Iterator[None]:
    """Whoever can push, or a push that came too late, ends the work of a rightful owner."""
    pushed: Any = ConsumerSession.pushed

    def believing(self: ConsumerSession, push: Any, now_ms: int) -> None:
        if push.error_code:
            self._fence(self._reason_of(push.error_code, now_ms), now_ms)
        pushed(self, push, now_ms)

    with replaced(ConsumerSession, "pushed", believing):
        yield
