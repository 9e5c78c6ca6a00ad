"""Commands and replies of the heartbeat protocol in the neutral JSON of the transcripts.

Belongs to `kafka_json`, which has the rest. A list of partitions stands as `{"topic_partitions":
[{"topic": "t", "partitions": [0, 1]}]}`, without order; null and empty are different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness import regexes
from harness.kafka_json import error_name
from holdfast.coordinator.model import commands
from holdfast.coordinator.model.ids import TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.commands import Caller
    from holdfast.coordinator.model.described import (
        DescribedConsumerGroup,
        DescribedConsumerMember,
    )
    from holdfast.coordinator.model.replies import ConsumerHeartbeatReply

Json = Any


def heartbeat(request: Json, caller: Caller) -> commands.ConsumerGroupHeartbeat:
    """Return the command of a recorded heartbeat; a field that it does not name is null."""
    topics, regex = request.get("subscribed_topic_names"), request.get("subscribed_topic_regex")
    return commands.ConsumerGroupHeartbeat(
        caller=caller,
        group_id=request["group_id"],
        member_id=request["member_id"],
        member_epoch=request["member_epoch"],
        instance_id=request.get("instance_id"),
        rack_id=request.get("rack_id"),
        rebalance_timeout_ms=_set(request.get("rebalance_timeout_ms")),
        topics=None if topics is None else tuple(sorted(set(topics))),
        regex=regex,
        regex_problem=regexes.problem(regex) if regex else "",
        server_assignor=request.get("server_assignor"),
        owned=_owned(request.get("topic_partitions")),
    )


def _set(value: int | None) -> int | None:
    """Return Kafka's -1, which means that a field is not set, as None."""
    return None if value == -1 else value


def _owned(given: Json) -> tuple[TopicPartitions, ...] | None:
    if given is None:
        return None
    numbers = {each["topic"]: tuple(sorted(set(each["partitions"]))) for each in given}
    return tuple(TopicPartitions(topic, numbers[topic]) for topic in sorted(numbers))


def reply(given: ConsumerHeartbeatReply) -> Json:
    """Return an answer as a transcript has it: an error stands alone."""
    if given.error is not None:
        return refusal(error_name(given.error))
    return {
        "error_code": "NONE",
        "member_id": given.member_id,
        "member_epoch": given.member_epoch,
        "heartbeat_interval_ms": given.heartbeat_interval_ms,
        "assignment": None
        if given.assignment is None
        else partitions((each.topic, each.partition) for each in given.assignment),
    }


def refusal(error: str) -> Json:
    """Return the answer that refuses a heartbeat."""
    return {
        "error_code": error,
        "member_id": None,
        "member_epoch": 0,
        "heartbeat_interval_ms": 0,
        "assignment": None,
    }


def partitions(given: Iterable[tuple[str, int]]) -> Json:
    """Return partitions by topic."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(given):
        by_topic.setdefault(topic, []).append(partition)
    listed = [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]
    return {"topic_partitions": listed}


def described(found: DescribedConsumerGroup) -> Json:
    """Return a group as ConsumerGroupDescribe shows it; with an error all but its id is empty."""
    return {
        "error_code": error_name(found.error),
        "group_id": found.group_id,
        "group_state": found.state,
        "group_epoch": found.group_epoch,
        "assignment_epoch": found.assignment_epoch,
        "assignor_name": found.assignor,
        "members": [_member(each) for each in found.members],
    }


def _member(member: DescribedConsumerMember) -> Json:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.member_epoch,
        "client_id": member.client_id,
        "subscribed_topic_names": list(member.topics),
        "subscribed_topic_regex": member.regex,
        "assignment": _by_topic(member.assignment),
        "target_assignment": _by_topic(member.target),
        "member_type": 0 if member.classic else 1,
    }


def _by_topic(given: Iterable[TopicPartitions]) -> Json:
    listed = [{"topic": each.topic, "partitions": list(each.partitions)} for each in given]
    return {"topic_partitions": listed}
