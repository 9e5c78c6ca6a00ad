"""What a member of the heartbeat protocol says to a node, and what it reads in the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.model.events import LevelRaised, TopicsCreated, TopicSize
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from unit.server.nodes import Served


def with_topics(node: Served, *names: str) -> None:
    """Make topics of two partitions, on a cluster whose log may hold the heartbeat protocol."""
    sizes = tuple(TopicSize(name, 2) for name in names or ("t",))
    node.replica.slip_in("", LevelRaised(2), TopicsCreated(sizes))


def join(member_id: str = "m1", *topics: str, **fields: Any) -> g.ConsumerGroupHeartbeatRequest:  # noqa: ANN401 - of the message
    """A join that says everything."""
    said: dict[str, Any] = {
        "group_id": "g",
        "rebalance_timeout_ms": 60_000,
        "topic_partitions": g.ConsumerGroupAssignment(),
        "subscribed_topic_names": g.ConsumerGroupTopicNames(names=topics or ("t",)),
    }
    return g.ConsumerGroupHeartbeatRequest(member_id=member_id, **(said | fields))


def beat(epoch: int, member_id: str = "m1", **fields: Any) -> g.ConsumerGroupHeartbeatRequest:  # noqa: ANN401 - of the message
    """A heartbeat that says nothing but what it is given."""
    return g.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )


def places(assignment: g.ConsumerGroupAssignment) -> list[tuple[str, int]]:
    """What is assigned, in order."""
    return [(t.topic, number) for t in assignment.topic_partitions for number in t.partitions]
