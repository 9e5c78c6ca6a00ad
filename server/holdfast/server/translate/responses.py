"""Replies of the core become responses to members. Adds sentences for people, decides nothing.

A rejection without an error code is raised as CallFailed or NotCoordinator (`refusals.code_of`).
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model import rejections as r
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.replies import Grant
    from holdfast.runtime.groups.heartbeat_cache import CachedAnswer
    from holdfast.server.translate.refusals import Code


def extras(error: Rejection | None, grant: Grant | None = None) -> x.ResponseExtras:
    """Make Holdfast's part of a response: the grant, or the sentence and the holder."""
    made = x.ResponseExtras()
    if grant is not None and grant.session_timeout_ms:
        made.session_timeout_ms = grant.session_timeout_ms
        made.rebalance_timeout_ms = grant.rebalance_timeout_ms
        if grant.fencing_token:
            made.fencing_token = grant.fencing_token
            made.predecessor_ms = grant.predecessor_ms
    if error is not None:
        made.message = sentence(error)
    if isinstance(error, r.FencedInstanceId | r.UnreleasedInstanceId):
        made.holder = error.holder
        made.holder_since_ms = error.holder_since_ms
    if isinstance(error, r.FencedInstanceId) and error.holder_life:
        made.holder_life = error.holder_life
    if isinstance(error, r.UnreleasedInstanceId):
        made.wait_for_session = error.is_waited_for
    return made


def join_group(reply: replies.JoinReply) -> g.JoinGroupResponse:
    """Make the response of JoinGroup."""
    return g.JoinGroupResponse(
        error_code=code_of(reply.error),
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            g.JoinGroupResponseMember(
                member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata
            )
            for m in reply.members
        ],
        holdfast=extras(reply.error, reply.grant),
    )


def sync_group(reply: replies.SyncReply) -> g.SyncGroupResponse:
    """Make the response of SyncGroup."""
    return g.SyncGroupResponse(
        error_code=code_of(reply.error),
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
        holdfast=extras(reply.error, reply.grant),
    )


def heartbeat(reply: replies.HeartbeatReply) -> g.HeartbeatResponse:
    """Make the response of Heartbeat."""
    return g.HeartbeatResponse(
        error_code=code_of(reply.error), holdfast=extras(reply.error, reply.grant)
    )


def cached(answer: CachedAnswer) -> g.HeartbeatResponse:
    """Return the response of a cached answer; it is made once and sent many times."""
    if not isinstance(answer.response, g.HeartbeatResponse):
        answer.response = heartbeat(cast("replies.HeartbeatReply", answer.reply))
    return answer.response


def cached_beat(answer: CachedAnswer) -> g.ConsumerGroupHeartbeatResponse:
    """Return the same of the heartbeat protocol."""
    if not isinstance(answer.response, g.ConsumerGroupHeartbeatResponse):
        answer.response = consumer_heartbeat(cast("replies.ConsumerHeartbeatReply", answer.reply))
    return answer.response


def consumer_heartbeat(reply: replies.ConsumerHeartbeatReply) -> g.ConsumerGroupHeartbeatResponse:
    """Make the response of ConsumerGroupHeartbeat."""
    response = g.ConsumerGroupHeartbeatResponse(
        error_code=code_of(reply.error),
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        holdfast=extras(reply.error, reply.grant),
    )
    if reply.error is None:
        response.member_id = reply.member_id
    if reply.assignment is not None:
        tokens = partition_tokens(reply.assignment)
        response.assignment.CopyFrom(_assignment(tokens))
        response.holdfast.predecessor_ms = reply.grant.predecessor_ms
        response.holdfast.partition_tokens.extend(tokens)
    if reply.should_compute:
        response.holdfast.should_compute = True
    if reply.assigned is not None:
        said = x.AssignedMetadata(**reply.assigned._asdict())
        response.holdfast.assigned_metadata.CopyFrom(said)
    return response


