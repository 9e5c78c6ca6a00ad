"""The session timeout of each member, as it was told to it last.

In the classic protocol a member asks for it, and the log has it; in the heartbeat protocol it is
the group's, and each answer tells it. Knows no invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from holdfast.chaos.evidence.calls import Call
from holdfast.chaos.evidence.log_view import Known

Told: TypeAlias = Mapping[tuple[str, str], int]
"""Milliseconds, by group and member id."""


def sessions_told(calls: Iterable[Call]) -> Told:
    """Find what answers to heartbeats of the heartbeat protocol told."""
    found: dict[tuple[str, str], int] = {}
    for call in calls:
        told = call.result.get("session_timeout_ms", 0)
        if call.op == "ConsumerGroupHeartbeat" and call.ok and told:
            found[call.group, call.member_id] = int(told)
    return found


def session_us(told: Told, group: str, member: Known) -> int:
    """Return a member's session timeout in microseconds; 0: nobody has heard it."""
    ms = member.session_timeout_ms or told.get((group, member.member_id), 0)
    return ms * 1_000
