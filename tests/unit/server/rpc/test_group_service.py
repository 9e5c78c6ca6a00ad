"""GroupService over a real gRPC server, on a replica that a test controls."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from holdfast.raft.api import NotLeader, OutcomeUnknown, Overloaded
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from unit.server.nodes import HERE, OTHER, Served, beat, join, served, sync, until
from unit.server.session_calls import request_id


async def member(node: Served, instance_id: str = "i1") -> g.JoinGroupResponse:
    """Join alone and sync."""
    joined = await node.group.JoinGroup(join(instance_id=instance_id))
    assert joined.error_code == e.ERROR_CODE_NONE
    synced = await node.group.SyncGroup(sync(joined, instance_id))
    assert synced.error_code == e.ERROR_CODE_NONE
    return joined


async def trailing(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> dict[str, str]:
    """A call's trailing metadata."""
    return {key: str(value) for key, value in await call.trailing_metadata() or ()}


def test_a_grant_carries_the_index_of_the_entry_that_gave_it() -> None:
    """S13: token = recovery number * 2^48 + index; a heartbeat and the sync agree."""

    async def story() -> None:
        async with served() as node:
            joined = await node.group.JoinGroup(join())
            synced = await node.group.SyncGroup(sync(joined))
            heard = await node.group.Heartbeat(beat(joined))
            granting = next(
                record.position.index
                for record in node.replica.records
                if type(record.event).__name__ == "AssignmentStored"
            )

            assert synced.assignment == b"to " + joined.member_id.encode()
            assert synced.holdfast.fencing_token == granting
            assert synced.holdfast.position.index == granting
            assert heard.holdfast.fencing_token == granting

    asyncio.run(story())


def test_a_member_id_begins_with_the_instance_or_the_clients_name() -> None:
    """Kafka's form `<instance or client id>-<uuid>`; the name is metadata."""

    async def story() -> None:
        async with served() as node:
            named = (("holdfast-client-id", "worker"),)
            static = await node.group.JoinGroup(join(), metadata=named)
            dynamic = await node.group.JoinGroup(join("h", instance_id=None), metadata=named)

            assert static.member_id.startswith("i1-")
            assert dynamic.error_code == e.ERROR_CODE_MEMBER_ID_REQUIRED
            assert dynamic.member_id.startswith("worker-")

    asyncio.run(story())


def test_another_node_answers_not_coordinator_and_names_the_leader() -> None:
    """Where the response has a top-level code; trailing metadata in any case."""

    async def story() -> None:
        async with served(leading=False) as node:
            node.replica.step_down("node-2")
            call = node.group.JoinGroup(join())

            assert (await call).error_code == e.ERROR_CODE_NOT_COORDINATOR
            assert (await trailing(call))["holdfast-leader"] == str(OTHER)

    asyncio.run(story())


def test_a_leader_that_is_not_ready_says_that_it_is_loading() -> None:
    """S10 d: nothing is served before the log is a cluster."""

    async def story() -> None:
        async with served(leading=False) as node:
            node.replica.hold = True
            node.replica.lead()
            answer = await node.group.JoinGroup(join())

            assert answer.error_code == e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS

    asyncio.run(story())


def test_nothing_is_answered_before_it_is_committed() -> None:
    """S16: effects are carried out on commit."""

    async def story() -> None:
        async with served() as node:
            node.replica.hold = True
            call = asyncio.ensure_future(_unary(node.group.JoinGroup(join())))
            await until(lambda: bool(node.replica.proposed[-1].group_id))
            before = call.done()
            node.replica.hold = False
            node.replica.release()

            assert not before
            assert (await call).error_code == e.ERROR_CODE_NONE

    asyncio.run(story())


async def _unary(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> Any:  # noqa: ANN401 - its response
    return await call


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (OutcomeUnknown("lost"), grpc.StatusCode.UNAVAILABLE, "unknown"),
        (Overloaded("full"), grpc.StatusCode.RESOURCE_EXHAUSTED, "not-applied"),
    ],
)
def test_every_failure_says_whether_the_change_may_have_happened(
    error: Exception, status: grpc.StatusCode, outcome: str
) -> None:
    """S5: trailing metadata with every status but OK."""

    async def story() -> None:
        async with served() as node:
            node.replica.fail_next = error
            call = node.group.JoinGroup(join())
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call

            assert failed.value.code() is status
            assert (await trailing(call))["holdfast-outcome"] == outcome

    asyncio.run(story())


def test_a_proposal_that_was_refused_by_an_ex_leader_is_answered_not_coordinator() -> None:
    """S5: never in the log, so another node may be asked with the same request id."""

    async def story() -> None:
        async with served() as node:
            node.replica.fail_next = NotLeader("node-2")
            answer = await node.group.JoinGroup(join())

            assert answer.error_code == e.ERROR_CODE_NOT_COORDINATOR

    asyncio.run(story())


