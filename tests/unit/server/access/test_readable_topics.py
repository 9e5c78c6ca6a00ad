"""K-P9: by a regular expression nobody is given a topic that it may not read."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model.access import DENY, DRY_RUN, EVERYONE, OPEN, READER, TOPIC, Acl
from holdfast.coordinator.model.events import (
    AccessModeChanged,
    AclsChanged,
    LevelRaised,
    TopicsCreated,
    TopicSize,
)
from holdfast.server.access.gate import Gate
from holdfast.server.access.readable_topics import ReadableTopics
from unit.runtime.world import World

TOPICS = ("a-only", "b-only", "both")
GRANTS = (
    Acl("a", READER, TOPIC, "a-only"),
    Acl("b", READER, TOPIC, "b-only"),
    Acl(EVERYONE, READER, TOPIC, "both"),
)


async def counting(mode: str, *members: tuple[str, str]) -> list[str]:
    """Which topics count for the expression `.*`; the members have a principal and one each."""
    world = await World().lead()
    sizes = tuple(TopicSize(name, 1) for name in TOPICS)
    world.replica.slip_in("", LevelRaised(2), TopicsCreated(sizes), AclsChanged(GRANTS, ()))
    world.replica.slip_in("", AccessModeChanged(mode))
    for number, (principal, regex) in enumerate(members):
        await world.ask(
            lambda call, who=principal, regex=regex, number=number: c.ConsumerGroupHeartbeat(  # type: ignore[misc]  # bound now
                c.Caller(call, who, "client"),
                "g",
                f"m{number}",
                0,
                rebalance_timeout_ms=10_000,
                regex=regex,
                owned=(),
            )
        )
    state = world.replica.state
    counts = ReadableTopics(Gate(lambda: state))(state, "g")
    return [topic for topic in TOPICS if counts(".*", topic)]


@pytest.mark.parametrize(
    ("mode", "members", "topics"),
    [
        (DENY, [("a", ".*")], ["a-only", "both"]),
        (DENY, [("a", ".*"), ("b", ".*")], ["both"]),
        (DENY, [("a", ".*"), ("b", "other")], ["a-only", "both"]),
        (DENY, [("c", ".*")], ["both"]),
        (OPEN, [("c", ".*")], [*TOPICS]),
        (DRY_RUN, [("c", ".*")], [*TOPICS]),
    ],
)
def test_p9_a_topic_counts_if_all_users_of_the_expression_may_read_it(
    mode: str, members: list[tuple[str, str]], topics: list[str]
) -> None:
    """The result is the group's: one member must not get by another what it may not read."""
    assert asyncio.run(counting(mode, *members)) == topics
