"""Checks of a heartbeat that need no group: what must be said, and in which bounds (K-M1 to K-M3).

Sizes guard S7: a heartbeat that could never be written in one entry is refused before it can loop.
"""

from __future__ import annotations

import re
from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.consumer.client_side import validation as client_assignors
from holdfast.coordinator.consumer.state import JOINING, RELEASED
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.lifecycle import invalid_group_id
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.ids import InstanceId
from holdfast.coordinator.model.rejections import (
    InvalidRegularExpression,
    InvalidRequest,
    Rejection,
    UnsupportedAssignor,
)

ID_MAX: Final = 249
"""The longest member id, in bytes, and the longest instance id and rack, in characters."""
CLASSIC_ID_MAX: Final = 292
"""The longest member id of the classic protocol, in bytes: the service makes it of a client id of
255 characters, a hyphen and a UUID."""
REGEX_LENGTH_MAX: Final = 1_000
"""The longest regular expression, in characters."""
_INSTANCE_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INT32_MAX: Final = 2**31 - 1


def of_heartbeat(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Check a heartbeat without looking at the group; the order is Kafka's."""
    if not command.group_id:
        return InvalidRequest("group_id", "must not be empty")
    return (
        invalid_group_id(command.group_id)
        or _of_ids(command)
        or _of_epoch(command)
        or _of_assignor(draft, command)
        or client_assignors.problem_of(command)
    )


def _of_ids(command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    """Check K-M1: what is said must not be empty."""
    if not 1 <= len(command.member_id.encode()) <= ID_MAX:
        return InvalidRequest("member_id", f"must have 1 to {ID_MAX} bytes")
    if command.instance_id is not None and not _is_instance_id(command.instance_id):
        allowed = f'1 to {ID_MAX} of letters, digits, ".", "_", "-", and not "." or ".."'
        problem = f"{command.instance_id[:40]!r} is not {allowed}"
        return InvalidRequest("instance_id", problem)
    if command.rack_id is not None and not 1 <= len(command.rack_id) <= ID_MAX:
        return InvalidRequest("rack_id", f"must have 1 to {ID_MAX} characters")
    return None


def _is_instance_id(instance_id: InstanceId) -> bool:
    return _INSTANCE_ID.fullmatch(instance_id) is not None and instance_id not in {".", ".."}


def _of_epoch(command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    """Check K-M2: a join says all; and K-M1: only a static member stops for a while."""
    timeout_ms = command.rebalance_timeout_ms
    if timeout_ms is not None and not 0 <= timeout_ms <= _INT32_MAX:
        return InvalidRequest("rebalance_timeout_ms", f"must be 0 to {_INT32_MAX}")
    if command.absence_ms < 0 or (command.absence_ms and command.member_epoch != RELEASED):
        return InvalidRequest("holdfast.absence_ms", "must be above 0, and with epoch -2 alone")
    if command.member_epoch == JOINING:
        return _of_join(command)
    if command.member_epoch < RELEASED:
        return InvalidRequest("member_epoch", "must be -2, -1, 0 or an epoch that was given")
    if command.member_epoch == RELEASED and command.instance_id is None:
        return InvalidRequest("instance_id", "must be set with epoch -2")
    return None


def _of_join(command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    if command.rebalance_timeout_ms is None:
        return InvalidRequest("rebalance_timeout_ms", "must be set by a join")
    if command.owned is None or command.owned:
        return InvalidRequest("topic_partitions", "must be empty, not unset, with a join")
    if command.topics is None and command.regex is None:
        return InvalidRequest("subscribed_topic_names", "must be set by a join, or the regex")
    return None


def _of_assignor(draft: Draft, command: ConsumerGroupHeartbeat) -> UnsupportedAssignor | None:
    """Check K-M3."""
    name = command.server_assignor
    if name is None:
        return None
    known = settings.of(draft.state, draft.group_id).consumer.assignors
    return None if name in known and name in ASSIGNORS else UnsupportedAssignor(name, known)


def of_regex(command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Check K-P1: a syntax that RE2 does not take is refused at once, but strangers first."""
    if not command.regex:
        return None
    if len(command.regex) > REGEX_LENGTH_MAX:
        problem = f"must have at most {REGEX_LENGTH_MAX} characters"
        return InvalidRequest("subscribed_topic_regex", problem)
    if command.regex_problem:
        return InvalidRegularExpression(command.regex, command.regex_problem)
    return None
