"""About how many bytes a command takes in an entry of the log, and what its decision adds (S7).

A command's own lists come back in its events and its stored answer. The target of a group and the
steps towards it do not: they are as long as the group is large, whoever causes them. Never too low,
so that what is found to fit does fit. Knows no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.groups.sizes import of_event, of_target
from holdfast.coordinator.model.commands import (
    CommitOffsets,
    ConsumerGroupHeartbeat,
    CreatePartitions,
    CreateTopics,
    DeleteOffsets,
    DeleteTopics,
    ExpireOffsets,
    InstallAssignment,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from holdfast.coordinator.model.consumer_events import MemberAdvanced, RegexResolved, TargetStored
from holdfast.coordinator.model.effects import InstallRegexes, InstallTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.events import Proposed

ALONE: Final = 64 << 20
"""The weight of a command that is to share its batch with nothing: the largest entry there is."""
_HEAD: Final = 256
"""Bytes of a command in an entry, about, without its texts: its request id and stored answer."""
_ITEM: Final = 64
"""Bytes of one item of a command's list, about, without its texts."""


def of_command(command: Command) -> int:
    """Estimate a command's bytes in an entry."""
    return _HEAD + sum(_listed(command))


def _listed(command: Command) -> Iterator[int]:
    """Yield the bytes of each item it lists; names are in its event and its stored answer."""
    match command:
        case JoinGroup(protocols=protocols):
            yield from (len(p.name) + len(p.metadata) for p in protocols)
        case SyncGroup(assignments=assignments):
            yield from (_ITEM + len(a.assignment) for a in assignments)
        case CommitOffsets(offsets=offsets):
            yield from (_ITEM + 2 * len(o.topic) + len(o.metadata.encode()) for o in offsets)
        case DeleteOffsets(partitions=partitions):
            yield from (_ITEM + 2 * len(place.topic) for place in partitions)
        case LeaveGroup(members=members):
            yield from (_ITEM + 2 * (len(m.member_id) + len(m.instance_id or "")) for m in members)
        case ConsumerGroupHeartbeat(topics=topics, client_assignors=assignors):
            yield from (_ITEM + len(name) for name in topics or ())
            yield from (_HEAD + len(each.name) + len(each.metadata) for each in assignors or ())
        case _:
            yield from _listed_beside(command)


def _listed_beside(command: Command) -> Iterator[int]:
    """Yield the same of commands that members seldom send, or never."""
    match command:
        case CreateTopics(topics=topics) | CreatePartitions(topics=topics):
            yield from (_ITEM + 2 * len(topic.name) for topic in topics)
        case DeleteTopics(names=names):
            yield from (_ITEM + 2 * len(name) for name in names)
        case ExpireOffsets():
            yield ALONE  # its list is known after the decision
        case InstallTarget(targets=targets) | InstallAssignment(targets=targets):
            yield from map(of_target, targets)
        case InstallRegexes(resolved=resolved):
            yield from (_ITEM + len(name) for each in resolved for name in each.topics)
        case _:
            return


def of_events(events: Iterable[Proposed]) -> int:
    """Return at most how many bytes those of the events take that no command's weight counts."""
    return sum([of_event(each.event) for each in events if type(each.event) in _MOVING])


_MOVING: Final = frozenset({TargetStored, MemberAdvanced, RegexResolved})
"""What a member says of itself is counted with its command."""
