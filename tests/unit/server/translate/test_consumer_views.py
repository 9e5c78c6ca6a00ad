"""Descriptions of groups of the heartbeat protocol: what a caller may not read is not named."""

from __future__ import annotations

import asyncio

from holdfast.coordinator.model.described import DescribedConsumerGroup
from holdfast.coordinator.model.ids import TopicPartitions
from holdfast.server.guard.answer_size import Room
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import consumer_views
from holdfast.v1 import admin_pb2 as a


def test_of_what_a_target_leaves_out_only_topics_are_named_that_the_caller_may_read() -> None:
    """An expression may match topics that whoever may describe the group may not read."""
    left_out = (TopicPartitions("t", (1,)), TopicPartitions("u", (0,)))
    group = DescribedConsumerGroup(None, "g", left_out=left_out)
    raw = asyncio.run(
        consumer_views.described(group, (), lambda name: name == "u", Room("less"), Slices())
    )

    shown = a.ConsumerGroupDescribedGroup.FromString(raw).holdfast.left_out.topic_partitions
    assert [(each.topic, list(each.partitions)) for each in shown] == [("u", [0])]
