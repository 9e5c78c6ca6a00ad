"""Tell a group of the heartbeat protocol as rows of a log: a part of `checkpoint_rows`.

A member is told as having joined before everything, and as having made its steps since: one for
each grant that it still has, and two that lead to its epoch. Runs in Spark's workers, and imports
no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from holdfast.coordinator.consumer.state import ConsumerGroup, Holding, Member
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.ids import Position, TopicPartitions

Told: TypeAlias = tuple[Position, dict[str, Any]]
"""Where a row lies, and the columns that its event has."""

FIRST: Final = Position(0, 0)
_GRANTED: Final = -3
"""The ordinals of these rows, before all records of an entry: grants, then two steps."""
_BEFORE: Final = -2
_NOW: Final = -1


def consumer_rows(group: ConsumerGroup, last: Position) -> Iterator[Told]:
    """Yield what led to a group, without its offsets; no row lies behind `last`."""
    body, now = group.body, Position(last.index, _NOW)
    yield FIRST, {"type": "GroupCreated", "group_type": group.group_type}
    yield now, {"type": "EpochRaised", "epoch": group.generation}
    for member in body.members.values():
        yield FIRST, _joined(member)
        yield from _steps(member, last)
    targets = [_target(each) for each in body.targets.values()]
    yield now, {"type": "TargetStored", "epoch": body.assignment_epoch, "targets": targets}
    for found in body.regexes.values():
        told = {"regex": found.regex, "topics": list(found.topics)}
        yield now, {"type": "RegexResolved", **told}


def _joined(member: Member) -> dict[str, Any]:
    profile = member.profile
    return {
        "type": "MemberSubscribed",
        "command": None if member.classic is None else "JoinGroup",
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "joined": True,
        "topics": list(profile.topics),
        "regex": profile.regex,
    }


def _target(target: MemberTarget) -> dict[str, Any]:
    return {"member_id": target.member_id, "partitions": _partitions(target.partitions)}


def _partitions(several: Iterable[TopicPartitions | Holding]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in several]


def _steps(member: Member, last: Position) -> Iterator[Told]:
    for topic, partitions, epochs, granted in (*member.owned, *member.revoking):
        for partition, epoch, index in zip(partitions, epochs, granted, strict=True):
            one = [{"topic": topic, "partitions": [partition]}]
            yield Position(index, _GRANTED), _step(member, epoch, granted=one)
    yield Position(last.index, _BEFORE), _step(member, member.previous_epoch)
    yield Position(last.index, _NOW), _last_step(member)


def _last_step(member: Member) -> dict[str, Any]:
    if member.released:
        return {"type": "InstanceReleased", "member_id": member.member_id}
    asked = _partitions(member.revoking)
    return _step(member, member.epoch, asked_back=asked) | {"waiting": member.waiting}


def _step(member: Member, epoch: int, **lists: list[dict[str, Any]]) -> dict[str, Any]:
    step = {"type": "MemberAdvanced", "member_id": member.member_id, "epoch": epoch}
    return {**step, "asked_back": [], "freed": [], "granted": [], **lists}
