"""The calls of the member that computes a target: messages to values and back (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.coordinator.model.text import readable
from holdfast.server.guard.answer_size import Encoded, Room
from holdfast.server.translate import limits
from holdfast.server.translate.refusals import code_of
from holdfast.server.translate.responses import extras
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.described import PreparedAssignment, PreparedMember
    from holdfast.coordinator.model.ids import TopicName
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.server.rpc.slices import Slices


def client_assignors(said: x.RequestExtras) -> tuple[ClientAssignor, ...] | None:
    """Return the assignors that a member can run; None: as before, and empty: none."""
    if not said.HasField("client_assignors"):
        return None
    return tuple([_assignor(each) for each in said.client_assignors.assignors])


def _assignor(said: x.ClientAssignor) -> ClientAssignor:
    return ClientAssignor(
        name=limits.text("holdfast.client_assignors.name", said.name),
        minimum_version=said.minimum_version,
        maximum_version=said.maximum_version,
        reason=said.reason,
        version=said.version,
        metadata=said.metadata,
    )


async def prepared(
    found: PreparedAssignment, told: x.ResponseExtras, slices: Slices
) -> g.PrepareAssignmentResponse:
    """Encode what an assignor needs; raises CallFailed if there is no room for it."""
    head = g.PrepareAssignmentResponse(
        group_epoch=found.group_epoch,
        assignor_name=found.assignor,
        assignor_version=found.version,
        topics=[
            g.PrepareAssignmentResponseTopic(name=name, num_partitions=size)
            for name, size in found.topics
        ],
        holdfast=told,
    )
    room = Room("the group is too large for an assignor that runs in a member")
    made = Encoded(head, room)
    places = {name: place for place, (name, _) in enumerate(found.topics)}
    lists: dict[int, int] = {}  # by identity: the core gives those that want the same one list
    async for member in slices.of(found.members):
        if id(member.topics) not in lists:
            lists[id(member.topics)] = len(lists)
            wanted = g.PrepareAssignmentResponseTopicList(
                topics=map(places.__getitem__, member.topics)
            )
            made.add(g.PrepareAssignmentResponse.TOPIC_LISTS_FIELD_NUMBER, wanted)
        one = _member(member, lists[id(member.topics)])
        made.add(g.PrepareAssignmentResponse.MEMBERS_FIELD_NUMBER, one)
    return made.message(g.PrepareAssignmentResponse)


def _member(member: PreparedMember, topic_list: int) -> g.PrepareAssignmentResponseMember:
    return g.PrepareAssignmentResponseMember(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        topic_list=topic_list,
        assignor=x.ClientAssignor(**member.assignor._asdict()),
        topic_partitions=[
            g.ConsumerGroupTopicPartitions(topic=each.topic, partitions=each.partitions)
            for each in member.target
        ],
    )


def not_prepared(error: Rejection) -> g.PrepareAssignmentResponse:
    """Make the answer to a member that may not compute the target."""
    told = extras(error)
    return g.PrepareAssignmentResponse(
        error_code=code_of(error), error_message=told.message, holdfast=told
    )


def targets(request: g.InstallAssignmentRequest) -> Iterator[MemberTarget]:
    """Yield what members are to own, as it was said: what is named twice is there twice."""
    for each in request.members:
        member_id = limits.text("members.member_id", each.member_id)
        partitions = _partitions(each.topic_partitions)
        yield MemberTarget(member_id, partitions, each.version, each.metadata)


def _partitions(
    said: Iterable[g.ConsumerGroupTopicPartitions],
) -> tuple[TopicPartitions, ...]:
    """Return partitions by topic, sorted; a topic without any counts for nothing."""
    by_topic: dict[TopicName, list[int]] = {}
    for each in said:
        topic = limits.text("members.topic_partitions.topic", each.topic)
        by_topic.setdefault(topic, []).extend(each.partitions)
    return tuple(
        [
            TopicPartitions(topic, tuple(sorted(numbers)))
            for topic, numbers in sorted(by_topic.items())
            if numbers
        ]
    )


def install(
    request: g.InstallAssignmentRequest, caller: c.Caller, said: tuple[MemberTarget, ...]
) -> c.InstallAssignment:
    """Translate InstallAssignment to its command."""
    member_id = limits.text("member_id", request.member_id)
    if request.HasField("failure"):
        epoch, said, problem = request.failure.group_epoch, (), _problem(request.failure)
    else:
        epoch, problem = request.group_epoch, ""
    return c.InstallAssignment(
        caller, request.group_id, member_id, request.member_epoch, epoch, said, problem
    )


def _problem(failure: g.AssignmentFailure) -> str:
    """Return why there is no target, on one line: the member's words, or its code."""
    words = readable(failure.error_message[: limits.TEXT_MAX])
    return words or f"it tells no reason but the code {failure.error_code}"


def installed(reply: replies.DoneReply) -> g.InstallAssignmentResponse:
    """Make the response of InstallAssignment."""
    told = extras(reply.error)
    message = told.message if reply.error is not None else None
    return g.InstallAssignmentResponse(
        error_code=code_of(reply.error), error_message=message, holdfast=told
    )
