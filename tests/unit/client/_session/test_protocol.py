"""Subscriptions and assignments of others: whatever their bytes say, nobody else pays for it."""

from __future__ import annotations

import pytest

from holdfast.client._session.protocol import WEIGHT_MAX, read_assignment, read_subscription
from holdfast.client.errors import IncompatibleServer
from holdfast.v1 import group_pb2

NESTED = b"[" * 100_000
"""Deeper than any reader of JSON goes."""


def member(message: group_pb2.ConsumerProtocolSubscription) -> group_pb2.JoinGroupResponseMember:
    return group_pb2.JoinGroupResponseMember(member_id="m", metadata=message.SerializeToString())


@pytest.mark.parametrize(
    ("user_data", "weight"),
    [
        (b'{"weight": 3}', 3),
        (b"another assignor's", 1),
        (b'{"weight": 1e999}', 1),
        (b'{"weight": NaN}', 1),
        (b'{"weight": null}', 1),
        (NESTED, 1),
        (b'{"weight": 1e300}', WEIGHT_MAX),
    ],
)
def test_what_one_member_says_of_its_weight_stops_no_group_leader(
    user_data: bytes, weight: int
) -> None:
    """It would stop each leader in turn, and with them the group."""
    message = group_pb2.ConsumerProtocolSubscription(topics=["t"], user_data=user_data)
    assert read_subscription(member(message)).weight == weight


def test_kip429_a_claim_that_names_a_topic_twice_counts_whole() -> None:
    """Else a cooperative assignor gives away what its owner has not let go of."""
    message = group_pb2.ConsumerProtocolSubscription(topics=["t"], generation_id=3)
    for number in (0, 1):
        message.owned_partitions.add(topic="t", partitions=[number])
    assert read_subscription(member(message)).owned == {"t": (0, 1)}


@pytest.mark.parametrize(
    "user_data", [NESTED, b'{"counts": 5}', b'{"counts": {"t": "x"}}', b"[]", b"5", b"{"]
)
def test_an_assignment_that_cannot_be_read_says_so(user_data: bytes) -> None:
    assignment = group_pb2.ConsumerProtocolAssignment(user_data=user_data).SerializeToString()
    with pytest.raises(IncompatibleServer, match="another kind of client"):
        read_assignment(assignment)
