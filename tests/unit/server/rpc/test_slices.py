"""Long answers are made in slices, from one state, and are refused before they grow too long.

Items of a slice are counted here, never time. What a slice may hold was chosen so that it takes
less than 10 ms.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import pytest

from holdfast.coordinator.classic.state import ClassicBody, Member
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.state import Group, Offset, State
from holdfast.coordinator.structures.pmap import PMap
from holdfast.server.guard import answer_size
from holdfast.server.guard.item_bounds import LEAVING_MAX
from holdfast.server.rpc import listing, slices
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from unit.server.nodes import Served

MEMBERS = 1_000
GROUPS = 5_000
TOPICS = 3_000
OFFSETS = 3_000


def member(member_id: str, joined_seq: int) -> Member:
    return Member(
        member_id, None, MemberProfile("c", "/h", 10_000, 10_000, ()), "", joined_seq, since_ms=0
    )


def large(state: State) -> State:
    """A state with much of everything."""
    members = PMap((f"m-{n:05}", member(f"m-{n:05}", MEMBERS - n)) for n in range(MEMBERS))
    offsets = PMap((TopicPartition("t-0", n), Offset(n, -1, "", 0)) for n in range(OFFSETS))
    named = {f"g-{n:05}": new_group(f"g-{n:05}") for n in range(GROUPS)}
    named["crowd"] = Group("crowd", "classic", ClassicBody(members=members), offsets=offsets)
    topics = PMap((f"t-{n}", TopicSize(f"t-{n}", OFFSETS)) for n in range(TOPICS))
    return state._replace(groups=PMap(named), topics=topics)


class Turns:
    """How many items were worked on between two turns of the loop."""

    def __init__(self) -> None:
        self.items: list[int] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def give_way(self, done: int) -> None:
        """In place of the real one: count, let something happen, and let the loop turn."""
        self.items.append(done)
        self.meanwhile()
        await asyncio.sleep(0)


@asynccontextmanager
async def counted() -> AsyncIterator[tuple[Served, Turns]]:
    """A node with a large state; what it does from now on is counted."""
    turns = Turns()
    async with served() as node:
        node.replica.state = large(node.replica.state)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(slices, "give_way", turns.give_way)
            yield node, turns


NOBODY = g.HeartbeatRequest(group_id="crowd", member_id="x")
CALLS: dict[str, tuple[int, int, Callable[[Served], Awaitable[object]]]] = {
    "DescribeGroups, one large group": (
        MEMBERS,
        slices.MADE_MAX,
        lambda node: node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["crowd"])),
    ),
    "DescribeGroups, many groups": (
        GROUPS,
        slices.MADE_MAX,
        lambda node: node.admin.DescribeGroups(
            a.DescribeGroupsRequest(groups=[f"g-{n:05}" for n in range(GROUPS)])
        ),
    ),
    "ListGroups": (
        GROUPS,
        listing.LINES_MAX,
        lambda node: node.admin.ListGroups(a.ListGroupsRequest()),
    ),
    "ListGroups, a filter that fits none": (
        GROUPS,
        listing.LINES_MAX,
        lambda node: node.admin.ListGroups(a.ListGroupsRequest(states_filter=["Stable"])),
    ),
    "ListTopics": (
        TOPICS,
        listing.LINES_MAX,
        lambda node: node.admin.ListTopics(a.ListTopicsRequest()),
    ),
    "OffsetFetch, all of a group": (
        OFFSETS,
        slices.MADE_MAX,
        lambda node: node.offset.OffsetFetch(
            o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="crowd")])
        ),
    ),
    "OffsetFetch, partitions by number": (
        OFFSETS,
        slices.MADE_MAX,
        lambda node: node.offset.OffsetFetch(
            o.OffsetFetchRequest(
                groups=[
                    o.OffsetFetchRequestGroup(
                        group_id="nobody's",
                        topics=[
                            o.OffsetFetchRequestTopic(name="t-0", partition_indexes=range(OFFSETS))
                        ],
                    )
                ]
            )
        ),
    ),
    "OffsetFetch, many groups": (
        1_000,
        slices.MADE_MAX,
        lambda node: node.offset.OffsetFetch(
            o.OffsetFetchRequest(
                groups=[o.OffsetFetchRequestGroup(group_id=f"g-{n:05}") for n in range(1_000)]
            )
        ),
    ),
    "DeleteGroups": (
        1_000,
        slices.MADE_MAX,
        lambda node: node.admin.DeleteGroups(
            a.DeleteGroupsRequest(groups_names=[f"g-{n:05}" for n in range(1_000)])
        ),
    ),
    "LeaveGroup": (
        2 * (LEAVING_MAX - slices.SEEN_MAX),
        slices.SEEN_MAX,
        lambda node: node.group.LeaveGroup(
            g.LeaveGroupRequest(
                group_id="crowd",
                members=[g.LeaveGroupRequestMember(member_id=f"x{n}") for n in range(LEAVING_MAX)],
            )
        ),
    ),
    "RemoveMembers": (
        2 * (LEAVING_MAX - slices.SEEN_MAX),
        slices.SEEN_MAX,
        lambda node: node.admin.RemoveMembers(
            a.RemoveMembersRequest(
                group_id="crowd",
                members=[a.MemberToRemove(member_id=f"x{n}") for n in range(LEAVING_MAX)],
            )
        ),
    ),
    "FindCoordinator": (
        1_000,
        slices.MADE_MAX,
        lambda node: node.group.FindCoordinator(
            g.FindCoordinatorRequest(coordinator_keys=["k"] * 1_000)
        ),
    ),
    "a batch of heartbeats of nobody": (
        2_000,
        slices.MADE_MAX,
        lambda node: node.group.HeartbeatStream(
            iter([g.HeartbeatBatch(requests=[NOBODY] * 2_000)])
        ).read(),
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_loop_has_its_turn_after_so_many_items(call: str) -> None:
    """None is worked on in one go, however many are named."""
    items, most, ask = CALLS[call]

    async def story() -> Turns:
        async with counted() as (node, turns):
            await ask(node)
        return turns

    turns = asyncio.run(story())
    made = [count for count in turns.items if count <= most]
    assert items - most <= sum(made) <= 3 * items, "looked at, put in order, and made into messages"
    assert max(turns.items) <= max(most, slices.SEEN_MAX)


def test_an_answer_is_of_one_state_whatever_happens_between_its_slices() -> None:
    async def story() -> None:
        async with counted() as (node, turns):
            whole = node.replica.state

            def lose_everything() -> None:
                node.replica.state = whole._replace(groups=PMap())

            turns.meanwhile = lose_everything
            groups = await node.admin.ListGroups(a.ListGroupsRequest())
            node.replica.state = whole
            crowd = await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["crowd"]))

        assert len(turns.items) > 2
        assert len(groups.groups) == GROUPS + 1
        assert [m.member_id for m in crowd.groups[0].members] == sorted(
            (f"m-{n:05}" for n in range(MEMBERS)), reverse=True
        )

    asyncio.run(story())


TOO_LARGE: dict[str, Callable[[Served], Awaitable[object]]] = {
    "name fewer groups, or ask": lambda node: node.admin.DescribeGroups(
        a.DescribeGroupsRequest(groups=["crowd"])
    ),
    "in pages": lambda node: node.admin.ListGroups(a.ListGroupsRequest()),
    "holdfast.page_size": lambda node: node.admin.ListTopics(a.ListTopicsRequest()),
    "name fewer groups, or topics": lambda node: node.offset.OffsetFetch(
        o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="crowd")])
    ),
}


@pytest.mark.parametrize("advice", TOO_LARGE)
def test_an_answer_that_no_channel_takes_is_refused_with_what_to_do(
    advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is made, not when it is whole; and never is a first part sent as the whole."""
    monkeypatch.setattr(answer_size, "ANSWER_BYTES_MAX", 20_000)

    async def story() -> Turns:
        async with counted() as (node, turns):
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await TOO_LARGE[advice](node)
            trailing = dict(failed.value.trailing_metadata() or ())

            assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert advice in (failed.value.details() or "")
            assert trailing["holdfast-outcome"] == "not-applied"
            assert trailing["holdfast-retry"] == "no"
        return turns

    made = [count for count in asyncio.run(story()).items if count < slices.SEEN_MAX]
    assert sum(made) <= MEMBERS


