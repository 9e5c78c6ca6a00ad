"""What is read of a state becomes messages. Adds names and sentences, decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from holdfast.coordinator import queries
from holdfast.coordinator.ids import TopicPartition
from holdfast.coordinator.rejections import InvalidConfig
from holdfast.coordinator.subscriptions import CONSUMER
from holdfast.server.translate import rebalances
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.group_pb2 import ConsumerProtocolAssignment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.coordinator.ids import GroupId, InstanceId, MemberId
    from holdfast.coordinator.state import State
    from holdfast.v1 import extras_pb2 as x
    from holdfast.v1.group_pb2 import ConsumerProtocolTopicPartitions

    SessionLeft = Callable[[GroupId, MemberId], int | None]
    TakenOver = Callable[[GroupId, InstanceId], int]


def described(
    state: State,
    group_id: str,
    rebalances_max: int,
    session_left_ms: SessionLeft,
    taken_over: TakenOver,
) -> a.DescribedGroup:
    """A group with its members (K1-K3) and its last rebalances."""
    group = queries.describe_group(state, group_id, rebalances_max)
    return a.DescribedGroup(
        error_code=code_of(group.error),
        error_message=None if group.error is None else sentence(group.error),
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_data,
        members=[
            _member(
                group,
                member,
                session_left_ms(group_id, member.member_id),
                taken_over(group_id, member.instance_id) if member.instance_id else 0,
            )
            for member in group.members
        ],
        holdfast=a.DescribedGroupExtras(
            generation_id=group.generation,
            leader=group.leader,
            version=group.version,
            group_seq=group.seq,
            rebalances=map(rebalances.described, group.rebalances),
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
    member: queries.DescribedMember,
    session_left_ms: int | None,
    takeovers: int,
) -> a.DescribedGroupMember:
    return a.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
        holdfast=a.DescribedGroupMemberExtras(
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            fencing_token=member.fencing_token,
            protocols=member.protocols,
            released=member.released,
            session_left_ms=session_left_ms,
            since_ms=member.since_ms,
            takeovers=takeovers,
            assigned_partitions=_assigned(group, member.assignment),
        ),
    )


def _assigned(
    group: queries.DescribedGroup, assignment: bytes
) -> Iterable[ConsumerProtocolTopicPartitions]:
    """What an assignment names, as it names it; nothing, if that cannot be told."""
    if group.protocol_type != CONSUMER:
        return ()
    try:
        return ConsumerProtocolAssignment.FromString(assignment).assigned_partitions
    except DecodeError:
        return ()


def listed(state: State, request: a.ListGroupsRequest) -> Iterator[a.ListedGroup]:
    """The groups that the filters let through, by id (K8)."""
    for group in queries.list_groups(state, request.states_filter, request.types_filter):
        yield a.ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.group_type,
        )


def topics(state: State, names: Iterable[str]) -> Iterator[a.ListedTopic]:
    """The topics of these names that exist; no names: all."""
    for topic in queries.list_topics(state, names):
        yield a.ListedTopic(name=topic.name, num_partitions=topic.num_partitions)


def fetched(state: State, request: o.OffsetFetchRequestGroup) -> o.OffsetFetchResponseGroup:
    """One group's offsets: those asked for in their order, or all (J16)."""
    asked = [
        TopicPartition(topic.name, index)
        for topic in request.topics
        for index in topic.partition_indexes
    ]
    made = o.OffsetFetchResponseGroup(group_id=request.group_id)
    if request.topics and not asked:
        made.topics.extend(o.OffsetFetchResponseTopic(name=t.name) for t in request.topics)
        return made
    at: dict[str, o.OffsetFetchResponseTopic] = {}
    for found in queries.fetch_offsets(state, request.group_id, tuple(asked)):
        name = found.partition.topic
        if name not in at:
            at[name] = made.topics.add(name=name)
        at[name].partitions.add(
            partition_index=found.partition.partition,
            committed_offset=found.offset,
            committed_leader_epoch=found.leader_epoch,
            metadata=found.metadata,
            holdfast=o.OffsetFetchResponsePartitionExtras(committed_ms=found.committed_ms),
        )
    return made


def settings(
    state: State, request: a.DescribeSettingsRequest, extras: x.ResponseExtras
) -> a.DescribeSettingsResponse:
    """Settings in force, with their meaning (S23)."""
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
