"""The error that stops a member for good, and how long the program hears nothing of it.

From the service's refusal and what is known of the member. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client.errors import Fenced, from_code

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Identity, Settings
    from holdfast.client.errors import HoldfastError
    from holdfast.v1 import extras_pb2
    from holdfast.v1.errors_pb2 import ErrorCode


PAUSE_FIRST_MS: Final = 1_000
PAUSE_MAX_MS: Final = 30_000


def describe_member(member_id: str, instance_id: str | None, group: str) -> str:
    """Return the beginning of an error about a membership."""
    instance = "" if instance_id is None else f" (instance {instance_id!r})"
    return f"Member {member_id!r}{instance} of group {group!r}"


def fatal_error(
    code: ErrorCode.ValueType,
    extras: extras_pb2.ResponseExtras,
    settings: Settings,
    identity: Identity,
    log_time_ms: int | None,
    *,
    about: str = "",
) -> HoldfastError:
    """Make the exception for a refused membership: of whom, why, and who holds the identity.

    `about`: of which call, if it was not one of the membership's own.
    """
    who = describe_member(identity.member_id, settings.instance_id, settings.group)
    error = from_code(
        code,
        subject=f"{who}{about}",
        message=extras.message,
        holder=extras.holder,
        since_ms=extras.holder_since_ms if extras.HasField("holder_since_ms") else None,
        log_time_ms=log_time_ms,
    )
    if isinstance(error, Fenced):
        error.takeovers = extras.takeovers
    return error


def pause_ms(error: HoldfastError | None) -> int:
    """Return how long the program is not told of `error`; nothing is owned meanwhile.

    A supervisor starts a program again that ends with Fenced. Two that hold one instance id would
    so take it from each other several times a second. The pause doubles with each takeover.
    """
    if not isinstance(error, Fenced) or error.takeovers <= 1:
        return 0
    doublings = min(error.takeovers - 2, PAUSE_MAX_MS.bit_length())
    return min(PAUSE_FIRST_MS << doublings, PAUSE_MAX_MS)
