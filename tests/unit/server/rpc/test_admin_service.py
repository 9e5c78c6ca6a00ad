"""AdminService over a real gRPC server: describing, explaining, removing (KIP-345, G, K)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest

from harness.poll import until_told
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.server.rpc.nodes import BUILD
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1.errors_pb2 import ErrorCode
from unit.server.nodes import Served, beat, join, served, sync, until
from unit.server.session_calls import request_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NONE = ErrorCode.ERROR_CODE_NONE
UNKNOWN = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID


async def members(node: Served, names: Sequence[str]) -> list[g.JoinGroupResponse]:
    """Static members of one group in one generation, each with an assignment."""
    joined: list[g.JoinGroupResponse] = []
    first = await node.group.JoinGroup(join(instance_id=names[0]))
    await node.group.SyncGroup(sync(first, names[0]))
    for name in names[1:]:
        joining = asyncio.ensure_future(node.group.JoinGroup(join(instance_id=name)))
        await arrived(node, 2 + len(joined))
        joined = [*joined, await _rejoined(node, [first, *joined], names, joining)]
        await _all_sync(node, [first, *joined], names)
    return [first, *joined]


async def arrived(node: Served, count: int) -> None:
    """Wait until the group has so many members: a call sent later may be taken up earlier."""

    async def there() -> bool:
        return len((await described(node)).members) == count

    await until_told(there, f"{count} members")


async def _rejoined(
    node: Served,
    there: Sequence[g.JoinGroupResponse],
    names: Sequence[str],
    joining: asyncio.Future[g.JoinGroupResponse],
) -> g.JoinGroupResponse:
    """Everyone who is there joins again, so that the newcomer's join is answered."""
    again = [
        node.group.JoinGroup(join(member_id=each.member_id, instance_id=name))
        for each, name in zip(there, names, strict=False)
    ]
    answered = [await call for call in again]
    for each, anew in zip(there, answered, strict=True):
        each.CopyFrom(anew)
    return await joining


async def _all_sync(
    node: Served, there: Iterable[g.JoinGroupResponse], names: Sequence[str]
) -> None:
    calls = [
        node.group.SyncGroup(sync(each, name)) for each, name in zip(there, names, strict=False)
    ]
    for call in calls:
        assert (await call).error_code == NONE


async def remove(node: Served, **request: object) -> a.RemoveMembersResponse:
    asked = a.RemoveMembersRequest(group_id="g", reason="node retired", **request)  # type: ignore[arg-type]  # the message checks
    return await node.admin.RemoveMembers(asked)


async def described(node: Served, rebalances: int = 10) -> a.DescribedGroup:
    extras = x.RequestExtras(rebalances_max=rebalances)
    request = a.DescribeGroupsRequest(groups=["g"], holdfast=extras)
    return (await node.admin.DescribeGroups(request)).groups[0]


def started(node: Served) -> int:
    """How many join phases were opened."""
    kinds = [type(record.event).__name__ for record in node.replica.records]
    return kinds.count("RebalanceStarted")


def test_g23_two_dead_members_are_removed_by_one_rebalance() -> None:
    async def story() -> None:
        async with served() as node:
            await members(node, ["i1", "i2", "i3"])
            before = started(node)
            answer = await remove(
                node,
                members=[
                    a.MemberToRemove(group_instance_id="i2"),
                    a.MemberToRemove(group_instance_id="ghost"),
                    a.MemberToRemove(group_instance_id="i3"),
                ],
            )
            assert [each.error_code for each in answer.members] == [NONE, UNKNOWN, NONE]
            assert answer.members[1].error_message
            assert started(node) == before + 1

            last = (await described(node)).holdfast.rebalances[0]
            assert (last.rule, last.reason) == ("G23", "node retired")
            assert [(c.name, c.how) for c in last.changes] == [("i2", "removed"), ("i3", "removed")]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("request_", "gone"),
    [({"instance_prefix": "a-"}, ["a-1", "a-2"]), ({"all": True}, ["a-1", "a-2", "b-1"])],
)
def test_a_prefix_or_all_is_one_removal_too(request_: dict[str, object], gone: list[str]) -> None:
    """Who is meant is seen when it is decided; the answer names them (K-G24)."""

    async def story() -> None:
        async with served() as node:
            await members(node, ["a-1", "a-2", "b-1"])
            before = started(node)
            answer = await remove(node, **request_)
            assert [each.group_instance_id for each in answer.members] == gone
            assert {each.error_code for each in answer.members} == {NONE}
            assert started(node) == before + 1

    asyncio.run(story())


