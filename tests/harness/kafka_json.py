"""Commands and replies in the neutral JSON of the transcripts: Kafka's field and error names.

Used by every adapter that replays transcripts against the core itself. Member metadata of the type
`consumer` stands in JSON as its topics, an assignment that the coordinator can read as its
partitions; all other assignments and metadata are text. `consumer_json` has the heartbeat protocol.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, Final

from holdfast.coordinator.model import commands, rejections, replies
from holdfast.coordinator.model.commands import Caller, LeavingMember
from holdfast.coordinator.model.events import Assigned, OffsetCommitted
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.v1.group_pb2 import ConsumerProtocolAssignment, ConsumerProtocolTopicPartitions

Json = Any

ERROR_NAMES: Final[dict[type, str]] = {
    type(None): "NONE",
    rejections.InvalidGroupId: "INVALID_GROUP_ID",
    rejections.InvalidRequest: "INVALID_REQUEST",
    rejections.InvalidSessionTimeout: "INVALID_SESSION_TIMEOUT",
    rejections.MemberIdRequired: "MEMBER_ID_REQUIRED",
    rejections.UnknownMemberId: "UNKNOWN_MEMBER_ID",
    rejections.FencedInstanceId: "FENCED_INSTANCE_ID",
    rejections.IllegalGeneration: "ILLEGAL_GENERATION",
    rejections.RebalanceInProgress: "REBALANCE_IN_PROGRESS",
    rejections.InconsistentGroupProtocol: "INCONSISTENT_GROUP_PROTOCOL",
    rejections.GroupMaxSizeReached: "GROUP_MAX_SIZE_REACHED",
    rejections.GroupIdNotFound: "GROUP_ID_NOT_FOUND",
    rejections.OtherGroupType: "GROUP_ID_NOT_FOUND",
    rejections.NonEmptyGroup: "NON_EMPTY_GROUP",
    rejections.GroupSubscribedToTopic: "GROUP_SUBSCRIBED_TO_TOPIC",
    rejections.TopicInUse: "GROUP_SUBSCRIBED_TO_TOPIC",
    rejections.OffsetMetadataTooLarge: "OFFSET_METADATA_TOO_LARGE",
    rejections.InvalidCommitOffsetSize: "INVALID_COMMIT_OFFSET_SIZE",
    rejections.UnknownTopic: "UNKNOWN_TOPIC_OR_PARTITION",
    rejections.PolicyViolation: "POLICY_VIOLATION",
    rejections.UnsupportedVersion: "UNSUPPORTED_VERSION",
    rejections.UnknownServerError: "UNKNOWN_SERVER_ERROR",
    rejections.NotCoordinator: "NOT_COORDINATOR",
    rejections.FencedMemberEpoch: "FENCED_MEMBER_EPOCH",
    rejections.PastHeartbeat: "FENCED_MEMBER_EPOCH",
    rejections.StaleMemberEpoch: "STALE_MEMBER_EPOCH",
    rejections.NotChosen: "UNKNOWN_MEMBER_ID",
    rejections.StaleAssignment: "STALE_MEMBER_EPOCH",
    rejections.UnreleasedInstanceId: "UNRELEASED_INSTANCE_ID",
    rejections.UnsupportedAssignor: "UNSUPPORTED_ASSIGNOR",
    rejections.InvalidRegularExpression: "INVALID_REGULAR_EXPRESSION",
}


KAFKAS_ASSIGNMENT: Final = "AAEAAAABAAF0AAAAAgAAAAAAAAAB/////w=="
"""A recorded assignment in Kafka's own format, which only Kafka reads.

When a group is converted, its partitions are read. Kafka found in these bytes a topic that did not
exist there, so `to_bytes` puts our format and such a topic in their place.
"""
_ELSEWHERE: Final = ConsumerProtocolAssignment(
    assigned_partitions=[ConsumerProtocolTopicPartitions(topic="elsewhere", partitions=[0, 1])]
).SerializeToString()
_READABLE: Final = b"\n"
"""How the bytes of an assignment begin that the coordinator reads; no text of a transcript does."""


def error_name(error: rejections.Rejection | None) -> str:
    """Kafka's name of a refusal."""
    return ERROR_NAMES[type(error)]


def to_bytes(value: Json) -> bytes:
    """Opaque bytes of a transcript's value."""
    if isinstance(value, str):
        return value.encode()
    if "assigned_partitions" in value:
        return _assignment(value["assigned_partitions"])
    if "base64" in value:
        return _ELSEWHERE if value["base64"] == KAFKAS_ASSIGNMENT else b64decode(value["base64"])
    return json.dumps(value, sort_keys=True).encode()


def to_json(value: bytes) -> Json:
    """The transcript's value of opaque bytes."""
    if value == _ELSEWHERE:
        return {"base64": KAFKAS_ASSIGNMENT}
    if value.startswith(_READABLE):
        return _written(value)
    text = value.decode()
    return json.loads(text) if text.startswith("{") else text


def _assignment(topics: Json) -> bytes:
    made = ConsumerProtocolAssignment()
    for each in topics:
        made.assigned_partitions.add(topic=each["topic"], partitions=each["partitions"])
    return made.SerializeToString()


