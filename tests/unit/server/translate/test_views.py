"""What is read of a state, as messages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.coordinator.classic.group_type import CLASSIC
from holdfast.coordinator.groups.group_type import Fetcher
from holdfast.coordinator.kernel.group_types import TYPES, new_group
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import UnknownMemberId
from holdfast.coordinator.model.state import Group, Offset, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.guard.answer_size import Room
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import views
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from holdfast.coordinator.model.rejections import Rejection

STATE = State(
    groups=PMap(
        {"g": new_group("g")._replace(offsets=PMap({TopicPartition("t", 0): Offset(5, -1, "", 0)}))}
    ),
    topics=PMap({"t": TopicSize("t", 1)}),
)


def fetch(request: o.OffsetFetchRequestGroup) -> o.OffsetFetchResponseGroup:
    found = asyncio.run(views.fetched(STATE, request, Room(""), Slices()))
    return o.OffsetFetchResponseGroup.FromString(found.encoded())


def test_a_group_whose_type_refuses_a_fetch_is_answered_with_the_error_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-848: a type may want to know who reads; the one that says nothing is an onlooker."""

    def stranger(_group: Group[Any], fetcher: Fetcher) -> Rejection | None:
        return None if fetcher == Fetcher() else UnknownMemberId(str(fetcher))

    monkeypatch.setitem(TYPES, CLASSIC.name, replace(CLASSIC, may_fetch=stranger))
    refused = fetch(o.OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=3))
    read = fetch(o.OffsetFetchRequestGroup(group_id="g"))

    assert refused == o.OffsetFetchResponseGroup(
        group_id="g", error_code=e.ERROR_CODE_UNKNOWN_MEMBER_ID
    )
    assert [each.partitions[0].committed_offset for each in read.topics] == [5]


def test_anybody_may_read_the_offsets_of_a_classic_group() -> None:
    """K-J19, also one that says it is a member of the other protocol."""
    found = fetch(o.OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=3))

    assert found.error_code == e.ERROR_CODE_NONE
    assert [each.partitions[0].committed_offset for each in found.topics] == [5]
