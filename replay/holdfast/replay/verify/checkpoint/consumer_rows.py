"""Tell a group of the heartbeat protocol as rows of a log: a part of `checkpoint.rows`.

A member is told as having joined before everything, and as having made its steps since: one for
each grant that it still has, and two that lead to its epoch. What it was asked to give up, it was
asked for right after it got that, so that no later grant renews it. Runs in Spark's workers, and
imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from holdfast.coordinator.consumer.state import (
    NEVER,
    Asked,
    ConsumerBody,
    ConsumerGroup,
    Holding,
    Member,
)
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.ids import Position, TopicPartitions
from holdfast.storage.segments.columns_of_state import said, said_classic

Told: TypeAlias = tuple[Position, dict[str, Any]]
"""Where a row lies, and the columns that its event has."""

FIRST: Final = Position(0, 0)
_GRANTED: Final = -4
"""The ordinals of these rows, before all records of an entry: grants, what is asked back of these,
then two steps."""
_ASKED_BACK: Final = -3
_BEFORE: Final = -2
_NOW: Final = -1
_LATE: Final = -(1 << 19)
"""And before these, one by one, who was late, and then the target."""


def consumer_rows(group: ConsumerGroup, last: Position) -> Iterator[Told]:
    """Yield what led to a group, without its offsets; no row lies behind `last`."""
    body, now = group.body, Position(last.index, _NOW)
    raised = {"type": "EpochRaised", "epoch": group.generation}
    yield now, {**raised, "topics_digest": body.digest}
    for member in body.members.values():
        yield FIRST, _joined(member)
        yield from _steps(member, last)
    yield Position(last.index, _LATE + len(body.late)), _stored(body)
    looked = {"number": body.regexes_index, "log_time_ms": body.regexes_ms}
    for found in body.regexes.values():
        told = {"regex": found.regex, "topics": list(found.topics)}
        yield now, {"type": "RegexResolved", **told, **looked}
    if not body.regexes and body.regexes_ms != NEVER:
        yield Position(last.index, _BEFORE), {"type": "RegexResolved", **looked}  # of none that is
    yield from _choices(body, last, looked)


def _stored(body: ConsumerBody) -> dict[str, Any]:
    """Tell of the target; whose assignor made it is not known, but that is none of the late."""
    targets = [_target(each) for each in body.targets.values()]
    told = {"type": "TargetStored", "epoch": body.assignment_epoch, "targets": targets}
    told["log_time_ms"] = body.target_ms
    by = "".join(("anybody", *body.late)) if body.client_assignor else ""
    return {**told, "assignor": body.client_assignor, "installed_by": by}


def _choices(body: ConsumerBody, last: Position, looked: dict[str, Any]) -> Iterator[Told]:
    """Tell who was late, in order, and who is to compute, which may be overtaken (KIP-848)."""
    for nth, member_id in enumerate(body.late):
        yield Position(last.index, _LATE + nth), _requested(Asked("", 0, ""), member_id)
    if body.asked is None:
        return
    yield Position(last.index, _NOW - body.asked.overtaken), _requested(body.asked, "")
    if body.asked.overtaken:
        yield Position(last.index, _NOW), {"type": "RegexResolved", **looked}  # of none


def _requested(asked: Asked, late: str) -> dict[str, Any]:
    names = {"member_id": asked.member_id, "assignor": asked.assignor, "late": late}
    return {"type": "AssignmentRequested", "epoch": asked.epoch, **names}


def _joined(member: Member) -> dict[str, Any]:
    profile = member.profile
    return {
        "type": "MemberSubscribed",
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "joined": True,
        "topics": list(profile.topics),
        "regex": profile.regex,
        "classic": member.classic is not None,
        "profile": said(profile),
        "classic_profile": said_classic(member.classic),
        "life": member.life,
        "beat": member.beat,
        "session_timeout_ms": member.session_timeout_ms,
        "number": member.joined_seq,
        "log_time_ms": member.since_ms,
        "principal": member.principal,
    }


def _target(target: MemberTarget) -> dict[str, Any]:
    partitions, said = _partitions(target.partitions), target.metadata
    names = {"member_id": target.member_id, "partitions": partitions}
    return {**names, "version": target.version, "metadata": said}


def _partitions(several: Iterable[TopicPartitions | Holding]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partitions": list(each.partitions)} for each in several]


def _steps(member: Member, last: Position) -> Iterator[Told]:
    for held in (member.owned, member.revoking):
        for topic, partitions, epochs, granted in held:
            for partition, epoch, index in zip(partitions, epochs, granted, strict=True):
                one = [{"topic": topic, "partitions": [partition]}]
                yield Position(index, _GRANTED), _step(member, epoch, granted=one)
                if held is member.revoking:
                    yield Position(index, _ASKED_BACK), _step(member, epoch, asked_back=one)
    yield Position(last.index, _BEFORE), _step(member, member.previous_epoch)
    yield Position(last.index, _NOW), _last_step(member)


def _last_step(member: Member) -> dict[str, Any]:
    if member.released:
        names = {"type": "InstanceReleased", "member_id": member.member_id}
        return {**names, "absence_ms": member.absence_ms}
    return _step(member, member.epoch) | {"waiting": member.waiting}


def _step(member: Member, epoch: int, **lists: list[dict[str, Any]]) -> dict[str, Any]:
    step = {"type": "MemberAdvanced", "member_id": member.member_id, "epoch": epoch}
    return {**step, "asked_back": [], "freed": [], "granted": [], **lists}