def test_one_group_named_again_and_again_is_made_once_and_answered_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bytes of all answers count."""

    async def story() -> None:
        async with counted() as (node, turns):
            again = a.DescribeGroupsRequest(groups=["crowd"] * 3)
            found = await node.admin.DescribeGroups(again)
            monkeypatch.setattr(answer_size, "ANSWER_BYTES_MAX", found.ByteSize() // 2)
            with pytest.raises(grpc.aio.AioRpcError, match="more than"):
                await node.admin.DescribeGroups(again)

        assert [len(group.members) for group in found.groups] == [MEMBERS] * 3
        assert found.groups[0] == found.groups[2]
        assert sum(count for count in turns.items if count <= slices.MADE_MAX) < 2.5 * MEMBERS

    asyncio.run(story())


def test_pieces_that_were_made_apart_are_the_message() -> None:
    """An answer made as bytes reads as if it had been made whole; the extras as well."""
    room = answer_size.Room("")
    inner = answer_size.Encoded(a.DescribedGroup(group_id="g"), room)
    inner.add(a.DescribedGroup.MEMBERS_FIELD_NUMBER, a.DescribedGroupMember(member_id="m" * 300))
    whole = answer_size.Encoded(a.DescribeGroupsResponse(), room)
    whole.put(a.DescribeGroupsResponse.GROUPS_FIELD_NUMBER, inner.encoded())
    whole.add(100, x.ResponseExtras(age_ms=7))

    assert a.DescribeGroupsResponse.FromString(whole.encoded()) == a.DescribeGroupsResponse(
        groups=[
            a.DescribedGroup(group_id="g", members=[a.DescribedGroupMember(member_id="m" * 300)])
        ],
        holdfast=x.ResponseExtras(age_ms=7),
    )


def test_a_large_list_is_ordered_in_slices() -> None:
    """As `sorted` would, also for what is equal."""
    turns = Turns()
    given = [(n * 7919 % 100, n) for n in range(3 * slices.SEEN_MAX)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "give_way", turns.give_way)
        found = asyncio.run(slices.ordered(given, lambda pair: pair[0]))

    assert found == sorted(given, key=lambda pair: pair[0])
    assert len(turns.items) >= 4
