"""The demo's group is read alike in both protocols: partitions with the tokens of their grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from demo import job
from demo.group import CLASSIC, CONSUMER, NOBODY, Group, Protocol
from holdfast.client import GroupNotFound
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from holdfast.client.sync import Admin


class Told:
    """An operator's client that is told one thing of the group."""

    def __init__(self, told: object) -> None:
        self._told = told

    def describe_groups(self, group: str) -> dict[str, object]:
        """As `Admin`."""
        if isinstance(self._told, Exception):
            raise self._told
        return {group: self._told}

    consumer_group_describe = describe_groups


def asked(protocol: Protocol, told: object) -> Group:
    """What the demo makes of it."""
    return protocol.ask(cast("Admin", Told(told)))


def test_one_grant_gives_all_partitions_of_a_classic_member() -> None:
    """S13: a classic generation gives each member one token."""
    told = a.DescribedGroup(group_state="Stable", holdfast=a.DescribedGroupExtras(generation_id=4))
    for token, numbers in ((7, (0, 1)), (9, (2,))):
        extras = told.members.add().holdfast
        extras.fencing_token = token
        extras.assigned_partitions.add(topic=job.TOPIC, partitions=numbers)

    assert asked(CLASSIC, told) == Group("Stable", 4, 2, {0: 7, 1: 7, 2: 9})


def test_each_partition_of_the_heartbeat_protocol_has_the_token_of_its_own_grant() -> None:
    """S13: what stays with its owner keeps its token."""
    told = a.ConsumerGroupDescribedGroup(group_state="Stable", group_epoch=5)
    tokens = x.PartitionTokens(topic=job.TOPIC, partitions=(0, 1), fencing_tokens=(7, 9))
    told.members.add().holdfast.partition_tokens.append(tokens)
    told.members.add()

    assert asked(CONSUMER, told) == Group("Stable", 5, 2, {0: 7, 1: 9})


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=lambda each: each.name)
def test_nobody_has_joined_at_first(protocol: Protocol) -> None:
    """A refusal of one group comes as an error, for whoever asks for one."""
    assert asked(protocol, GroupNotFound("no such group")) == NOBODY
