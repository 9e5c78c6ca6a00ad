"""How long a request may be: the setting in force decides, and the answer says so (S5, S7, S23)."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.server.rpc.grpc_options import MESSAGE_FLOOR, MESSAGE_MARGIN
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import Served, served

MIB = 1 << 20
LIMIT = "log.entry_bytes_max"


def leaving(size: int) -> g.LeaveGroupRequest:
    """A call about a group that is not there, of about so many bytes."""
    member = g.LeaveGroupRequestMember(member_id="nobody", reason="x" * size)
    return g.LeaveGroupRequest(group_id="g", members=[member])


async def too_long(node: Served, size: int) -> grpc.aio.AioRpcError:
    """The status with which a call of this size ends."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await node.group.LeaveGroup(leaving(size))
    return failed.value


async def is_read(node: Served, size: int) -> bool:
    """Whether a call of this size reaches its method, which then finds something else wrong."""
    try:
        await node.group.LeaveGroup(leaving(size))
    except grpc.aio.AioRpcError as error:
        return LIMIT not in (error.details() or "")
    return True


def test_s7_a_request_over_the_limit_is_told_the_limit_and_that_nothing_happened() -> None:
    """By itself gRPC says RESOURCE_EXHAUSTED, and nothing of what became of the change."""

    async def story() -> None:
        async with served() as node:
            error = await too_long(node, int(REGISTRY[LIMIT].default) + 2 * MESSAGE_MARGIN)
            trailing = dict(error.trailing_metadata() or ())

        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        told = error.details() or ""
        assert f"at most {int(REGISTRY[LIMIT].default) + MESSAGE_MARGIN} are allowed" in told
        assert f"{LIMIT} and {MESSAGE_MARGIN} more, but never below {MESSAGE_FLOOR}" in told
        assert trailing["holdfast-outcome"] == "not-applied"

    asyncio.run(story())


def test_s23_the_limit_is_the_one_in_force_and_follows_the_log_at_once() -> None:
    """Not the default, and not what held when the node started."""

    async def story() -> None:
        async with served() as node:
            before = await is_read(node, 12 * MIB)
            raised = a.AlterSettingsRequest(
                settings=[a.SettingToAlter(name=LIMIT, value=str(16 * MIB))]
            )
            answer = await node.admin.AlterSettings(raised)
            after = await is_read(node, 12 * MIB)

        assert [result.error_code for result in answer.settings] == [0]
        assert (before, after) == (False, True)

    asyncio.run(story())
