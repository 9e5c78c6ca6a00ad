"""Which fields of the state SQL computes a second time, and why not others.

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
from holdfast.replay.verify import cluster_entries
from holdfast.replay.verify.group_fold import entries_of
from holdfast.storage.codec.state_image import changes, restore
from holdfast.v1.state_pb2 import StateRecord
from spark.cluster_logs import cluster_log
from spark.consumer_logs import assigning_log, eventful_consumer_log
from spark.event_logs import eventful_log
from spark.mixed_logs import mixed_log

OLD_SCHEMA = "read of groups of schema version 1 alone; it stands in the body of newer ones"
NAMES = "tells which rules are compared; its fields have lines of their own"

COMPARED = {
    "ClusterState.cluster_id": "cluster",
    "ClusterState.log_time_ms": "cluster",
    "ClusterState.cluster_version": "cluster",
    "ClusterState.cluster_seq": "cluster",
    "ClusterState.recovery_number": "cluster",
    "ClusterState.sealed": "cluster",
    "ClusterState.requests_next": "cluster",
    "ClusterState.requests_floor_ms": "cluster",
    "ClusterState.raised_to": "cluster",
    "ClusterState.access_mode": "cluster",
    "ClusterState.recovered_at": "cluster",
    "ClusterState.history_cut": "cluster",
    "ClusterState.backed_up": "cluster",
    "TopicSize.name": "topic",
    "TopicSize.num_partitions": "topic",
    "TopicSize.created_index": "topic",
    "SettingsState.settings": "setting",
    "RequestState.digest": "request",
    "RequestState.answer": "request",
    "RequestState.log_time_ms": "request",
    "RequestState.number": "request",
    "RequestState.position": "request",
    "Acl.principal": "acl",
    "Acl.role": "acl",
    "Acl.kind": "acl",
    "Acl.name": "acl",
    "Revocation.fingerprint": "revocation",
    "Revocation.principal": "revocation",
    "Revocation.expires_ms": "revocation",
    "Revocation.reason": "revocation",
    "Revocation.revoked_ms": "revocation",
    "OffsetState.offset": "offset",
    "OffsetState.leader_epoch": "commit",
    "OffsetState.metadata": "commit",
    "OffsetState.committed_ms": "commit",
    "GroupState.state": "head",
    "GroupState.generation": "generation",
    "GroupState.version": "version",
    "GroupState.seq": "version",
    "GroupState.state_since_ms": "since",
    "ClassicGroupState.protocol_type": "protocol type",
    "ClassicGroupState.protocol_name": "chosen",
    "ClassicGroupState.leader": "leader",
    "ClassicGroupState.rejoined": "rejoined",
    "ClassicGroupState.initial": "join phase",
    "ClassicGroupState.round_timeout_ms": "join phase",
    "ClassicGroupState.predecessors_until_ms": "predecessors",
    "MemberState.member_id": "member",
    "MemberState.instance_id": "instance",
    "MemberState.client_id": "client",
    "MemberState.client_host": "client",
    "MemberState.session_timeout_ms": "timeouts",
    "MemberState.rebalance_timeout_ms": "timeouts",
    "MemberState.protocols": "protocols",
    "MemberState.request_id": "request id",
    "MemberState.joined_seq": "joined",
    "MemberState.since_ms": "joined",
    "MemberState.assignment": "grant",
    "MemberState.granted_index": "grant",
    "MemberState.predecessor_ms": "predecessor",
    "MemberState.released": "released",
    "MemberState.abandoned": "abandoned",
    "MemberState.replaced_requests": "replaced",
    "MemberState.principal": "principal",
    "MemberState.replaced_life": "replaced",
    "ConsumerGroupState.assignment_epoch": "assignment epoch",
    "ConsumerGroupState.target_ms": "target time",
    "ConsumerGroupState.digest": "digest",
    "ConsumerGroupState.predecessors_until_ms": "predecessors",
    "ConsumerGroupState.regexes_ms": "expressions",
    "ConsumerGroupState.regexes_index": "expressions",
    "ConsumerGroupState.client_assignor": "client assignor",
    "ConsumerGroupState.asked": "asked",
    "ConsumerGroupState.late": "late",
    "AskedState.member_id": "asked",
    "AskedState.epoch": "asked",
    "AskedState.assignor": "asked",
    "AskedState.overtaken": "asked",
    "ConsumerMemberState.member_id": "member",
    "ConsumerMemberState.instance_id": "instance",
    "ConsumerMemberState.client_id": "client",
    "ConsumerMemberState.client_host": "client",
    "ConsumerMemberState.rack_id": "place",
    "ConsumerMemberState.rebalance_timeout_ms": "timeouts",
    "ConsumerMemberState.topics": "subscription",
    "ConsumerMemberState.regex": "subscription",
    "ConsumerMemberState.server_assignor": "place",
    "ConsumerMemberState.joined_seq": "joined",
    "ConsumerMemberState.since_ms": "joined",
    "ConsumerMemberState.epoch": "progress",
    "ConsumerMemberState.previous_epoch": "progress",
    "ConsumerMemberState.owned": "owned",
    "ConsumerMemberState.revoking": "owned",
    "ConsumerMemberState.waiting": "progress",
    "ConsumerMemberState.predecessor_ms": "predecessor",
    "ConsumerMemberState.principal": "principal",
    "ConsumerMemberState.classic": "protocol",
    "ConsumerMemberState.replaced_requests": "replaced",
    "ConsumerMemberState.life": "beat",
    "ConsumerMemberState.beat": "beat",
    "ConsumerMemberState.session_timeout_ms": "session",
    "ConsumerMemberState.unhurried_until_ms": "session",
    "ConsumerMemberState.absence_ms": "session",
    "ConsumerMemberState.client_assignors": "client assignors",
    "ConsumerMemberState.replaced_life": "replaced",
    "ClassicProfile.session_timeout_ms": "timeouts",
    "ClassicProfile.protocols": "protocols",
    "ClassicProfile.request_id": "request id",
    "ClientAssignor.name": "client assignors",
    "ClientAssignor.minimum_version": "client assignors",
    "ClientAssignor.maximum_version": "client assignors",
    "ClientAssignor.reason": "client assignors",
    "ClientAssignor.version": "client assignors",
    "ClientAssignor.metadata": "client assignors",
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
    "ClusterState.applied_index": "entries without a record count, of which only a node tells",
    "GroupState.group_id": "the name that all entries of the group are told under",
    "GroupState.group_type": NAMES,
    "GroupState.consumer": NAMES,
    "GroupState.classic": NAMES,
    "GroupState.quarantined": "no event tells it: a group whose fold stops is reported alone",
    "GroupState.protocol_type": OLD_SCHEMA,
    "GroupState.protocol_name": OLD_SCHEMA,
    "GroupState.leader": OLD_SCHEMA,
    "GroupState.rejoined": OLD_SCHEMA,
    "GroupState.initial": OLD_SCHEMA,
    "GroupState.round_timeout_ms": OLD_SCHEMA,
    "GroupState.predecessors_until_ms": OLD_SCHEMA,
}
"""Fields that SQL does not compute, and why they need not, or cannot, be told by it."""

BODIES = StateRecord.DESCRIPTOR.oneofs_by_name["body"].fields
HEAD = {"GroupState.group_id", "GroupState.group_type", "GroupState.consumer", "GroupState.classic"}
"""Without these a record is of no group."""
LINES = {*COMPARED, *EXCUSED}
ELSEWHERE = {"TopicPartitions", "Protocol", "Position", "HistoryCut", "SettingChange"}
"""Values that are compared as one."""
PROJECTION = "rebalance"
"""What people are told of rebalances, which is no part of the state."""


def _messages(descriptor: Any) -> Iterator[Any]:  # noqa: ANN401 - protobuf has no types for it
    yield descriptor
    for field in descriptor.fields:
        if field.message_type and field.message_type.name not in ELSEWHERE:
            yield from _messages(field.message_type)


def _fields() -> set[str]:
    bodies = [body for body in BODIES if body.name != PROJECTION]
    every = [each for body in bodies for each in _messages(body.message_type)]
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
    yield from (log().state for log in (mixed_log, eventful_log, cluster_log))
    told = assigning_log().records
    yield replay(State(), told[:-1])


def _records(state: State) -> list[list[bytes]]:
    """The records of each group, and those that belong to none."""
    alone = [State(groups=PMap([(each.group_id, each)])) for each in state.groups.values()]
    parts = [*alone, state._replace(groups=PMap())]
    return [
        [change.content for change in changes(State(), part) if change.content] for part in parts
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
    state = restore(contents)
    groups = [each for group in state.groups.values() for each in entries_of(group)]
    return {tuple(each) for each in (*groups, *cluster_entries.entries_of(state))}


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


def _keep_key(record: StateRecord) -> None:
    """Give a record whose key is its content the key of what it holds now."""
    if record.HasField("acl"):
        acl = record.acl
        record.key[:] = [acl.principal, acl.role, acl.kind, acl.name]
    elif record.HasField("revocation"):
        record.key[:] = [record.revocation.fingerprint]


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
                _keep_key(record)
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
