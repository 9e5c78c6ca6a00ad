"""The contract's messages as a history has them: names of calls, arguments, outcomes, results.

`history.happenings` says which keys there are. Knows messages and the client's failures, not how
they travel.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError, Message

from holdfast.chaos.history.happenings import Fields
from holdfast.chaos.history.records import partitions_of
from holdfast.client import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.v1 import admin_pb2, group_pb2, offset_pb2
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE, ErrorCode

Outcome: TypeAlias = Literal["ok", "rejected", "not-applied", "unknown"]

OPERATIONS: Final = frozenset({
    "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "LeaveGroup",
    "OffsetCommit", "OffsetFetch", "OffsetDelete",
    "DescribeGroups", "ConsumerGroupDescribe", "DeleteGroups", "RemoveMembers",
    "TriggerRebalance", "CreateTopics", "SealLog",
})  # fmt: skip
"""Calls that a checker can say something about; looking for the leader is none."""

_PLAIN: Final = (
    ("member_id", "member_id"),
    ("group_instance_id", "instance_id"),
    ("instance_id", "instance_id"),
    ("generation_id", "generation"),
    ("member_epoch", "generation"),
    ("generation_id_or_member_epoch", "generation"),
    ("session_timeout_ms", "session_timeout_ms"),
    ("rebalance_timeout_ms", "rebalance_timeout_ms"),
)


_STOPS: Final = -2
"""The epoch by which a static member says that its process stops for a while (K-N2)."""


class Answer(NamedTuple):
    """The outcome of a call, as `history.Returned` has it."""

    outcome: Outcome
    error: str
    result: Fields


def operation_of(request: Message) -> str:
    """Return the contract's name for the call."""
    return type(request).__name__.removesuffix("Request")


def group_of(request: Any) -> str:  # noqa: ANN401 - any request of the contract
    """Return the one group that a call is about; empty if it is about none."""
    match request:
        case offset_pb2.OffsetFetchRequest():
            return str(request.groups[0].group_id) if request.groups else ""
        case admin_pb2.DescribeGroupsRequest():
            return str(request.groups[0]) if request.groups else ""
        case admin_pb2.ConsumerGroupDescribeRequest():
            return str(request.group_ids[0]) if request.group_ids else ""
        case admin_pb2.DeleteGroupsRequest():
            return str(request.groups_names[0]) if request.groups_names else ""
        case _:
            return str(getattr(request, "group_id", ""))


def arguments_of(request: Any) -> Fields:  # noqa: ANN401 - any request of the contract
    """Return a request's arguments under the keys of a history."""
    asked: Fields = {}
    for field, key in _PLAIN:
        if field in request.DESCRIPTOR.fields_by_name and (value := getattr(request, field)):
            asked[key] = value
    extras = request.holdfast
    if extras.request_id:
        asked["request_id"] = extras.request_id
    asked.update(_particular(request))
    return asked


def _particular(request: Any) -> Fields:  # noqa: ANN401 - any request of the contract
    match request:
        case group_pb2.JoinGroupRequest():
            return {"topics": _topics_of(request)}
        case group_pb2.HeartbeatRequest():
            return {"release": True} if request.holdfast.release else {}
        case group_pb2.ConsumerGroupHeartbeatRequest():
            return _said(request)
        case group_pb2.LeaveGroupRequest() | admin_pb2.RemoveMembersRequest():
            named = [[member.member_id, member.group_instance_id] for member in request.members]
            return {"members": named}
        case offset_pb2.OffsetCommitRequest():
            rows = [
                [topic.name, partition.partition_index, partition.committed_offset]
                for topic in request.topics
                for partition in topic.partitions
            ]
            return {"offsets": rows}
        case offset_pb2.OffsetFetchRequest():
            rows = [
                [topic.name, partition]
                for group in request.groups
                for topic in group.topics
                for partition in topic.partition_indexes
            ]
            return {"partitions": rows, "stale_ok": request.holdfast.stale_ok}
        case _:
            return {}


def _said(request: group_pb2.ConsumerGroupHeartbeatRequest) -> Fields:
    """Return what a heartbeat says beyond who it is from; what it leaves out is as before."""
    said: Fields = {"release": True} if request.member_epoch == _STOPS else {}
    if request.HasField("subscribed_topic_names"):
        said["topics"] = list(request.subscribed_topic_names.names)
    if request.HasField("topic_partitions"):
        said["owned"] = [
            [each.topic, number]
            for each in request.topic_partitions.topic_partitions
            for number in each.partitions
        ]
    return said


def _topics_of(request: group_pb2.JoinGroupRequest) -> list[str]:
    if not request.protocols:
        return []
    subscription = group_pb2.ConsumerProtocolSubscription()
    try:
        subscription.ParseFromString(request.protocols[0].metadata)
    except DecodeError:
        return []  # opaque bytes of another protocol type
    return list(subscription.topics)