def test_a_parked_sync_is_answered_not_coordinator_when_the_lead_is_lost() -> None:
    """S5, K-L16: the caller repeats it, elsewhere, with the same request id."""

    async def story() -> None:
        async with served() as node:
            leader, follower = await two_members(node)
            parked = asyncio.ensure_future(_unary(node.group.SyncGroup(sync(follower, "i2"))))
            await until(lambda: len(node.node.actors.calls) > 0)
            node.replica.step_down("node-2")
            answer = await parked

            assert leader.members
            assert answer.error_code == e.ERROR_CODE_NOT_COORDINATOR

    asyncio.run(story())


async def two_members(node: Served) -> tuple[g.JoinGroupResponse, g.JoinGroupResponse]:
    """Two static members in one generation, nobody synced; the leader comes first."""
    first = await member(node)
    second = asyncio.ensure_future(_unary(node.group.JoinGroup(join(instance_id="i2"))))
    await until(lambda: node.replica.state.groups["g"].state == "PreparingRebalance")
    again = await node.group.JoinGroup(join(member_id=first.member_id))
    return again, await second


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (join(request_id="not-a-uuid"), "holdfast.request_id"),
        (join(member_id="x" * 5_000), "member_id"),
        (join(instance_id="x\0y"), "group_instance_id"),
    ],
)
def test_what_is_malformed_is_named_with_its_limit(
    request_: g.JoinGroupRequest, field: str
) -> None:
    """INVALID_ARGUMENT where Kafka has no code for it."""

    async def story() -> None:
        async with served() as node:
            call = node.group.JoinGroup(request_)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call

            assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert field in (failed.value.details() or "")
            assert (await trailing(call))["holdfast-outcome"] == "not-applied"

    asyncio.run(story())


def test_an_empty_group_id_has_kafkas_code() -> None:
    """K-I6."""

    async def story() -> None:
        async with served() as node:
            answer = await node.group.JoinGroup(join(group_id=""))

            assert answer.error_code == e.ERROR_CODE_INVALID_GROUP_ID

    asyncio.run(story())


def test_s17_a_cancelled_join_is_un_parked() -> None:
    """S17: the member's session runs again, so the group does not wait for it for ever."""

    async def story() -> None:
        async with served() as node:
            await member(node)
            call = node.group.JoinGroup(join(instance_id="i2"))
            await until(lambda: node.replica.state.groups["g"].state == "PreparingRebalance")
            actor = node.node.actors.actor("g")
            assert actor is not None
            await until(lambda: any(p.call for p in actor.volatile.joins.values()))
            call.cancel()
            await until(lambda: not any(p.call for p in actor.volatile.joins.values()))

            assert len(node.node.actors.calls) == 0

    asyncio.run(story())


def test_a_lone_retry_of_a_join_gets_the_same_member_id() -> None:
    """S14: a request id finds the member, and the answer is built anew."""

    async def story() -> None:
        async with served() as node:
            same = join(request_id=request_id())
            first = await node.group.JoinGroup(same)
            again = await node.group.JoinGroup(same)

            assert (first.member_id, first.generation_id) == (again.member_id, again.generation_id)

    asyncio.run(story())


def test_find_coordinator_gives_the_leader_and_the_log_time() -> None:
    """S15: with the log time a client begins its request ids."""

    async def story() -> None:
        async with served() as node:
            found = await node.group.FindCoordinator(
                g.FindCoordinatorRequest(coordinator_keys=["g"])
            )

            assert (found.coordinators[0].host, found.coordinators[0].port) == HERE
            assert found.coordinators[0].node_id == 1
            assert found.holdfast.log_time_ms == node.replica.log_time_ms()

    asyncio.run(story())


def test_a_node_without_a_cluster_gives_no_log_time() -> None:
    """S15: its log is empty, so all it could give is a time that makes every request id too old.

    Found by the simulator (seed 1): a client that asked before the bootstrap had ended made such
    ids for ever after.
    """

    async def story() -> None:
        async with served(leading=False) as node:
            found = await node.group.FindCoordinator(
                g.FindCoordinatorRequest(coordinator_keys=["g"])
            )

            assert not found.holdfast.HasField("log_time_ms")

    asyncio.run(story())


def test_without_a_leader_find_coordinator_says_so() -> None:
    async def story() -> None:
        async with served(leading=False) as node:
            found = await node.group.FindCoordinator(
                g.FindCoordinatorRequest(coordinator_keys=["g"])
            )

            code = found.coordinators[0].error_code
            assert code == e.ERROR_CODE_COORDINATOR_NOT_AVAILABLE

    asyncio.run(story())
