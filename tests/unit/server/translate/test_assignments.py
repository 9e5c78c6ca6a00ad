"""The picture of a group for an assignor in a member: how much of a group it can hold (S7)."""

from __future__ import annotations

import asyncio
from typing import cast

from holdfast.client._translate.client_assignor import read_picture
from holdfast.coordinator.model.described import PreparedAssignment, PreparedMember
from holdfast.coordinator.model.member_profile import ClientAssignor
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import assignments
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g

SAID = ClientAssignor("own", 0, 0, 0, 0, b"")


def picture(members: tuple[PreparedMember, ...], topics: tuple[str, ...]) -> PreparedAssignment:
    sizes = tuple((name, 1) for name in topics)
    return PreparedAssignment(3, "own", 0, members, sizes, frozenset(topics))


def encoded(found: PreparedAssignment) -> g.PrepareAssignmentResponse:
    raw = asyncio.run(assignments.prepared(found, x.ResponseExtras(), Slices()))
    return g.PrepareAssignmentResponse.FromString(cast("bytes", raw))  # it is made as bytes


def test_adr58_a_thousand_members_of_one_expression_may_want_a_thousand_topics() -> None:
    """Named with each member, they are 22 MiB: too large for each that is chosen, for ever."""
    topics = tuple(f"warehouse.documents.{number:04}" for number in range(1_000))
    members = tuple(
        PreparedMember(f"{number:036}", 1, None, None, topics, SAID, ()) for number in range(1_000)
    )
    response = encoded(picture(members, topics))

    assert response.ByteSize() < 200_000
    assert list(response.topic_lists) == [g.PrepareAssignmentResponseTopicList(topics=range(1_000))]
    seen, counts = read_picture(response)
    assert list(counts) == list(topics)
    assert [each.topics for each in seen] == [frozenset(topics)] * 1_000


def test_adr58_each_member_gets_its_own_list_back() -> None:
    """Lists that differ in one topic are two; one that wants nothing has the empty one."""
    wanted: tuple[tuple[str, ...], ...] = (("t", "u"), ("u",), (), ("t", "u"))
    lists = {each: each for each in wanted}  # those that want the same share one, as in the core
    members = tuple(
        PreparedMember(f"m{number}", 1, None, None, lists[each], SAID, ())
        for number, each in enumerate(wanted)
    )
    response = encoded(picture(members, ("t", "u")))

    assert len(response.topic_lists) == 3
    assert [tuple(sorted(each.topics)) for each in read_picture(response)[0]] == list(wanted)
