"""The requests of one member, built from its settings and its present identity.

And what request ids come from. When a request is sent is not known here.
No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.client._session.protocol import PROTOCOL_TYPE, Claim, subscription_bytes
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.client._session.session_io import Identity, Settings


class RequestIdSource(Protocol):
    """What makes request ids on the cluster's log time (S15): one for all members of a process."""

    def observe(self, log_time_ms: int, now_ms: int) -> None:
        """Learn the log time from an answer that was received at `now_ms`."""

    def log_time_ms(self, now_ms: int) -> int | None:
        """Tell the cluster's log time now; None before any was seen."""

    def make(self, now_ms: int) -> str:
        """Make a fresh id; "" before any log time was seen."""

    def make_life(self, now_ms: int) -> str:
        """Name the life of a member's process (S26)."""


def join(
    settings: Settings, identity: Identity, claim: Claim, request_id: str, reason: str
) -> group_pb2.JoinGroupRequest:
    """Join, or join again under the present member id."""
    silent = Claim()
    return group_pb2.JoinGroupRequest(
        group_id=settings.group,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        member_id=identity.member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            group_pb2.JoinGroupRequestProtocol(
                name=assignor.name,
                metadata=subscription_bytes(
                    settings.topics,
                    claim if assignor.uses_owned else silent,
                    weight=settings.weight,
                    cooperative=assignor.cooperative,
                ),
            )
            for assignor in settings.assignors
        ],
        reason=reason,
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def sync(
    settings: Settings,
    identity: Identity,
    request_id: str,
    assignments: Sequence[group_pb2.SyncGroupRequestAssignment] = (),
) -> group_pb2.SyncGroupRequest:
    """Ask for one's own assignment; the group leader hands all of them in."""
    return group_pb2.SyncGroupRequest(
        group_id=settings.group,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=identity.protocol,
        assignments=assignments,
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def heartbeat(settings: Settings, identity: Identity) -> group_pb2.HeartbeatRequest:
    """Give a sign of life."""
    return group_pb2.HeartbeatRequest(
        group_id=settings.group,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=settings.instance_id,
    )


def release(settings: Settings, identity: Identity, request_id: str) -> group_pb2.HeartbeatRequest:
    """Give the last sign of life before a planned restart: this member id acts no more (S12)."""
    request = heartbeat(settings, identity)
    request.holdfast.request_id = request_id
    request.holdfast.release = True
    return request


def leave(settings: Settings, identity: Identity, request_id: str) -> group_pb2.LeaveGroupRequest:
    """Remove this member now."""
    member = group_pb2.LeaveGroupRequestMember(
        member_id=identity.member_id,
        group_instance_id=settings.instance_id,
        reason="the member leaves",
    )
    return group_pb2.LeaveGroupRequest(
        group_id=settings.group,
        members=[member],
        holdfast=extras_pb2.RequestExtras(request_id=request_id),
    )


def list_topics(topics: Iterable[str]) -> admin_pb2.ListTopicsRequest:
    """How many partitions these topics have."""
    return admin_pb2.ListTopicsRequest(names=sorted(topics))
