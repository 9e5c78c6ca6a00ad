"""What a member says of itself, for a health probe and for people.

A value, and how it is read off a session. No clock: the time comes in as an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.client._session.fatal_error import describe_member
from holdfast.client._session.session_io import Stage
from holdfast.client.errors import Fenced

if TYPE_CHECKING:
    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.member_session import MemberSession


@dataclass(frozen=True, slots=True)
class Health:
    """One member at one moment. Times are milliseconds."""

    group: str
    instance_id: str | None
    member_id: str
    generation: int
    phase: str
    """new, finding, joining, syncing, stable, revoking, leaving or stopped; in the heartbeat
    protocol new, a state of docs/clients.md, or stopped."""
    owned: int
    lease_left_ms: int | None
    """How long it may still act on what it owns if nothing is heard from the service any more
    (S11); None while it owns nothing."""
    error: BaseException | None
    """What stopped it for good."""
    ready: bool
    """It is in a generation and acts on what it was given there, at this moment: its lease has not
    ended, and it waits for no predecessor."""
    lost: LostReason | None = None
    """Why it lost partitions last; None: it never did."""

    @property
    def live(self) -> bool:
        """Whether it need not be started again: it runs, or it has stopped as asked."""
        return self.error is None

    @property
    def fenced(self) -> Fenced | None:
        """Set when another process holds its instance id: `holder`, `since`, `age_ms`. Final."""
        return self.error if isinstance(self.error, Fenced) else None

    def __str__(self) -> str:
        who = self.instance_id or self.member_id or "a member"
        state = f"{who} of group {self.group}: {self.phase}, owns {self.owned}"
        return state if self.error is None else f"{state}; {self._why()}"

    def _why(self) -> str:
        """Tell the error without whom it is about: that has been said before it."""
        about = describe_member(self.member_id, self.instance_id, self.group)
        return str(self.error).removeprefix(f"{about}: ")


def health_of(session: MemberSession, error: BaseException | None, now_ms: int) -> Health:
    """Look at a session at this moment."""
    owns = session.owns(now_ms)
    ends_at_ms = session.lease_ends_at_ms
    failed = error or session.error
    is_over = failed is not None and session.stage is not Stage.FAILED
    return Health(
        group=session.settings.group,
        instance_id=session.settings.instance_id,
        member_id=session.identity.member_id,
        generation=session.identity.generation,
        phase=Stage.STOPPED.name.lower() if is_over else session.phase_name,
        owned=len(session.held) if owns else 0,
        lease_left_ms=ends_at_ms - now_ms if owns and ends_at_ms is not None else None,
        error=failed,
        ready=failed is None and session.ready(now_ms),
        lost=session.loss,
    )
