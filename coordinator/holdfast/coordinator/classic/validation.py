"""Checks of requests that need no group: lengths, characters, timeouts, sizes.

Group and instance ids are checked as Kafka's own clients check them. Sizes guard S7: a request that
could never be written in one entry is refused before it can loop.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.coordinator.classic import protocol_votes
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import JoinGroup, SyncGroup
from holdfast.coordinator.model.ids import InstanceId
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.rejections import (
    InconsistentGroupProtocol,
    InvalidRequest,
    InvalidSessionTimeout,
    Rejection,
)

ID_MAX: Final = 249
"""The longest instance id, in characters (kafka: ConsumerConfig group.instance.id)."""
_INSTANCE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INT32_MAX: Final = 2**31 - 1
CONSUMER: Final = "consumer"


def of_join(draft: Draft, command: JoinGroup) -> Rejection | None:
    """Check a join without looking at the group; K-I5 comes first."""
    in_force = settings.of(draft.state, draft.group_id)
    least, most = in_force.min_session_timeout_ms, in_force.max_session_timeout_ms
    wrong_id = invalid_group_id(command.group_id)
    if wrong_id is not None:
        return wrong_id
    if not least <= command.session_timeout_ms <= most:
        return InvalidSessionTimeout(command.session_timeout_ms, least, most)
    if not -1 <= command.rebalance_timeout_ms <= _INT32_MAX:
        return InvalidRequest("rebalance_timeout_ms", f"must be 0 to {_INT32_MAX}")
    return _of_instance_id(command.instance_id) or _of_subscription(command)


def profile(command: JoinGroup) -> MemberProfile:
    """Return what a join says of the member.

    A rebalance timeout of -1 stands for the session timeout, as in Kafka's oldest version.
    """
    session_ms, rebalance_ms = command.session_timeout_ms, command.rebalance_timeout_ms
    return MemberProfile(
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms if rebalance_ms < 0 else rebalance_ms,
        protocols=command.protocols,
    )


def _of_instance_id(instance_id: InstanceId | None) -> InvalidRequest | None:
    if instance_id is None:
        return None
    if _INSTANCE_ID.fullmatch(instance_id) and instance_id not in {".", ".."}:
        return None
    allowed = f'1 to {ID_MAX} of letters, digits, ".", "_", "-", and not "." or ".."'
    return InvalidRequest("group_instance_id", f"{instance_id[:40]!r} is not {allowed}")


def _of_subscription(command: JoinGroup) -> InconsistentGroupProtocol | None:
    """Refuse an unreadable subscription before it reaches the group (bettered: K-J25)."""
    if command.protocol_type != CONSUMER:
        return None
    unreadable = [p.name for p in command.protocols if p.topics is None]
    if not unreadable:
        return None
    names = ", ".join(unreadable)
    return InconsistentGroupProtocol(f"no ConsumerProtocolSubscription in the metadata of {names}")


def of_metadata(draft: Draft, command: JoinGroup, others: int) -> InvalidRequest | None:
    """Check that all members' metadata fits into an entry (S7); `others`: bytes there now."""
    most = settings.of(draft.state, draft.group_id).metadata_pool
    size = protocol_votes.protocols_size(command.protocols)
    if others + size <= most:
        return None
    return InvalidRequest(
        "protocols",
        f"{size} bytes beside the group's {others} exceed its {most} "
        "(group.max_size x group.metadata_bytes_max)",
    )


def of_assignments(draft: Draft, command: SyncGroup) -> InvalidRequest | None:
    """Check that all assignments of a generation together fit into an entry (S7)."""
    most = settings.of(draft.state, draft.group_id).assignment_pool
    size = sum(len(assigned.assignment) for assigned in command.assignments)
    if size <= most:
        return None
    return InvalidRequest(
        "assignments",
        f"{size} bytes exceed the group's {most} (group.max_size x group.assignment_bytes_max)",
    )
