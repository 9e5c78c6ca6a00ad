"""Reads of a state become messages. Adds names and sentences, decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.coordinator.groups.group_type import Fetcher
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import GroupAuthorizationFailed, InvalidConfig
from holdfast.coordinator.model.subscriptions import CONSUMER
from holdfast.coordinator.model.text import readable
from holdfast.coordinator.projections.history import newest
from holdfast.server.guard.answer_size import Encoded
from holdfast.server.guard.item_bounds import Bounds
from holdfast.server.rpc.errors import CallFailed
from holdfast.server.rpc.slices import ordered
from holdfast.server.translate import rebalances
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.group_pb2 import ConsumerProtocolAssignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.coordinator.model.described import DescribedMember
    from holdfast.coordinator.model.ids import GroupId, InstanceId, MemberId
    from holdfast.coordinator.model.state import Group, State
    from holdfast.coordinator.projections.history import Histories, History
    from holdfast.server.guard.answer_size import Room
    from holdfast.server.rpc.slices import Slices
    from holdfast.v1 import extras_pb2 as x
    from holdfast.v1.group_pb2 import ConsumerProtocolTopicPartitions

    SessionLeft = Callable[[GroupId, MemberId], int | None]
    TakenOver = Callable[[GroupId, InstanceId], int]

_ASSIGNMENT: Final = Bounds(ConsumerProtocolAssignment.DESCRIPTOR)


async def described(state: State, group_id: str, asked: Asked, room: Room, slices: Slices) -> bytes:
    """Encode a group (K-K1 to K-K3), its members and last rebalances. Raises CallFailed."""
    await slices.done(1 + asked.rebalances_max)
    found = queries.describe_head(state, group_id)
    told = newest(asked.histories, group_id, asked.rebalances_max)
    made = Encoded(_head(found, told), room)
    group = state.groups.get(group_id)
    kind = None if group is None else type_of(group)
    if group is not None and kind is not None and (show := kind.describe_member):
        members = await ordered(kind.members(group).values(), kind.seniority)
        async for each in slices.of(members):
            member = show(state, group, each)
            left_ms = asked.session_left_ms(group_id, member.member_id)
            instance = member.instance_id
            takeovers = asked.taken_over(group_id, instance) if instance else 0
            shown = _member(found, member, left_ms, takeovers)
            made.add(a.DescribedGroup.MEMBERS_FIELD_NUMBER, shown)
    return made.encoded()


def forbidden(group_id: str, why: str) -> a.DescribedGroup:
    """Make the answer about a group that the caller may not see, whether it exists or not."""
    code = code_of(GroupAuthorizationFailed(group_id))
    return a.DescribedGroup(error_code=code, error_message=readable(why), group_id=group_id)


class Asked(NamedTuple):
    """What is asked about groups, and functions for what the state does not hold."""

    rebalances_max: int
    histories: Histories  # of rebalances, folded beside the state
    session_left_ms: SessionLeft  # until a member's session ends; None if unknown
    taken_over: TakenOver  # how often an instance id was taken over of late


def _head(group: queries.DescribedGroup, told: History) -> a.DescribedGroup:
    return a.DescribedGroup(
        error_code=code_of(group.error),
        error_message=None if group.error is None else sentence(group.error),
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        holdfast=a.DescribedGroupExtras(
            generation_id=group.generation,
            leader=group.leader,
            version=group.version,
            group_seq=group.seq,
            rebalances=map(rebalances.described, told),
            message=_advice(group),
            state_since_ms=group.state_since_ms,
        ),
    )


def _advice(group: queries.DescribedGroup) -> str:
    if not group.quarantined:
        return ""
    return (
        f"It is quarantined, because {group.quarantined}. Nothing is decided for it any more; "
        "delete it to begin anew, and report this as a defect"
    )


def _member(
    group: queries.DescribedGroup,
    member: DescribedMember,
    session_left_ms: int | None,
    takeovers: int,
) -> a.DescribedGroupMember:
    profile = member.profile
    return a.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
        holdfast=a.DescribedGroupMemberExtras(
            session_timeout_ms=profile.session_timeout_ms,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            fencing_token=member.fencing_token,
            protocols=[protocol.name for protocol in profile.protocols],
            released=member.released,
            session_left_ms=session_left_ms,
            since_ms=member.since_ms,
            takeovers=takeovers,
            assigned_partitions=_assigned(group, member.assignment),
            principal=member.principal,
        ),
    )


def _assigned(
    group: queries.DescribedGroup, assignment: bytes
) -> Iterable[ConsumerProtocolTopicPartitions]:
    """Return the partitions that an assignment names, in its order; none if it cannot be read."""
    if group.protocol_type != CONSUMER:
        return ()
    try:
        _ASSIGNMENT.check_bytes(assignment)
        return ConsumerProtocolAssignment.FromString(assignment).assigned_partitions
    except (DecodeError, CallFailed):
        return ()


def listed(group: Group[Any]) -> a.ListedGroup:
    """Make a group's line of ListGroups (K-K8)."""
    found = queries.list_group(group)
    return a.ListedGroup(
        group_id=found.group_id,
        protocol_type=found.protocol_type,
        group_state=found.state,
        group_type=found.group_type,
    )


