"""Which fields of a group of the heartbeat protocol SQL computes a second time, and why not others.

A field of these records that nobody has thought of is found, and so is a line here that is wrong:
each field is changed, and what the comparison tells must change, or not, as the line says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from holdfast.coordinator.kernel.apply import replay
from holdfast.coordinator.model.state import State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.replay.verify.group_fold import entries_of
from holdfast.storage.codec.state_image import changes, restore
from holdfast.v1.state_pb2 import StateRecord
from spark.consumer_logs import eventful_consumer_log
from spark.mixed_logs import mixed_log

BY_NODES = "a difference between nodes shows in the digest of the state; SQL does not say it again"
SHOWN = "shown to people, and decides nothing"
NO_COLUMN = f"no column beside the payload tells it: {BY_NODES}"
TIMES = f"how long an old holder may act is told by log time, which SQL does not reckon: {BY_NODES}"
OLD_SCHEMA = "read of groups of schema version 1 alone, which are classic"

COMPARED = {
    "GroupState.generation": "generation",
    "ConsumerGroupState.assignment_epoch": "assignment epoch",
    "ConsumerGroupState.client_assignor": "client assignor",
    "ConsumerGroupState.asked": "asked",
    "ConsumerGroupState.late": "late",
    "AskedState.member_id": "asked",
    "AskedState.epoch": "asked",
    "AskedState.assignor": "asked",
    "AskedState.overtaken": "asked",
    "ConsumerMemberState.member_id": "member",
    "ConsumerMemberState.instance_id": "instance",
    "ConsumerMemberState.topics": "subscription",
    "ConsumerMemberState.regex": "subscription",
    "ConsumerMemberState.epoch": "progress",
    "ConsumerMemberState.previous_epoch": "progress",
    "ConsumerMemberState.owned": "owned",
    "ConsumerMemberState.revoking": "owned",
    "ConsumerMemberState.waiting": "progress",
    "ConsumerMemberState.classic": "protocol",
    "HoldingState.topic": "owned",
    "HoldingState.partitions": "owned",
    "HoldingState.epochs": "owned",
    "HoldingState.granted": "owned",
    "MemberTarget.member_id": "target",
    "MemberTarget.partitions": "target",
    "MemberTarget.version": "target",
    "MemberTarget.metadata": "target",
    "ResolvedRegexState.regex": "regex",
    "ResolvedRegexState.topics": "regex",
}
"""By which kind of entry the comparison tells a field."""

EXCUSED = {
    "GroupState.group_id": "the name that all entries of the group are told under",
    "GroupState.group_type": "tells which rules are compared: those of the wrong type differ",
    "GroupState.consumer": "tells which rules are compared; its fields have lines of their own",
    "GroupState.classic": "the body of the other type, whose kinds of entries are in `sql.state`",
    "GroupState.state": "follows from the members and the target, which are compared",
    "GroupState.state_since_ms": BY_NODES,
    "GroupState.version": "the index of its last record: gaps, chains and hashes prove these",
    "GroupState.seq": "the number of its records, which the check for gaps counts",
    "GroupState.quarantined": "no event tells it: a group whose fold stops is reported alone",
    "GroupState.protocol_type": OLD_SCHEMA,
    "GroupState.protocol_name": OLD_SCHEMA,
    "GroupState.leader": OLD_SCHEMA,
    "GroupState.rejoined": OLD_SCHEMA,
    "GroupState.initial": OLD_SCHEMA,
    "GroupState.round_timeout_ms": OLD_SCHEMA,
    "GroupState.predecessors_until_ms": OLD_SCHEMA,
    "ConsumerGroupState.target_ms": BY_NODES,
    "ConsumerGroupState.digest": NO_COLUMN,
    "ConsumerGroupState.predecessors_until_ms": TIMES,
    "ConsumerGroupState.regexes_ms": BY_NODES,
    "ConsumerGroupState.regexes_index": NO_COLUMN,
    "ConsumerMemberState.client_id": SHOWN,
    "ConsumerMemberState.client_host": SHOWN,
    "ConsumerMemberState.rack_id": NO_COLUMN,
    "ConsumerMemberState.rebalance_timeout_ms": NO_COLUMN,
    "ConsumerMemberState.server_assignor": NO_COLUMN,
    "ConsumerMemberState.joined_seq": BY_NODES,
    "ConsumerMemberState.since_ms": SHOWN,
    "ConsumerMemberState.predecessor_ms": TIMES,
    "ConsumerMemberState.principal": BY_NODES,
    "ConsumerMemberState.replaced_requests": NO_COLUMN,
    "ConsumerMemberState.replaced_life": NO_COLUMN,
    "ConsumerMemberState.life": NO_COLUMN,
    "ConsumerMemberState.beat": NO_COLUMN,
    "ConsumerMemberState.session_timeout_ms": NO_COLUMN,
    "ConsumerMemberState.unhurried_until_ms": TIMES,
    "ConsumerMemberState.absence_ms": NO_COLUMN,
    "ConsumerMemberState.client_assignors": NO_COLUMN,
    "ClientAssignor.name": NO_COLUMN,
    "ClientAssignor.minimum_version": NO_COLUMN,
    "ClientAssignor.maximum_version": NO_COLUMN,
    "ClientAssignor.reason": NO_COLUMN,
    "ClientAssignor.version": NO_COLUMN,
    "ClientAssignor.metadata": NO_COLUMN,
    "ClassicProfile.session_timeout_ms": NO_COLUMN,
    "ClassicProfile.protocols": NO_COLUMN,
    "ClassicProfile.request_id": NO_COLUMN,
}
"""Fields that SQL does not compute, and why they need not, or cannot, be told by it."""

GROUP = StateRecord.DESCRIPTOR.fields_by_name
RECORDS = ("group", "consumer_member", "consumer_target", "consumer_regex")
HEAD = {"GroupState.group_id", "GroupState.group_type", "GroupState.consumer", "GroupState.classic"}
"""Without these a record is of no group of the heartbeat protocol."""
LINES = {*COMPARED, *EXCUSED}
ELSEWHERE = {"ClassicGroupState", "TopicPartitions", "Protocol"}
"""Of the other type; and values that are compared, or excused, as one."""


def _messages(descriptor: Any) -> Iterator[Any]:  # noqa: ANN401 - protobuf has no types for it
    yield descriptor
    for field in descriptor.fields:
        if field.message_type and field.message_type.name not in ELSEWHERE:
            yield from _messages(field.message_type)


def _fields() -> set[str]:
    every = [each for name in RECORDS for each in _messages(GROUP[name].message_type)]
    return {f"{each.name}.{field.name}" for each in every for field in each.fields}


def test_every_field_is_compared_or_excused_with_a_reason() -> None:
    assert _fields() == LINES
    assert not set(COMPARED) & set(EXCUSED)
    assert all(EXCUSED.values())


# --- that the table is true ---


def _states() -> Iterator[State]:
    """States in which each field is set somewhere."""
    records = eventful_consumer_log().records
    yield from (replay(State(), records[:count]) for count in (30, 72, len(records)))
    yield mixed_log().state


def _records(state: State) -> list[list[bytes]]:
    """The records of each group of the heartbeat protocol."""
    groups = [each for each in state.groups.values() if each.group_type == "consumer"]
    return [
        [
            change.content
            for change in changes(State(), State(groups=PMap([(group.group_id, group)])))
            if change.content
        ]
        for group in groups
    ]


def _parts(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                yield from _parts(each)


def _other(value: Any) -> Any:  # noqa: ANN401 - of whatever kind a field is
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value + ("x" if isinstance(value, str) else b"x")


def _change(message: Message, field: Any) -> bool:  # noqa: ANN401 - protobuf has two types for it
    """Give a field of a message another value; False: it has none that could be changed."""
    value = getattr(message, field.name)
    if field.message_type is not None:
        there = len(value) if field.is_repeated else message.HasField(field.name)
        message.ClearField(field.name)
        return bool(there)
    if not field.is_repeated:
        setattr(message, field.name, _other(value))
        return True
    if value:
        value[-1] = _other(value[-1])
    else:
        value.append("x" if field.cpp_type == FieldDescriptor.CPPTYPE_STRING else 1)
    return True


def _kinds(contents: Iterable[bytes]) -> set[tuple[str, ...]]:
    groups = restore(contents).groups.values()
    return {each[2:5] for group in groups for each in entries_of(group)}


@pytest.fixture(scope="module")
def told() -> dict[str, set[str]]:
    """By which kinds of entries a change of each field is told; no line: it could not be made."""
    found: dict[str, set[str]] = {}
    for contents in [each for state in _states() for each in _records(state)]:
        for nth, content in enumerate(contents):
            for field, changed in _changed(content):
                mine = [*contents[:nth], changed, *contents[nth + 1 :]]
                differing = _kinds(contents) ^ _kinds(mine)
                found.setdefault(field, set()).update(kind for kind, *_ in differing)
    return found


def _changed(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield a record with each of its fields changed, one at a time."""
    count = len(list(_parts(StateRecord.FromString(content))))
    for nth in range(count):
        fields = list(_parts(StateRecord.FromString(content)))[nth].DESCRIPTOR.fields
        for field in fields:
            record = StateRecord.FromString(content)
            part = list(_parts(record))[nth]
            name = f"{part.DESCRIPTOR.name}.{field.name}"
            if name in LINES - HEAD and _change(part, field):
                yield name, record.SerializeToString()


@pytest.mark.parametrize("field", COMPARED)
def test_a_field_that_is_compared_changes_what_is_told(
    field: str, told: dict[str, set[str]]
) -> None:
    assert COMPARED[field] in told[field]


@pytest.mark.parametrize("field", sorted(set(EXCUSED) - HEAD))
def test_a_field_that_is_excused_changes_nothing_that_is_told(
    field: str, told: dict[str, set[str]]
) -> None:
    """Else it is compared, and the table says too little."""
    assert told.get(field, set()) == set()