@pytest.mark.parametrize("request_", [{"instance_prefix": "a-"}, {"all": True}], ids=str)
def test_members_that_have_closed_are_removed_without_their_names(
    request_: dict[str, object],
) -> None:
    """S12, K-G24: a restart that was announced ends nobody's right to remove the binding."""

    async def story() -> None:
        async with served() as node:
            for each, name in zip(await members(node, ["a-1", "a-2"]), ["a-1", "a-2"], strict=True):
                last = beat(each, name)
                last.holdfast.release = True
                assert (await node.group.Heartbeat(last)).error_code == NONE
            assert all(each.holdfast.released for each in (await described(node)).members)
            answer = await remove(node, **request_)
            assert [each.group_instance_id for each in answer.members] == ["a-1", "a-2"]
            assert {each.error_code for each in answer.members} == {NONE}
            assert (await described(node)).group_state == "Empty"

    asyncio.run(story())


def test_g8_an_operator_is_told_what_an_operator_can_do() -> None:
    """The sentence of a fenced process tells that process to stop; an operator's says more."""

    async def story() -> None:
        async with served() as node:
            (holder,) = await members(node, ["i1"])
            pair = a.MemberToRemove(member_id="i1-old", group_instance_id="i1")
            (told,) = (await remove(node, members=[pair])).members
            assert told.error_code == ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
            assert repr(holder.member_id) in told.error_message
            assert "instance id alone" in told.error_message
            assert "Stop this process" not in told.error_message

    asyncio.run(story())


def test_g1_an_absent_group_is_no_error_of_the_call() -> None:
    async def story() -> None:
        async with served() as node:
            named = await remove(node, members=[a.MemberToRemove(member_id="m")])
            everyone = await remove(node, all=True)
            assert named.error_code == everyone.error_code == NONE
            assert [each.error_code for each in named.members] == [UNKNOWN]
            assert list(everyone.members) == []

    asyncio.run(story())


