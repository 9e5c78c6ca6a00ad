"""Answers of the heartbeat protocol as messages: null, empty, and a token for each partition."""

from __future__ import annotations

from dataclasses import replace

from holdfast.coordinator.model import rejections as r
from holdfast.coordinator.model.replies import ConsumerHeartbeatReply, Grant, OwnedPartition
from holdfast.server.translate.responses import consumer_heartbeat
from holdfast.v1 import errors_pb2 as e

IN_FORCE = Grant(0, 45_000, 300_000, 0)


def test_m13_an_answer_without_an_assignment_says_nothing_of_one() -> None:
    """K-M13: unset is "as before"; nothing is said of predecessors either."""
    made = consumer_heartbeat(ConsumerHeartbeatReply(None, "m", 3, 5_000, None, IN_FORCE))

    assert (made.error_code, made.member_id, made.member_epoch) == (e.ERROR_CODE_NONE, "m", 3)
    assert made.heartbeat_interval_ms == 5_000
    assert not made.HasField("assignment")
    assert not made.HasField("error_message")
    assert not made.holdfast.HasField("predecessor_ms")
    assert made.holdfast.session_timeout_ms == 45_000
    assert made.holdfast.rebalance_timeout_ms == 300_000


def test_m15_an_empty_assignment_is_set_and_empty() -> None:
    """K-M15: the member is to own nothing."""
    made = consumer_heartbeat(ConsumerHeartbeatReply(None, "m", 3, 5_000, (), IN_FORCE))

    assert made.HasField("assignment")
    assert not made.assignment.topic_partitions
    assert made.holdfast.predecessor_ms == 0


def test_s13_each_partition_has_its_token() -> None:
    """S13: a partition keeps its token while it is kept, so they differ within an answer."""
    owned = (OwnedPartition("a", 0, 11), OwnedPartition("a", 2, 12), OwnedPartition("b", 1, 11))
    grant = replace(IN_FORCE, predecessor_ms=700)

    made = consumer_heartbeat(ConsumerHeartbeatReply(None, "m", 3, 5_000, owned, grant))

    assigned = [(t.topic, list(t.partitions)) for t in made.assignment.topic_partitions]
    tokens = [
        (t.topic, list(t.partitions), list(t.fencing_tokens))
        for t in made.holdfast.partition_tokens
    ]
    assert assigned == [("a", [0, 2]), ("b", [1])]
    assert tokens == [("a", [0, 2], [11, 12]), ("b", [1], [11])]
    assert made.holdfast.predecessor_ms == 700
    assert not made.holdfast.HasField("fencing_token")


def test_n11_who_may_not_have_an_instance_id_is_told_who_has_it() -> None:
    """K-N11: and gets no member id back, as in Kafka."""
    held = r.UnreleasedInstanceId("i", "m-1", "worker-7", 1234)

    made = consumer_heartbeat(ConsumerHeartbeatReply(held))

    assert made.error_code == e.ERROR_CODE_UNRELEASED_INSTANCE_ID
    assert not made.HasField("member_id")
    assert (made.holdfast.holder, made.holdfast.holder_since_ms) == ("m-1", 1234)
    assert "worker-7" in made.holdfast.message