async def fetched(
    state: State, request: o.OffsetFetchRequestGroup, room: Room, slices: Slices
) -> Encoded:
    """Encode a group's offsets: those asked for in order, or all (K-J16). Raises CallFailed.

    Nothing but the error, if the group's type does not let this caller read them.
    """
    refusal = queries.fetch_refusal(state, request.group_id, _fetcher(request))
    if refusal is not None:
        code = code_of(refusal)
        return Encoded(o.OffsetFetchResponseGroup(group_id=request.group_id, error_code=code), room)
    group = state.groups.get(request.group_id)
    by_topic: dict[str, Encoded] = {}
    if not request.topics:
        places: Iterable[TopicPartition] = await ordered(queries.committed(state, group))
    else:
        places = (TopicPartition(t.name, at) for t in request.topics for at in t.partition_indexes)
    async for place in slices.of(places):
        if place.topic not in by_topic:
            by_topic[place.topic] = _topic(place.topic, room)
        offset = _offset(queries.fetch_offset(state, group, place))
        by_topic[place.topic].add(o.OffsetFetchResponseTopic.PARTITIONS_FIELD_NUMBER, offset)
    if request.topics and not by_topic:
        by_topic = {topic.name: _topic(topic.name, room) for topic in request.topics}
    made = Encoded(o.OffsetFetchResponseGroup(group_id=request.group_id), room)
    for topic in by_topic.values():
        made.put(o.OffsetFetchResponseGroup.TOPICS_FIELD_NUMBER, topic.encoded())
    return made


def _fetcher(request: o.OffsetFetchRequestGroup) -> Fetcher:
    return Fetcher(
        request.member_id if request.HasField("member_id") else None,
        request.member_epoch if request.HasField("member_epoch") else -1,
    )


def _topic(name: str, room: Room) -> Encoded:
    return Encoded(o.OffsetFetchResponseTopic(name=name), room)


def _offset(found: queries.FetchedOffset) -> o.OffsetFetchResponsePartition:
    return o.OffsetFetchResponsePartition(
        partition_index=found.partition.partition,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        holdfast=o.OffsetFetchResponsePartitionExtras(committed_ms=found.committed_ms),
    )


def settings(
    state: State, request: a.DescribeSettingsRequest, extras: x.ResponseExtras
) -> a.DescribeSettingsResponse:
    """Describe the settings in force, with their meaning (S23)."""
    found = queries.describe_settings(state, request.group_id, request.names)
    if isinstance(found, InvalidConfig):
        extras.message = sentence(found)
        return a.DescribeSettingsResponse(error_code=code_of(found), holdfast=extras)
    lines = (
        a.DescribedSetting(
            name=s.setting.name,
            value=str(s.value),
            default_value=str(s.setting.default),
            unit=s.setting.unit,
            documentation=s.setting.documentation,
            kafka_name=s.setting.kafka_name,
            source=s.source,
        )
        for s in found
    )
    return a.DescribeSettingsResponse(settings=lines, holdfast=extras)
