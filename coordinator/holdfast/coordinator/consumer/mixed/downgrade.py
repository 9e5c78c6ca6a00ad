"""Whether a group is to be a classic one from now on (K-Q12, K-Q13)."""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer.state import ConsumerBody
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.member_profile import ClassicProfile

_POLICIES = frozenset({"bidirectional", "downgrade"})
"""The migration policies under which a group with members may become a classic one."""


def is_due(draft: Draft) -> bool:
    """Return whether nobody is left who speaks the heartbeat protocol, and the rest may go back.

    To be asked when members have gone. A group stays as it is where the settings forbid it, or
    where it would be too large.
    """
    body: ConsumerBody = draft.group.body
    if not 0 < len(body.classic_members) == len(body.members):
        return False
    in_force = settings.of(draft.state, draft.group_id)
    fits = len(body.members) <= in_force.max_size and _metadata(body) <= in_force.metadata_pool
    return fits and in_force.consumer.migration_policy in _POLICIES


def _metadata(body: ConsumerBody) -> int:
    """Return the bytes of all members' protocols, which a classic group's leader is sent (S7)."""
    return sum(_size(each.classic) for each in body.members.values())


def _size(classic: ClassicProfile | None) -> int:
    protocols = () if classic is None else classic.protocols
    return sum(len(each.name) + len(each.metadata) for each in protocols)
