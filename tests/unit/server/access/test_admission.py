"""Rights on streams follow a revocation at once; pushes stop with them (docs: permissions)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from holdfast.coordinator.model.access import DENY, MEMBER, OPERATOR, READER, Acl, administrator
from holdfast.coordinator.model.access import GROUP as KIND
from holdfast.coordinator.model.events import AccessModeChanged, AclsChanged, LevelRaised
from holdfast.server.access.table import READS, TABLE
from holdfast.server.audit.files import read
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1.errors_pb2 import ErrorCode
from unit.server.nodes import join, served, sync

if TYPE_CHECKING:
    from pathlib import Path

    from unit.server.nodes import Served

REFUSED = ErrorCode.ERROR_CODE_GROUP_AUTHORIZATION_FAILED
MEMBERS = Acl("anonymous", MEMBER, KIND, "*")


async def joined(node: Served) -> g.JoinGroupResponse:
    """A member of a stable group, in a cluster that denies what no grant allows."""
    node.replica.slip_in(
        "",
        LevelRaised(2),
        AclsChanged((MEMBERS, administrator("root")), ()),
        AccessModeChanged(DENY),
    )
    response = await node.group.JoinGroup(join())
    await node.group.SyncGroup(sync(response))
    return response


def test_heartbeats_on_an_open_stream_are_refused_from_the_revocation_on() -> None:
    async def story() -> None:
        async with served() as node:
            member = await joined(node)
            beat = g.HeartbeatRequest(
                group_id="g", generation_id=member.generation_id, member_id=member.member_id
            )
            stream = node.group.HeartbeatStream()
            await stream.write(g.HeartbeatBatch(requests=[beat]))
            before = cast("g.HeartbeatBatchResponse", await stream.read())
            assert node.node.carriers.carried == 1

            node.replica.slip_in("", AclsChanged((), (MEMBERS,)))
            assert node.node.carriers.carried == 0, "nothing more is pushed on it"
            await stream.write(g.HeartbeatBatch(requests=[beat]))
            after = cast("g.HeartbeatBatchResponse", await stream.read())
            alone = await node.group.Heartbeat(beat)
            stream.cancel()

        assert before.responses[0].error_code == ErrorCode.ERROR_CODE_NONE
        assert after.responses[0].error_code == REFUSED
        assert alone.error_code == REFUSED

    asyncio.run(story())


def test_calls_on_an_open_session_are_refused_from_the_revocation_on() -> None:
    async def story() -> None:
        async with served() as node:
            member = await joined(node)
            beat = g.HeartbeatRequest(
                group_id="g", generation_id=member.generation_id, member_id=member.member_id
            )
            stream = node.group.Session()
            codes = []
            for number, acls in ((1, ()), (2, (MEMBERS,))):
                if acls:
                    node.replica.slip_in("", AclsChanged((), acls))
                call = g.SessionCall(number=number, heartbeat=beat)
                await stream.write(g.SessionRequest(calls=[call]))
                got = cast("g.SessionResponse", await stream.read())
                codes.append(got.answers[0].heartbeat.error_code)
            stream.cancel()

        assert codes == [ErrorCode.ERROR_CODE_NONE, REFUSED]

    asyncio.run(story())


def test_the_audit_has_who_was_refused_and_what_an_administrator_read(tmp_path: Path) -> None:
    """Changes are on the log; a reader that is no administrator leaves nothing."""

    async def story() -> None:
        async with served(audit=tmp_path) as node:
            reads = Acl("anonymous", READER, KIND, "orders")
            rules = administrator("anonymous")
            node.replica.slip_in(
                "", LevelRaised(2), AclsChanged((reads, administrator("root")), ())
            )
            node.replica.slip_in("", AccessModeChanged(DENY))
            await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=["orders", "secret"]))
            await node.group.JoinGroup(join("orders"))
            refused = await node.admin.AlterSettings(a.AlterSettingsRequest())
            assert refused.error_code == ErrorCode.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED

            node.replica.slip_in("", AclsChanged((rules,), ()))
            groups = [f"g{number}" for number in range(5)]
            await node.admin.DescribeGroups(a.DescribeGroupsRequest(groups=groups))
            await node.admin.DescribeSettings(a.DescribeSettingsRequest(group_id="orders"))
            await node.admin.CreateTopics(a.CreateTopicsRequest())

    asyncio.run(story())

    told = [(each["kind"], each["call"], each.get("on", "")) for each in read(tmp_path)]
    assert told == [
        ("denied", "DescribeGroups", "group 'secret'"),
        ("denied", "JoinGroup", "group 'orders'"),
        ("denied", "AlterSettings", "cluster"),
        ("read", "DescribeGroups", "g0, g1, g2 and 2 more"),
        ("read", "DescribeSettings", "orders"),
    ]
    assert {each["principal"] for each in read(tmp_path)} == {"anonymous"}


def test_every_call_that_is_audited_is_in_the_table() -> None:
    assert set(TABLE) >= READS


def test_who_may_describe_a_group_sees_its_members_principals_and_nobody_else_does() -> None:
    """Principals are names of others: who may not read the group gets nothing of it."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            asked = a.DescribeGroupsRequest(groups=["g"])
            [seen] = (await node.admin.DescribeGroups(asked)).groups
            node.replica.slip_in("", AclsChanged((), (MEMBERS,)))
            [refused] = (await node.admin.DescribeGroups(asked)).groups

        assert [member.holdfast.principal for member in seen.members] == ["anonymous"]
        assert refused.error_code == REFUSED
        assert not refused.members

    asyncio.run(story())


def test_a_right_on_all_groups_is_none_on_the_settings_of_the_cluster() -> None:
    """A group without a name would be read as the cluster."""

    async def story() -> None:
        async with served() as node:
            await joined(node)
            node.replica.slip_in("", AclsChanged((Acl("anonymous", OPERATOR, KIND, "*"),), ()))
            nameless = a.DescribeSettingsRequest(group_id="")

            with pytest.raises(grpc.aio.AioRpcError, match="set but empty") as refused:
                await node.admin.DescribeSettings(nameless)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

            named = await node.admin.DescribeSettings(a.DescribeSettingsRequest(group_id="g"))
            assert named.settings

    asyncio.run(story())
