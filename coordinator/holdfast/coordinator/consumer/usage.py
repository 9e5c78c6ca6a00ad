"""The size of a member of the heartbeat protocol, and what its calls enlarge (S7, S23).

The bytes are estimates, as in `groups.usage`. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.coordinator.consumer.state import ConsumerGroup, Holding, Member
from holdfast.coordinator.groups.usage import MEMBER_BYTES, of_text, of_texts
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat, JoinGroup, SyncGroup
from holdfast.coordinator.model.usage import MORE, NEW, SAME, Growth

HOLDING_BYTES: Final = 400
"""One topic of a member, with its target."""
PARTITION_BYTES: Final = 250
"""One partition of a member: its grant, its place in the map of owners, and in the target."""


def of_member(member: Member) -> int:
    """Return about how many bytes a member takes."""
    return MEMBER_BYTES + _wished(member) + sum(map(_held, (*member.owned, *member.revoking)))


def _wished(member: Member) -> int:
    spoken = () if member.classic is None else member.classic.protocols
    size = sum(len(each.name) + len(each.metadata) + of_texts(each.topics or ()) for each in spoken)
    return of_texts(member.profile.topics) + of_text(member.profile.regex) + size


def _held(holding: Holding) -> int:
    size = PARTITION_BYTES * len(holding.partitions)
    return HOLDING_BYTES + of_text(holding.topic) + size


def named(topics: Iterable[str]) -> int:
    """Return the bytes of names on the log."""
    return sum(len(each.encode()) + 2 for each in topics)


def growth(
    before: ConsumerGroup | None,
    after: ConsumerGroup | None,
    command: ConsumerGroupHeartbeat | JoinGroup | SyncGroup,
) -> Growth:
    """Return what a call that enlarged the state has enlarged; an instance stays what it was."""
    old, new = _caller(before, command), _caller(after, command)
    if old is None or new is None:
        return NEW
    return MORE if _wished(new) > _wished(old) else SAME


def _caller(
    group: ConsumerGroup | None, command: ConsumerGroupHeartbeat | JoinGroup | SyncGroup
) -> Member | None:
    if group is None:
        return None
    held = group.body.instances.get(command.instance_id or "")
    return group.body.members.get(held or command.member_id)
