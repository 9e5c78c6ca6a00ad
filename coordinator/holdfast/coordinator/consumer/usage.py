"""The size of a member of the heartbeat protocol, and what its calls enlarge (S7, S23).

The bytes are estimates, as in `groups.usage`. Decides nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from holdfast.coordinator.cluster.settings import GroupSettings
from holdfast.coordinator.consumer.state import (
    ConsumerBody,
    ConsumerGroup,
    Holding,
    Member,
    assignor_bytes,
)
from holdfast.coordinator.groups.sizes import LIST_ON_LOG, NUMBER_ON_LOG, of_name, of_names
from holdfast.coordinator.groups.usage import MEMBER_BYTES, of_text, of_texts
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat, JoinGroup, SyncGroup
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicName
from holdfast.coordinator.model.member_profile import ConsumerProfile
from holdfast.coordinator.model.usage import MORE, NEW, SAME, Growth

HOLDING_BYTES: Final = 400
"""One topic of a member, with its target."""
PARTITION_BYTES: Final = 250
"""One partition of a member: its grant, its place in the map of owners, and in the target."""
MEMBER_ON_LOG: Final = 320
"""One member in a target, without its partitions: the longest id, tags and lengths."""
MEMBER_IN_POOL: Final = 360
"""What a target may have for each member of `group.max_size` beside its assignment. The settings
leave room for 400 (`cluster.settings.MEMBER_BYTES`); the rest is for what shares the entry."""


def of_member(member: Member) -> int:
    """Return about how many bytes a member takes."""
    return MEMBER_BYTES + _wished(member) + sum(map(_held, (*member.owned, *member.revoking)))


def _wished(member: Member) -> int:
    spoken = () if member.classic is None else member.classic.protocols
    size = sum(len(each.name) + len(each.metadata) + of_texts(each.topics or ()) for each in spoken)
    size += sum(assignor_bytes(member.profile).values())
    return of_texts(member.profile.topics) + of_text(member.profile.regex) + size


def _held(holding: Holding) -> int:
    size = PARTITION_BYTES * len(holding.partitions)
    return HOLDING_BYTES + of_text(holding.topic) + size


def said(profile: ConsumerProfile) -> int:
    """Return the bytes of what a member wants, on the log."""
    return of_names(profile.topics) + of_name(profile.regex) + sum(assignor_bytes(profile).values())


def said_by_all(body: ConsumerBody) -> int:
    """Return the bytes of what all members want together."""
    wanted = (*body.topic_users.items(), *body.regex_users.items())
    named = sum([users * of_name(name) for name, users in wanted])
    return named + sum(body.client_assignor_bytes.values())


def target_pool(in_force: GroupSettings) -> int:
    """Return how many bytes a target may have on the log: of assignments, and of ids (S7)."""
    return in_force.assignment_pool + in_force.max_size * MEMBER_IN_POOL


def target_most(body: ConsumerBody, topics: Mapping[TopicName, TopicSize], members: int) -> int:
    """Return how many bytes a target for so many members has at most, whatever the assignor.

    A topic is named once for each member that gets some of it, a partition once.
    """
    size = MEMBER_ON_LOG * members
    for name, users in _users(body).items():
        found = topics.get(name)
        if found is not None:
            takers = min(users, found.num_partitions)
            size += takers * (of_name(name) + LIST_ON_LOG) + NUMBER_ON_LOG * found.num_partitions
    return size


def _users(body: ConsumerBody) -> Counter[TopicName]:
    """Count how many members want each topic, by its name or by an expression, at most."""
    users: Counter[TopicName] = Counter(dict(body.topic_users.items()))
    for regex, found in body.regexes.items():
        users.update(dict.fromkeys(found.topics, body.regex_users[regex]))
    return users


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
