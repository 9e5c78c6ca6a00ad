"""Which members an event takes out of their group, and how: the same for all analyses.

Plain Python over events: no Spark, no files.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.coordinator.model.events import (
    Event,
    GenerationStarted,
    MemberExpired,
    MemberRefused,
    MembersLeft,
    MembersRemoved,
)
from holdfast.coordinator.model.ids import MemberId


class Departures(NamedTuple):
    """`how`: left, removed (by an operator, or absent when a join phase closed), expired, refused.

    Refused: thrown out because the group was full (K-I10).
    """

    member_ids: tuple[MemberId, ...]
    how: str


def departures(event: Event) -> Departures:
    """Nobody, for an event that is about something else."""
    match event:
        case MembersLeft(member_ids=member_ids):
            return Departures(member_ids, "left")
        case MembersRemoved(member_ids=member_ids) | GenerationStarted(removed=member_ids):
            return Departures(member_ids, "removed")
        case MemberExpired(member_id=member_id):
            return Departures((member_id,), "expired")
        case MemberRefused(member_id=member_id):
            return Departures((member_id,), "refused")
        case _:
            return Departures((), "")