def test_an_entry_that_names_nobody_is_refused_and_logged_with_its_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KIP-345: a tool that sends it is broken, and somebody has to find it."""

    async def story() -> None:
        async with served() as node:
            await members(node, ["i1"])
            request = a.RemoveMembersRequest(group_id="g", members=[a.MemberToRemove()])
            metadata = (("holdfast-client-id", "old-tool"),)
            answer = await node.admin.RemoveMembers(request, metadata=metadata)
            assert [each.error_code for each in answer.members] == [UNKNOWN]
            assert "names nobody" in answer.members[0].error_message

    asyncio.run(story())
    assert "'old-tool'" in caplog.text
    assert "'anonymous'" in caplog.text


@pytest.mark.parametrize(
    "request_",
    [
        {"all": True, "instance_prefix": "a"},
        {"all": True, "members": [a.MemberToRemove(member_id="m")]},
        {"instance_prefix": ""},
    ],
)
def test_a_removal_says_one_thing(request_: dict[str, object]) -> None:
    async def story() -> None:
        async with served() as node:
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await remove(node, **request_)
            assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(story())


def test_the_leader_tells_how_much_of_a_session_is_left() -> None:
    """A binding that lingers after a downgrade shows in that nobody speaks for it (K-H1)."""

    async def story() -> None:
        async with served() as node:
            await members(node, ["i1"])
            found = (await described(node)).members[0].holdfast
            assert found.HasField("session_left_ms")
            assert 0 < found.session_left_ms <= found.session_timeout_ms == 10_000

    asyncio.run(story())


def test_a_parked_members_session_is_not_told() -> None:
    """K-A23: it is suspended, so nothing is left or lost of it."""

    async def story() -> None:
        async with served() as node:
            await members(node, ["i1"])
            parked = asyncio.ensure_future(node.group.JoinGroup(join(instance_id="i2")))
            await arrived(node, 2)
            found = await described(node)
            by_name = {each.group_instance_id: each.holdfast for each in found.members}
            assert not by_name["i2"].HasField("session_left_ms")
            assert by_name["i1"].HasField("session_left_ms")
            assert not found.holdfast.rebalances[0].HasField("join_phase_ms")
            parked.cancel()

    asyncio.run(story())


@pytest.mark.parametrize(("asked", "told"), [(None, 1), (0, 0), (2, 2), (99, 3)])
def test_as_many_rebalances_are_told_as_asked_for(asked: int | None, told: int) -> None:
    async def story() -> None:
        async with served() as node:
            await members(node, ["i1", "i2", "i3"])
            extras = None if asked is None else x.RequestExtras(rebalances_max=asked)
            request = a.DescribeGroupsRequest(groups=["g"], holdfast=extras)
            found = (await node.admin.DescribeGroups(request)).groups[0].holdfast.rebalances
            generations = [each.generation_id for each in found]
            assert generations == [3, 2, 1][:told]

    asyncio.run(story())


def test_k14_groups_are_deleted_one_by_one_and_say_why_not() -> None:
    async def story() -> None:
        async with served() as node:
            await members(node, ["i1"])
            request = a.DeleteGroupsRequest(groups_names=["g", "nosuch"])
            answer = await node.admin.DeleteGroups(request)
            codes = [each.error_code for each in answer.results]
            assert codes == [
                ErrorCode.ERROR_CODE_NON_EMPTY_GROUP,
                ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND,
            ]
            assert "members" in answer.results[0].holdfast.message
            assert "nosuch" in answer.results[1].holdfast.message

    asyncio.run(story())


def test_an_upgrade_is_not_ended_while_it_is_unknown_what_a_node_runs() -> None:
    """S3: that node could not read what would be written then."""

    async def story() -> None:
        async with served() as node:
            answer = await node.admin.FinishUpgrade(a.FinishUpgradeRequest())
            assert answer.error_code == ErrorCode.ERROR_CODE_INVALID_REQUEST
            assert "the leader is not connected with 'node-2'" in answer.holdfast.message
            assert node.replica.state.level == 1

    asyncio.run(story())


def test_an_upgrade_that_is_ended_raises_the_level_once() -> None:
    async def story() -> None:
        async with served() as node:
            node.node._nodes._builds = lambda: {"node-2": BUILD}
            for _ in range(2):
                answer = await node.admin.FinishUpgrade(a.FinishUpgradeRequest())
                assert (answer.error_code, answer.level) == (NONE, LEVEL_MAX)
            events = [type(record.event).__name__ for record in node.replica.records]
            assert events.count("LevelRaised") == 1

    asyncio.run(story())


def test_s15_the_end_of_an_upgrade_is_not_refused_while_the_same_request_is_under_way() -> None:
    """Its commit may be slow: to say that nothing was raised would be wrong a moment later."""

    async def story() -> None:
        async with served() as node:
            request = a.FinishUpgradeRequest(holdfast=x.RequestExtras(request_id=request_id()))
            node.node._nodes._builds = lambda: {"node-2": BUILD}
            node.replica.hold = True
            first = asyncio.ensure_future(node.admin.FinishUpgrade(request))
            await until(lambda: node.replica.waits)
            node.node._nodes._builds = dict
            again = asyncio.ensure_future(node.admin.FinishUpgrade(request))
            await until(lambda: len(node.node.actors.calls) == 2)
            node.replica.hold = False
            node.replica.release()
            for answer in (await first, await again):
                assert (answer.error_code, answer.level) == (NONE, LEVEL_MAX)

    asyncio.run(story())


def test_s24_a_verified_backup_is_reported_and_another_clusters_is_refused() -> None:
    async def story() -> None:
        async with served() as node:
            node.node._nodes._builds = lambda: {"node-2": BUILD}
            await node.admin.FinishUpgrade(a.FinishUpgradeRequest())
            name, index = node.replica.state.cluster_id, node.replica.state.applied_index
            for asked, answered in ((index, index), (index - 1, index)):
                request = a.ReportBackupRequest(cluster_id=name, index=asked)
                answer = await node.admin.ReportBackup(request)
                assert (answer.error_code, answer.index) == (NONE, answered)
            foreign = await node.admin.ReportBackup(a.ReportBackupRequest(cluster_id="x", index=1))
            assert foreign.error_code == ErrorCode.ERROR_CODE_INVALID_REQUEST
            assert "of cluster 'x'" in foreign.holdfast.message

    asyncio.run(story())


def test_s15_an_upgrade_that_was_ended_is_told_again_though_a_node_has_gone_since() -> None:
    """The first answer may be lost, and to say that nothing was raised would be wrong."""

    async def story() -> None:
        async with served() as node:
            request = a.FinishUpgradeRequest(holdfast=x.RequestExtras(request_id=request_id()))
            node.node._nodes._builds = lambda: {"node-2": BUILD}
            first = await node.admin.FinishUpgrade(request)
            node.node._nodes._builds = dict
            again = await node.admin.FinishUpgrade(request)
            assert (first.error_code, first.level) == (NONE, LEVEL_MAX)
            assert (again.error_code, again.level) == (NONE, LEVEL_MAX)

    asyncio.run(story())
