"""Decides which certificates are revoked: a change of the list is one event, all of it or nothing.

The list is bounded. A revocation goes when it is lifted, or with a later change once its
certificate has long expired, so the event lists all that goes. Who may change the list was asked
before (the server's gate). Knows no certificate but by its fingerprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.access import (
    KEPT_AFTER_EXPIRY_MS,
    REVOCATIONS_MAX,
    is_fingerprint,
    revocation_problem,
)
from holdfast.coordinator.model.events import RevocationsChanged
from holdfast.coordinator.model.levels import too_low
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.coordinator.model.replies import DoneReply

if TYPE_CHECKING:
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.access import Fingerprint
    from holdfast.coordinator.model.commands import AlterRevocations
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import State

_WHAT: Final = "a revoked certificate"
_REVOKED: Final = "revoked"


def alter(draft: Draft, command: AlterRevocations) -> DoneReply:
    """Revoke certificates and lift revocations; one that is revoked already stays as it is."""
    problem = too_low(draft.state, RevocationsChanged, _WHAT) or _nonsense(command)
    if problem is not None:
        return DoneReply(problem)
    known, now_ms = draft.state.revocations, draft.state.log_time_ms
    new = [each for each in command.revoked if each.fingerprint not in known]
    gone = {each for each in command.lifted if each in known}
    gone |= _outlived(draft.state, command.wall_ms)
    if len(known) + len(new) - len(gone) > REVOCATIONS_MAX and new:
        return DoneReply(_too_many(len(known)))
    if new or gone:
        dated = tuple(sorted(each._replace(revoked_ms=now_ms) for each in new))
        draft.emit(RevocationsChanged(dated, tuple(sorted(gone))), "access")
    return DoneReply(None)


def _nonsense(command: AlterRevocations) -> Rejection | None:
    for each in command.revoked:
        if (problem := revocation_problem(each)) is not None:
            return InvalidRequest(_REVOKED, problem)
    for lifted in command.lifted:
        if not is_fingerprint(lifted):
            return InvalidRequest("lifted", f"{lifted[:100]!r} is no fingerprint of a certificate")
    named = [*(each.fingerprint for each in command.revoked), *command.lifted]
    if len(set(named)) < len(named):
        return InvalidRequest(_REVOKED, "a certificate is named twice in one call")
    return None


def _outlived(state: State, wall_ms: int) -> set[Fingerprint]:
    """Return those whose certificates have long expired, by the wall clock and by log time.

    One of the two may be wrong. A revocation that goes too early would let its certificate in.
    """
    until_ms = min(state.log_time_ms, wall_ms) - KEPT_AFTER_EXPIRY_MS
    return {
        each.fingerprint for each in state.revocations.values() if 0 < each.expires_ms < until_ms
    }


def _too_many(count: int) -> Rejection:
    return InvalidRequest(
        _REVOKED,
        f"the cluster has {count} revocations already, and {REVOCATIONS_MAX} are allowed. Lift "
        "those that are not needed (`holdfast certs unrevoke`); replace the authority instead, if "
        "so many of its certificates are not to be trusted (`holdfast certs authority next`)",
    )
