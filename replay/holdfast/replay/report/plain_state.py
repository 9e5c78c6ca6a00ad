"""A state of the past as plain data: for `replay state` and `replay diff`, and for programs.

Shows what `holdfast group describe` shows, by the same queries, and the committed offsets. Knows
states, no logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.model.described import DescribedConsumerGroup
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.text import truncate
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.findings import log_time_of
from holdfast.storage.codec.event_codec import CodecError, decode_assignment

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
ABSENT: Final = None
"""In a difference: there is no such thing on this side."""


def plain_state(state: State, group: str | None = None) -> dict[str, Any]:
    """Return a state as plain data, with one group or all.

    Raises ValueError for a group that is not there.
    """
    if group is not None and group not in state.groups:
        raise ValueError(
            f"there is no group {truncate(group)!r} at index {state.applied_index}, log time "
            f"{log_time_of(state.log_time_ms)}: it was not there yet, or it was deleted before"
        )
    names = sorted(state.groups) if group is None else [group]
    return {
        "applied_index": state.applied_index,
        "log_time_ms": state.log_time_ms,
        "topics": {name: size.num_partitions for name, size in sorted(state.topics.items())},
        "groups": {name: {**_of_its_type(state, name), **_offsets(state, name)} for name in names},
    }


class Difference(NamedTuple):
    """What differs between two states: where, as a JSON pointer, and both values."""

    before: dict[str, Any]
    """`applied_index` and `log_time_ms` of the first."""
    after: dict[str, Any]
    differing: list[dict[str, Any]]


def compare_states(before: State, after: State, group: str | None = None) -> Difference:
    """Compare two states, or one group of them. Raises ValueError if it is in neither."""
    if group is not None and group not in before.groups and group not in after.groups:
        plain_state(after, group)  # which refuses it
    one, two = _within(before, group), _within(after, group)
    return Difference(_place_of(one), _place_of(two), list(differences(one, two)))


def _place_of(told: dict[str, Any]) -> dict[str, Any]:
    """Take out what differs between any two places."""
    return {name: told.pop(name) for name in ("applied_index", "log_time_ms")}


def _within(state: State, group: str | None) -> dict[str, Any]:
    """Return a state, or what it has of one group; it may lack that."""
    if group is None:
        return plain_state(state)
    found = group in state.groups
    told = plain_state(state, group) if found else plain_state(state._replace(groups=PMap()))
    del told["topics"]
    return told


def differences(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:  # noqa: ANN401 - plain data
    """Yield what differs between two pieces of plain data: where, and both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            below = f"{path}/{_escaped(key)}"
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), below)
    elif before != after:
        yield {"path": path, "from": before, "to": after}


def _escaped(key: str) -> str:
    """Write a name as a part of a JSON pointer (RFC 6901): it may hold any sign."""
    return key.replace("~", "~0").replace("/", "~1")


def _offsets(state: State, group_id: str) -> dict[str, Any]:
    offsets = state.groups[group_id].offsets
    told: dict[str, dict[str, Any]] = {}
    for place, offset in sorted(offsets.items()):
        told.setdefault(place.topic, {})[str(place.partition)] = {
            "offset": offset.offset,
            "leader_epoch": offset.leader_epoch,
            "metadata": offset.metadata,
            "committed_ms": offset.committed_ms,
        }
    return {"offsets": told}


def _of_its_type(state: State, group_id: str) -> dict[str, Any]:
    other = queries.describe_consumer_group(state, group_id)
    return _consumer_group(other) if other.error is None else _group(state, group_id)


def _consumer_group(group: DescribedConsumerGroup) -> dict[str, Any]:
    return {
        "state": group.state,
        "group_epoch": group.group_epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "member_epoch": member.member_epoch,
                "assignment": _by_topic(dict(member.assignment)),
                "target": _by_topic(dict(member.target)),
            }
            for member in sorted(group.members, key=attrgetter("member_id"))
        },
    }


def _by_topic(partitions: dict[str, Any]) -> dict[str, list[int]]:
    return {topic: list(numbers) for topic, numbers in partitions.items()}


def _group(state: State, group_id: str) -> dict[str, Any]:
    group = queries.describe_group(state, group_id)
    readable = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return {
        "state": group.state,
        "generation": group.generation,
        "leader": group.leader or None,
        "members": {
            member.member_id: {
                "instance_id": member.instance_id,
                "assignment": _assignment(member.assignment, readable=readable),
            }
            for member in sorted(group.members, key=attrgetter("member_id"))
        },
    }


def _assignment(assignment: bytes, *, readable: bool) -> str | dict[str, list[int]]:
    """Return partitions by topic if the group's type tells how to read the bytes, else hex."""
    if not readable:
        return assignment.hex()
    try:
        partitions = decode_assignment(assignment)
    except CodecError:
        return assignment.hex()
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics
