"""Interpret a gRPC status: whether the call happened, whether to retry, and where (S5).

A call that failed after it was sent has an unknown outcome, unless trailing metadata says
`holdfast-outcome: not-applied`. Pure: reads a status, decides nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grpc import StatusCode

from holdfast.client._session.session_io import FailureKind
from holdfast.client._text import readable
from holdfast.client.errors import (
    Forbidden,
    HoldfastError,
    IncompatibleServer,
    InvalidArgument,
    OutcomeUnknown,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTCOME_KEY = "holdfast-outcome"
LEADER_KEY = "holdfast-leader"
RETRY_KEY = "holdfast-retry"
CLIENT_ID_KEY = "holdfast-client-id"
NOT_APPLIED = "not-applied"
UNKNOWN = "unknown"

_REFUSALS = frozenset(
    {
        StatusCode.INVALID_ARGUMENT,
        StatusCode.OUT_OF_RANGE,
        StatusCode.FAILED_PRECONDITION,
        StatusCode.NOT_FOUND,
        StatusCode.ALREADY_EXISTS,
    }
)
_NEVER_ARRIVED = (
    "CLIENT: Sent message larger than max",
    "SERVER: Received message larger than max",
)
_NOT_SERVED = (
    "This call is not served there: it may be a node's peer port, while clients connect to its "
    "client_address; or the service is older than this client: then upgrade it."
)
"""gRPC's words are the same for both. A node of this version tells which it is."""
_TOO_LARGE = ("message larger than max", "metadata size exceeds")
# The node itself is unusable at the moment: the next attempt goes to another one.
_MOVES = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED})
# The node took the call up: it has no room for it, or failed in it.
_ANSWERS = _REFUSALS | {
    StatusCode.RESOURCE_EXHAUSTED,
    StatusCode.INTERNAL,
    StatusCode.UNKNOWN,
    StatusCode.DATA_LOSS,
}
_ELSEWHERE = frozenset({StatusCode.UNIMPLEMENTED, StatusCode.OUT_OF_RANGE})


@dataclass(frozen=True, slots=True)
class FailedCall:
    """The meaning of a failed attempt. `leader`: the leader's address, if the node named it."""

    kind: FailureKind
    error: HoldfastError
    move: bool
    """Whether another node may answer instead."""
    leader: str | None
    again: HoldfastError | None = None
    """Its meaning for a caller with a token, which may show a newer one, or the same one later."""


def texts_in(metadata: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    """Read metadata, in whichever form grpcio gives it: all iterate over pairs.

    Not by dict(), which asks what has `keys` for them, and until grpcio 1.78 those are pairs, too.
    """
    return {key: value for key, value in metadata if isinstance(value, str)}


def classify(
    code: StatusCode,
    details: str,
    metadata: Iterable[tuple[str, str | bytes]],
    *,
    subject: str,
    request_id: str,
) -> FailedCall:
    """Interpret one status other than OK. Total over StatusCode."""
    trailing = texts_in(metadata)
    text = f"{subject}: {code.name} ({readable(details)})"
    leader = trailing.get(LEADER_KEY)
    outcome = trailing.get(OUTCOME_KEY)
    fatal = _fatal(code, text, outcome, request_id)
    if outcome == NOT_APPLIED and trailing.get(RETRY_KEY) == "no":
        fatal = fatal if isinstance(fatal, Forbidden) else InvalidArgument(text)
    said = readable(details) if outcome else ""
    if fatal is not None:
        fatal.details = said
        if isinstance(fatal, Unavailable | OutcomeUnknown):
            fatal.answered = code in _ANSWERS
        # A node's own words that this call is not served there, or that it does not hold the
        # events that are asked for: another one may.
        move = code in _ELSEWHERE and outcome == NOT_APPLIED
        is_stale = code is StatusCode.UNAUTHENTICATED and trailing.get(RETRY_KEY) != "no"
        again = _passing(code, text, outcome, request_id) if outcome and is_stale else None
        if again is not None:  # the node has judged the token; a later one may be good
            again.details, again.answered = said, True
        return FailedCall(FailureKind.FATAL, fatal, move=move, leader=leader, again=again)
    error = _passing(code, text, outcome, request_id)
    error.details = said
    kind = FailureKind.SUPERSEDED if code is StatusCode.ABORTED else FailureKind.RETRY
    return FailedCall(kind, error, move=code in _MOVES, leader=leader)


def _passing(
    code: StatusCode, text: str, outcome: str | None, request_id: str
) -> Unavailable | OutcomeUnknown:
    """Make the error of a call that may be answered another time."""
    error = (
        Unavailable(text)
        if outcome == NOT_APPLIED
        else OutcomeUnknown(text, request_id=request_id or None)
    )
    error.answered = code in _ANSWERS
    return error


def _fatal(
    code: StatusCode, text: str, outcome: str | None, request_id: str
) -> HoldfastError | None:
    if code is StatusCode.UNIMPLEMENTED:
        return IncompatibleServer(
            f"{text}." if outcome == NOT_APPLIED else f"{text}. {_NOT_SERVED}"
        )
    if code in {StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED}:
        return Forbidden(text)
    if code is StatusCode.DATA_LOSS and outcome == NOT_APPLIED:
        # Its disk cannot be read, and nobody else can answer: a person has to do something first.
        return Unavailable(text)
    if code in _REFUSALS and outcome == UNKNOWN:
        # S15: an id older than what the service remembers. It will not execute it, nor tell.
        return OutcomeUnknown(text, request_id=request_id or None)
    if code in _REFUSALS:
        return InvalidArgument(text)
    if code is StatusCode.RESOURCE_EXHAUSTED and outcome is None:
        return _too_large(text, request_id)
    return None


def _too_large(text: str, request_id: str) -> HoldfastError | None:
    """Make the error for a message that gRPC refused for its size: a retry would be no smaller.

    The service did not send it, so there is no outcome. A request that never arrived changed
    nothing; if the answer was too large, the call has happened.
    """
    if any(sign in text for sign in _NEVER_ARRIVED):
        return InvalidArgument(f"{text}. The message is larger than gRPC's limit.")
    if any(sign in text for sign in _TOO_LARGE):
        why = f"{text}. The answer is larger than gRPC's limit: look what was done, ask for less."
        return OutcomeUnknown(why, request_id=request_id or None)
    return None