def _written(value: bytes) -> Json:
    made = ConsumerProtocolAssignment.FromString(value).assigned_partitions
    listed = [{"topic": each.topic, "partitions": list(each.partitions)} for each in made]
    return {"assigned_partitions": listed}


def _protocol(protocol_type: str, protocol: Json) -> Protocol:
    metadata = protocol["metadata"]
    readable = protocol_type == "consumer" and isinstance(metadata, dict) and "topics" in metadata
    topics = tuple(metadata["topics"]) if readable else None
    return Protocol(protocol["name"], to_bytes(metadata), topics)


def join(request: Json, caller: Caller, fresh_member_id: str) -> commands.JoinGroup:
    return commands.JoinGroup(
        caller=caller,
        group_id=request["group_id"],
        member_id=request.get("member_id", ""),
        instance_id=request.get("group_instance_id"),
        session_timeout_ms=request["session_timeout_ms"],
        rebalance_timeout_ms=request.get("rebalance_timeout_ms", -1),
        protocol_type=request["protocol_type"],
        protocols=tuple(_protocol(request["protocol_type"], p) for p in request["protocols"]),
        fresh_member_id=fresh_member_id,
    )


def sync(request: Json, caller: Caller) -> commands.SyncGroup:
    return commands.SyncGroup(
        caller=caller,
        group_id=request["group_id"],
        generation=request["generation_id"],
        member_id=request["member_id"],
        instance_id=request.get("group_instance_id"),
        protocol_type=request.get("protocol_type"),
        protocol_name=request.get("protocol_name"),
        assignments=tuple(
            Assigned(each["member_id"], to_bytes(each["assignment"]))
            for each in request.get("assignments", [])
        ),
    )


def heartbeat(request: Json, caller: Caller) -> commands.Heartbeat:
    return commands.Heartbeat(
        caller=caller,
        group_id=request["group_id"],
        generation=request["generation_id"],
        member_id=request["member_id"],
        instance_id=request.get("group_instance_id"),
    )


def leave(request: Json, caller: Caller) -> commands.LeaveGroup:
    members = tuple(
        LeavingMember(each.get("member_id", ""), each.get("group_instance_id"))
        for each in request["members"]
    )
    return commands.LeaveGroup(caller, request["group_id"], members)


def commit(request: Json, caller: Caller) -> commands.CommitOffsets:
    offsets = tuple(
        OffsetCommitted(
            topic["name"],
            each["partition_index"],
            each["committed_offset"],
            each.get("committed_leader_epoch", -1),
            each.get("committed_metadata") or "",
        )
        for topic in request["topics"]
        for each in topic["partitions"]
    )
    return commands.CommitOffsets(
        caller=caller,
        group_id=request["group_id"],
        generation=request.get("generation_id_or_member_epoch", -1),
        member_id=request.get("member_id", ""),
        instance_id=request.get("group_instance_id"),
        offsets=offsets,
    )


def delete_offsets(request: Json, caller: Caller) -> commands.DeleteOffsets:
    partitions = tuple(
        TopicPartition(topic["name"], each["partition_index"])
        for topic in request["topics"]
        for each in topic["partitions"]
    )
    return commands.DeleteOffsets(caller, request["group_id"], partitions)


def reply(given: replies.Reply) -> Json:
    """An answer as a transcript has it."""
    match given:
        case replies.JoinReply():
            return _join_reply(given)
        case replies.SyncReply():
            return {
                "error_code": error_name(given.error),
                "protocol_type": given.protocol_type,
                "protocol_name": given.protocol_name,
                "assignment": to_json(given.assignment),
            }
        case replies.HeartbeatReply():
            return {"error_code": error_name(given.error)}
        case replies.LeaveReply():
            return {
                "error_code": error_name(given.error),
                "members": [
                    {
                        "member_id": each.member_id,
                        "group_instance_id": each.instance_id,
                        "error_code": error_name(each.error),
                    }
                    for each in given.members
                ],
            }
        case _:
            raise TypeError(f"no transcript has {given}")


def _join_reply(given: replies.JoinReply) -> Json:
    return {
        "error_code": error_name(given.error),
        "generation_id": given.generation,
        "protocol_type": given.protocol_type,
        "protocol_name": given.protocol_name,
        "leader": given.leader,
        "skip_assignment": given.skip_assignment,
        "member_id": given.member_id,
        "members": [
            {
                "member_id": each.member_id,
                "group_instance_id": each.instance_id,
                "metadata": to_json(each.metadata),
            }
            for each in given.members
        ],
    }


def partitions(given: replies.OffsetsReply) -> Json:
    """The `topics` of an OffsetCommit or OffsetDelete answer."""
    by_topic: dict[str, list[Json]] = {}
    for each in given.partitions:
        line = {"partition_index": each.partition.partition, "error_code": error_name(each.error)}
        by_topic.setdefault(each.partition.topic, []).append(line)
    return [{"name": name, "partitions": lines} for name, lines in by_topic.items()]


def refused_partitions(request: Json, error: rejections.Rejection) -> Json:
    """The `topics` of an OffsetCommit answer that refuses the whole request."""
    code = error_name(error)
    return [
        {
            "name": topic["name"],
            "partitions": [
                {"partition_index": each["partition_index"], "error_code": code}
                for each in topic["partitions"]
            ],
        }
        for topic in request["topics"]
    ]
