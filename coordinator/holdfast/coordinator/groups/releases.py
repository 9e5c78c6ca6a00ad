"""The planned restart of a static member of the classic protocol, in a group of any type (S12).

Its last heartbeat fences its id; it stays a member, and nothing moves. A heartbeat starts a session
over (K-F7, K-Q9), and this is one, so the next process has a whole session to come back. Only the
other protocol's goodbye does not (K-N3). Knows no type: it reads of a member only what members of
all types have.
"""

from __future__ import annotations

from typing import Any

from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.events import InstanceReleased
from holdfast.coordinator.model.rejections import InvalidRequest, Rejection


def refusal(member: Any) -> Rejection | None:  # noqa: ANN401 - a member of any type
    """Say why a member cannot be restarted: without an instance id nobody can take its place."""
    if member.instance_id is not None:
        return None
    problem = "only a member with a group_instance_id can come back; leave the group instead"
    return InvalidRequest("holdfast.release", problem)


def release(draft: Draft, member: Any) -> None:  # noqa: ANN401 - a member of any type
    """Fence the id of a static member, keep its place, and start its session over.

    The generation is not asked for: that its process has stopped is true in any.
    """
    draft.emit(InstanceReleased(member.instance_id, member.member_id), "S12")
    draft.arm_session(member.member_id)
