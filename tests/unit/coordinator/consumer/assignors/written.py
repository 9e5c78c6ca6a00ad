"""Groups and targets of the server assignors, written down as text.

A member is "id: topics" or "id=instance: topics"; its target, before and after, is "t-0 t-1 u-0".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec, Target
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Mapping


def assign(
    assignor: str,
    members: list[str],
    counts: dict[str, int],
    current: Mapping[str, str] | None = None,
    *,
    homogeneous: bool | None = None,
) -> dict[str, str]:
    """Run an assignor; `homogeneous` is read off the subscriptions if it is not given."""
    specs = dict(_member(text, current or {}) for text in members)
    equal = len({spec.topics for spec in specs.values()}) <= 1
    group = GroupSpec(specs, equal if homogeneous is None else homogeneous)
    return written(ASSIGNORS[assignor](group, counts))


def written(target: Target) -> dict[str, str]:
    return {
        member_id: " ".join(f"{topic}-{n}" for topic, partitions in topics for n in partitions)
        for member_id, topics in target.items()
    }


def _member(text: str, current: Mapping[str, str]) -> tuple[str, MemberSpec]:
    who, _, topics = text.partition(":")
    member_id, _, instance_id = who.partition("=")
    held = _target(current.get(member_id, ""))
    return member_id, MemberSpec(instance_id or None, None, frozenset(topics.split()), held)


def _target(text: str) -> tuple[TopicPartitions, ...]:
    by_topic: dict[str, list[int]] = {}
    for slot in text.split():
        topic, _, partition = slot.rpartition("-")
        by_topic.setdefault(topic, []).append(int(partition))
    return tuple(TopicPartitions(topic, tuple(ns)) for topic, ns in by_topic.items())