def answered(response: Any) -> Answer:  # noqa: ANN401 - any response of the contract
    """Convert a response to an answer: done, or refused with a code."""
    result = _plain_result(response)
    result.update(_result_of(response))
    code = _code_of(response)
    if code != ERROR_CODE_NONE:
        return Answer("rejected", name_of(code), result)
    return Answer("ok", "", result)


def _plain_result(response: Any) -> Fields:  # noqa: ANN401 - any response of the contract
    extras, result = response.holdfast, {}
    if extras.HasField("position"):
        result["position"] = [extras.position.index, extras.position.ordinal]
    if extras.HasField("fencing_token"):
        result["token"] = extras.fencing_token
    for name in ("session_timeout_ms", "rebalance_timeout_ms"):
        if extras.HasField(name):
            result[name] = getattr(extras, name)
    return result


def _code_of(response: Any) -> int:  # noqa: ANN401 - any response of the contract
    """Return the top-level code; of a commit with all partitions refused, the first one's."""
    match response:
        case offset_pb2.OffsetCommitResponse():
            codes = [p.error_code for topic in response.topics for p in topic.partitions]
            return codes[0] if codes and all(codes) else ERROR_CODE_NONE
        case offset_pb2.OffsetFetchResponse():
            return response.groups[0].error_code if response.groups else ERROR_CODE_NONE
        case admin_pb2.DescribeGroupsResponse() | admin_pb2.ConsumerGroupDescribeResponse():
            return response.groups[0].error_code if response.groups else ERROR_CODE_NONE
        case _:
            return int(getattr(response, "error_code", ERROR_CODE_NONE))


def _result_of(response: Any) -> Fields:  # noqa: ANN401 - any response of the contract
    match response:
        case group_pb2.JoinGroupResponse():
            named: Fields = {"member_id": response.member_id, "leader": response.leader}
            return {**named, "generation": response.generation_id}
        case group_pb2.ConsumerGroupHeartbeatResponse():
            return _beaten(response)
        case group_pb2.SyncGroupResponse():
            return {"partitions": partitions_of(response.assignment)}
        case offset_pb2.OffsetFetchResponse():
            return {"offsets": _fetched(response)}
        case offset_pb2.OffsetCommitResponse():
            return {"errors": _refused(response)}
        case group_pb2.LeaveGroupResponse() | admin_pb2.RemoveMembersResponse():
            refused = [m for m in response.members if m.error_code != ERROR_CODE_NONE]
            rows = [[m.member_id, m.group_instance_id, name_of(m.error_code)] for m in refused]
            return {"errors": rows}
        case admin_pb2.DescribeGroupsResponse() | admin_pb2.ConsumerGroupDescribeResponse():
            return _described(response.groups[0]) if response.groups else {}
        case _:
            return {}


def _beaten(response: group_pb2.ConsumerGroupHeartbeatResponse) -> Fields:
    """Return the epoch that an answer tells, and what it assigns, each with its token."""
    told: Fields = {"member_id": response.member_id, "generation": response.member_epoch}
    if response.HasField("assignment"):
        told["grants"] = [
            [each.topic, number, token]
            for each in response.holdfast.partition_tokens
            for number, token in zip(each.partitions, each.fencing_tokens, strict=True)
        ]
    return told


def _fetched(response: offset_pb2.OffsetFetchResponse) -> list[list[Any]]:
    return [
        [topic.name, partition.partition_index, partition.committed_offset]
        for group in response.groups
        for topic in group.topics
        for partition in topic.partitions
    ]


def _refused(response: offset_pb2.OffsetCommitResponse) -> list[list[Any]]:
    return [
        [topic.name, partition.partition_index, name_of(partition.error_code)]
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code != ERROR_CODE_NONE
    ]


def _described(
    group: admin_pb2.DescribedGroup | admin_pb2.ConsumerGroupDescribedGroup,
) -> Fields:
    if isinstance(group, admin_pb2.ConsumerGroupDescribedGroup):
        return _described_beats(group)
    members = [[member.member_id, member.group_instance_id] for member in group.members]
    extras = group.holdfast
    return {
        "state": group.group_state,
        "generation": extras.generation_id,
        "members": members,
        "version": extras.version,
    }


def _described_beats(group: admin_pb2.ConsumerGroupDescribedGroup) -> Fields:
    members = [[each.member_id, each.instance_id, each.member_epoch] for each in group.members]
    return {
        "state": group.group_state,
        "generation": group.group_epoch,
        "target_epoch": group.assignment_epoch,
        "members": members,
    }


def failed(error: BaseException) -> Answer:
    """Convert the error of an unanswered call: surely not applied, or unknown (S5)."""
    if isinstance(error, OutcomeUnknown):
        return Answer("unknown", str(error), {})
    if isinstance(error, Unavailable):
        return Answer("not-applied", str(error), {})
    if isinstance(error, HoldfastError):
        return Answer("rejected", f"{type(error).__name__}: {error}", {})
    return Answer("unknown", repr(error), {})


def name_of(code: int) -> str:
    """Return Kafka's name for an error code."""
    known = ErrorCode.Name(code)  # type: ignore[arg-type]  # a plain number will do
    return known.removeprefix("ERROR_CODE_")
