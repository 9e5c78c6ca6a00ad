"""What the server reads out of a `consumer` member's bytes (K-J25), and out of its heartbeats."""

from __future__ import annotations

import grpc
import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.server.rpc.errors import CallFailed
from holdfast.server.translate.requests import consumer_heartbeat, join_group, subscribed
from holdfast.v1 import group_pb2 as g


def test_topics_are_a_sorted_set() -> None:
    message = g.ConsumerProtocolSubscription(topics=["b", "a", "b"])

    assert subscribed(message.SerializeToString()) == ("a", "b")


def test_no_topics_are_a_subscription_to_nothing() -> None:
    """A pattern that matches nothing; its message has no bytes at all."""
    assert subscribed(g.ConsumerProtocolSubscription().SerializeToString()) == ()


@pytest.mark.parametrize("bad", [b"\x00", b"garbage", b"\x0a\xff"])
def test_bytes_that_are_no_message_are_not_read(bad: bytes) -> None:
    assert subscribed(bad) is None


BY = c.Caller(7, "principal")


def test_q5_a_join_claims_what_any_of_its_protocols_says_that_it_owns() -> None:
    """K-Q5: a group of the heartbeat protocol takes that for an acknowledgement."""
    request = g.JoinGroupRequest(group_id="g", protocol_type="consumer")
    for name, numbers in (("range", [1]), ("sticky", [0, 1])):
        owned = [g.ConsumerProtocolTopicPartitions(topic="t", partitions=numbers)]
        said = g.ConsumerProtocolSubscription(topics=["t"], owned_partitions=owned, rack_id="r")
        request.protocols.add(name=name, metadata=said.SerializeToString())

    command = join_group(request, BY, "m")
    assert (command.owned, command.rack_id) == ((TopicPartitions("t", (0, 1)),), "r")

    request.protocol_type = "app"
    opaque = join_group(request, BY, "m")
    assert (opaque.owned, opaque.rack_id, opaque.protocols[0].topics) == ((), None, None)


def test_m13_a_heartbeat_that_says_nothing_leaves_everything_as_it_was() -> None:
    """K-M13: an unset field is None, which is another thing than an empty one."""
    plain = g.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3)

    assert consumer_heartbeat(plain, BY) == c.ConsumerGroupHeartbeat(BY, "g", "m", 3)


def test_m12_an_empty_list_is_not_taken_for_an_unset_one() -> None:
    """K-M12: who owns nothing says so; who says nothing may own all that it did."""
    empty = g.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=3,
        instance_id="",
        rack_id="",
        rebalance_timeout_ms=0,
        subscribed_topic_names=g.ConsumerGroupTopicNames(),
        subscribed_topic_regex="",
        server_assignor="",
        topic_partitions=g.ConsumerGroupAssignment(),
    )

    made = consumer_heartbeat(empty, BY)

    assert made == c.ConsumerGroupHeartbeat(BY, "g", "m", 3, "", "", 0, (), "", "", "", ())


def test_m17_topics_and_partitions_are_sorted_sets() -> None:
    """K-M17: their order does not count, and neither does a repetition."""
    topics = [("b", [1, 0, 1]), ("a", [2]), ("b", [5])]
    full = g.ConsumerGroupHeartbeatRequest(
        subscribed_topic_names=g.ConsumerGroupTopicNames(names=["b", "a", "b"]),
        topic_partitions=g.ConsumerGroupAssignment(
            topic_partitions=[
                g.ConsumerGroupTopicPartitions(topic=name, partitions=parts)
                for name, parts in topics
            ]
        ),
    )

    made = consumer_heartbeat(full, BY)

    assert made.topics == ("a", "b")
    assert made.owned == (TopicPartitions("a", (2,)), TopicPartitions("b", (0, 1, 5)))


def test_m1_kafkas_minus_one_is_an_unset_rebalance_timeout() -> None:
    """K-M2: a join with it is refused like one without; any other number is the core's to judge."""
    unset = g.ConsumerGroupHeartbeatRequest(rebalance_timeout_ms=-1)
    negative = g.ConsumerGroupHeartbeatRequest(rebalance_timeout_ms=-2)

    assert consumer_heartbeat(unset, BY).rebalance_timeout_ms is None
    assert consumer_heartbeat(negative, BY).rebalance_timeout_ms == -2


def test_p1_what_is_wrong_with_the_expression_goes_to_the_core() -> None:
    """K-P1: the core answers, for other refusals come first."""
    asked = g.ConsumerGroupHeartbeatRequest(subscribed_topic_regex="(")

    made = consumer_heartbeat(asked, BY, "missing )")

    assert (made.regex, made.regex_problem) == ("(", "missing )")


@pytest.mark.parametrize(
    "field", ["member_id", "instance_id", "rack_id", "subscribed_topic_regex", "server_assignor"]
)
@pytest.mark.parametrize("bad", ["x" * 4_097, "a\0b"])
def test_text_that_no_name_has_is_malformed(field: str, bad: str) -> None:
    """S7: told with the field."""
    asked = g.ConsumerGroupHeartbeatRequest()
    setattr(asked, field, bad)

    with pytest.raises(CallFailed) as failed:
        consumer_heartbeat(asked, BY)

    assert failed.value.status is grpc.StatusCode.INVALID_ARGUMENT
    assert failed.value.sentence.startswith(f"{field}: ")
