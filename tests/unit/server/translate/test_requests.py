"""What the server reads out of a `consumer` member's bytes (K-J25)."""

from __future__ import annotations

import pytest

from holdfast.server.translate.requests import subscribed
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
