"""What stops a member for good, as the user hears it. No IO, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client.errors import from_code

if TYPE_CHECKING:
    from holdfast.client.errors import HoldfastError
    from holdfast.client.requests import Identity
    from holdfast.client.signals import Settings
    from holdfast.v1 import extras_pb2
    from holdfast.v1.errors_pb2 import ErrorCode


def whom(member_id: str, instance_id: str | None, group: str) -> str:
    """How an error begins that is about a membership."""
    instance = "" if instance_id is None else f" (instance {instance_id!r})"
    return f"Member {member_id!r}{instance} of group {group!r}"


def final_error(
    code: ErrorCode.ValueType,
    extras: extras_pb2.ResponseExtras,
    settings: Settings,
    identity: Identity,
    log_time_ms: int | None,
) -> HoldfastError:
    """The exception for a refusal of the membership: of whom, why, and who holds the identity."""
    return from_code(
        code,
        subject=whom(identity.member_id, settings.instance_id, settings.group),
        message=extras.message,
        holder=extras.holder,
        since_ms=extras.holder_since_ms if extras.HasField("holder_since_ms") else None,
        log_time_ms=log_time_ms,
    )