def partition_tokens(owned: Iterable[replies.OwnedPartition]) -> list[x.PartitionTokens]:
    """Make the tokens of partitions, which are sorted: one message a topic."""
    made = []
    for topic, group in groupby(owned, key=attrgetter("topic")):
        places = tuple(group)
        partitions = [place.partition for place in places]
        tokens = [place.fencing_token for place in places]
        made.append(x.PartitionTokens(topic=topic, partitions=partitions, fencing_tokens=tokens))
    return made


def _assignment(tokens: Iterable[x.PartitionTokens]) -> g.ConsumerGroupAssignment:
    """Return the partitions that have these tokens."""
    topics = (
        g.ConsumerGroupTopicPartitions(topic=each.topic, partitions=each.partitions)
        for each in tokens
    )
    return g.ConsumerGroupAssignment(topic_partitions=topics)


def leave_group(
    reply: replies.LeaveReply, members: Iterable[g.LeaveGroupResponseMember]
) -> g.LeaveGroupResponse:
    """Make the response of LeaveGroup, members in the order of the request (K-G16)."""
    return g.LeaveGroupResponse(
        error_code=code_of(reply.error), members=members, holdfast=extras(reply.error)
    )


def left(result: replies.MemberResult) -> g.LeaveGroupResponseMember:
    """Make the result for one member of LeaveGroup."""
    return g.LeaveGroupResponseMember(
        member_id=result.member_id,
        group_instance_id=result.instance_id,
        error_code=code_of(result.error),
    )


def commit_offsets(
    reply: replies.OffsetsReply, request: o.OffsetCommitRequest, error: Rejection | None
) -> o.OffsetCommitResponse:
    """Make the response of OffsetCommit; it has no top-level error, so partitions do (K-J9).

    `error`: the reply's `first_error`.
    It is filled in place: a message made apart and passed to another is copied, and this is the
    response that is made most often.
    """
    if reply.error is not None:
        return refused_commit(request, code_of(reply.error), extras(error))
    response = o.OffsetCommitResponse()
    for name, results in _by_topic(reply.partitions):
        partitions = response.topics.add(name=name).partitions
        for result in results:
            partitions.add(
                partition_index=result.partition.partition, error_code=code_of(result.error)
            )
    if error is None:
        response.holdfast.SetInParent()
    else:
        response.holdfast.CopyFrom(extras(error))
    return response


def refused_commit(
    request: o.OffsetCommitRequest, code: Code, holdfast: x.ResponseExtras
) -> o.OffsetCommitResponse:
    """Make a response that has one code for every partition of the request."""
    return o.OffsetCommitResponse(
        topics=[
            o.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    o.OffsetCommitResponsePartition(
                        partition_index=p.partition_index, error_code=code
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        holdfast=holdfast,
    )


def delete_offsets(reply: replies.OffsetsReply) -> o.OffsetDeleteResponse:
    """Make the response of OffsetDelete."""
    return o.OffsetDeleteResponse(
        error_code=code_of(reply.error),
        topics=[
            o.OffsetDeleteResponseTopic(
                name=name,
                partitions=[
                    o.OffsetDeleteResponsePartition(
                        partition_index=p.partition.partition, error_code=code_of(p.error)
                    )
                    for p in results
                ],
            )
            for name, results in _by_topic(reply.partitions)
        ],
        holdfast=extras(first_error(reply)),
    )


def first_error(reply: replies.OffsetsReply) -> Rejection | None:
    """Return the rejection of the call, or else of its first refused partition."""
    if reply.error is not None:
        return reply.error
    for result in reply.partitions:
        if result.error is not None:
            return result.error
    return None


def _by_topic(
    results: Iterable[replies.PartitionResult],
) -> Iterable[tuple[str, Sequence[replies.PartitionResult]]]:
    """Group the results by topic, in the order of the request."""
    topics: dict[str, list[replies.PartitionResult]] = {}
    for result in results:
        topics.setdefault(result.partition.topic, []).append(result)
    return topics.items()
