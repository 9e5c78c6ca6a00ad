"""S25: the calls that change the nodes: what they refuse, and that each may be repeated."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import NODE_CHANGES
from holdfast.raft.api import DiskLow, EngineStopped, NotLeader, OutcomeUnknown, Overloaded
from holdfast.raft.membership import ChangeRefused
from holdfast.server.audit.files import read
from holdfast.v1 import admin_pb2 as a
from holdfast.v1.errors_pb2 import ErrorCode
from unit.server.nodes import OTHER, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from google.protobuf.message import Message

    from unit.server.nodes import Served

NONE, REFUSED = ErrorCode.ERROR_CODE_NONE, ErrorCode.ERROR_CODE_INVALID_REQUEST
NEW = a.AddNodeRequest(name="node-3", client_address="h3:1", peer_address="h3:2")
PROMOTE = a.PromoteNodeRequest(name="node-3")
REMOVE = a.RemoveNodeRequest(name="node-3")


@asynccontextmanager
async def node_at_level(
    level: int = NODE_CHANGES, audit: Path | None = None
) -> AsyncIterator[Served]:
    """A node that leads a cluster at a level; by its file the cluster is node-1 and node-2."""
    async with served(audit=audit) as node:
        if level > node.replica.state.level:
            node.replica.slip_in("", LevelRaised(level))
        yield node


def names(node: Served) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Who votes, who learns, and who was removed."""
    now = node.replica.membership
    return now.voter_names, tuple(each.name for each in now.learners), now.removed


def uncommitted(node: Served) -> None:
    """Have the log hold the membership in force in an entry that is not committed."""
    status = node.replica.status()
    node.replica.status = lambda: replace(status, membership_index=status.commit_index + 1)  # type: ignore[method-assign]  # of a stand-in


def test_a_node_is_added_promoted_and_removed() -> None:
    async def story() -> None:
        async with node_at_level() as node:
            added = await node.admin.AddNode(NEW)
            assert names(node) == (("node-1", "node-2"), ("node-3",), ())
            learner = node.replica.membership.learners[0]
            assert (learner.client_address, learner.peer_address) == ("h3:1", "h3:2")
            promoted = await node.admin.PromoteNode(PROMOTE)
            assert names(node) == (("node-1", "node-2", "node-3"), (), ())
            removed = await node.admin.RemoveNode(REMOVE)
            assert names(node) == (("node-1", "node-2"), (), ("node-3",))
            for answer in (added, promoted, removed):
                assert (answer.error_code, answer.already) == (NONE, False)

    asyncio.run(story())


def test_s5_a_change_whose_answer_was_lost_is_asked_for_again() -> None:
    """It is answered as done, and nothing is changed by it."""

    async def story() -> None:
        async with node_at_level() as node:
            # Added again, node-3 is a voter by then, and that very node.
            for request in (NEW, PROMOTE, NEW, REMOVE):
                await asked(node, request)
                before = node.replica.membership
                again = await asked(node, request)
                assert (again.error_code, again.already) == (NONE, True)
                assert node.replica.membership is before

    asyncio.run(story())


def test_what_may_yet_be_undone_is_not_answered_as_done() -> None:
    """S25 a: it is in force before it is committed, and another leader may replace it."""

    async def story() -> None:
        async with node_at_level() as node:
            await node.admin.AddNode(NEW)
            uncommitted(node)
            answer = await node.admin.AddNode(NEW)
            assert (answer.error_code, answer.already) == (REFUSED, False)
            assert answer.may_pass_later
            assert "not committed yet" in answer.holdfast.message

    asyncio.run(story())


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (a.AddNodeRequest(name="node-2", client_address="h:1", peer_address="h:2"), "has a node"),
        (a.PromoteNodeRequest(name="node-9"), "there is no learner 'node-9'"),
        (a.RemoveNodeRequest(name="node-9"), "there is no node 'node-9'"),
    ],
)
def test_what_the_membership_forbids_is_refused_for_good(request_: Message, told: str) -> None:
    async def story() -> None:
        async with node_at_level() as node:
            before = node.replica.membership
            answer = await asked(node, request_)
            assert (answer.error_code, answer.may_pass_later) == (REFUSED, False)
            assert told in answer.holdfast.message
            assert node.replica.membership is before

    asyncio.run(story())


def test_s25c_the_addresses_of_a_learner_are_corrected_and_those_of_a_voter_are_told() -> None:
    """A wrong address costs neither name nor certificate; the answer says which are on the log."""
    right = a.AddNodeRequest(name="node-3", client_address="h3:1", peer_address="h3:4")

    async def story() -> None:
        async with node_at_level() as node:
            await node.admin.AddNode(NEW)
            corrected = await node.admin.AddNode(right)
            assert (corrected.error_code, corrected.already) == (NONE, False)
            assert node.replica.membership.learners[0].peer_address == "h3:4"
            assert (await node.admin.AddNode(right)).already
            await node.admin.PromoteNode(PROMOTE)
            refused = await node.admin.AddNode(NEW)
            assert (refused.error_code, refused.may_pass_later) == (REFUSED, False)
            assert "a voter that other nodes reach at h3:4" in refused.holdfast.message

    asyncio.run(story())


@pytest.mark.parametrize(
    "request_",
    [
        a.AddNodeRequest(name="node-3", client_address="h3:1", peer_address=str(OTHER)),
        a.AddNodeRequest(name="node-3", client_address=str(OTHER), peer_address="h3:2"),
    ],
)
def test_s25c_an_address_of_one_of_the_first_nodes_is_refused(request_: a.AddNodeRequest) -> None:
    """The log does not tell theirs: this node's file does."""

    async def story() -> None:
        async with node_at_level() as node:
            answer = await node.admin.AddNode(request_)
            assert (answer.error_code, answer.may_pass_later) == (REFUSED, False)
            assert "is the address of node 'node-2'" in answer.holdfast.message
            assert names(node) == (("node-1", "node-2"), (), ())

    asyncio.run(story())


async def asked(node: Served, request: Message) -> a.AddNodeResponse:
    """Call the method of a request; the answers of all three have the same fields."""
    method = getattr(node.admin, type(request).__name__.removesuffix("Request"))
    return cast("a.AddNodeResponse", await method(request))


def test_a_name_that_was_removed_is_never_used_again() -> None:
    """S25: an old process or disk of that name must not count for the new node."""

    async def story() -> None:
        async with node_at_level() as node:
            await node.admin.AddNode(NEW)
            await node.admin.RemoveNode(REMOVE)
            answer = await node.admin.AddNode(NEW)
            assert (answer.error_code, answer.may_pass_later) == (REFUSED, False)
            assert "its name is never used again" in answer.holdfast.message

    asyncio.run(story())


def test_a_refusal_for_what_the_leader_sees_now_says_that_it_may_pass() -> None:
    """S25 b, c: who is connected or has caught up changes by itself; a tool may wait for it."""

    async def story() -> None:
        async with node_at_level() as node:
            await node.admin.AddNode(NEW)
            node.replica.fail_next = ChangeRefused("node 'node-3' is 7 entries behind")
            answer = await node.admin.PromoteNode(PROMOTE)
            assert (answer.error_code, answer.may_pass_later) == (REFUSED, True)
            assert "7 entries behind" in answer.holdfast.message

    asyncio.run(story())


def test_below_level_2_every_change_is_refused_and_the_remedy_named() -> None:
    """ADR 26: a node of the older version could not read what the log would hold."""

    async def story() -> None:
        async with node_at_level(1) as node:
            for request in (NEW, PROMOTE, REMOVE):
                answer = await asked(node, request)
                assert answer.error_code == ErrorCode.ERROR_CODE_UNSUPPORTED_VERSION
                assert "needs level 2" in answer.holdfast.message
                assert "`holdfast cluster upgrade finish`" in answer.holdfast.message

    asyncio.run(story())


@pytest.mark.parametrize(
    "request_",
    [
        a.AddNodeRequest(name="", client_address="h:1", peer_address="h:2"),
        a.AddNodeRequest(name="n" * 257, client_address="h:1", peer_address="h:2"),
        *(
            a.AddNodeRequest(name=name, client_address="h:1", peer_address="h:2")
            for name in ("a\nb", "n/../x", "n\u202e", ".", "..")
        ),
        a.AddNodeRequest(name="n", client_address="h", peer_address="h:2"),
        *(
            a.AddNodeRequest(name="n", client_address="h:1", peer_address=address)
            for address in ("127.0.0.1:0", "[::1", "[::1:7401", "::1]:7401", "[[::1]]:7401")
        ),
        a.AddNodeRequest(name="n", client_address="h:1", peer_address="http://h:2"),
        a.PromoteNodeRequest(name=""),
        a.RemoveNodeRequest(name="n\0"),
    ],
)
def test_a_name_or_an_address_that_no_node_can_have_is_malformed(request_: Message) -> None:
    """An address that nobody can dial would stay in the log until the node is removed."""

    async def story() -> None:
        async with node_at_level() as node:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await asked(node, request_)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(story())


@pytest.mark.parametrize(
    ("failure", "status", "outcome"),
    [
        (OutcomeUnknown("lost"), grpc.StatusCode.UNAVAILABLE, "unknown"),
        (Overloaded("full"), grpc.StatusCode.RESOURCE_EXHAUSTED, "not-applied"),
        (DiskLow(), grpc.StatusCode.RESOURCE_EXHAUSTED, "not-applied"),
    ],
)
def test_s5_a_change_that_is_not_seen_applied_ends_with_its_outcome(
    failure: Exception, status: grpc.StatusCode, outcome: str
) -> None:
    async def story() -> None:
        async with node_at_level() as node:
            node.replica.fail_next = failure
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await node.admin.AddNode(NEW)
            assert error.value.code() is status
            trailing = dict(error.value.trailing_metadata() or ())
            assert trailing["holdfast-outcome"] == outcome

    asyncio.run(story())


@pytest.mark.parametrize("failure", [NotLeader("node-2"), EngineStopped("its disk is gone")])
def test_a_leader_that_leaves_sends_the_caller_to_the_next_one(failure: Exception) -> None:
    """S25 d: it hands the leadership over, and the next leader removes it."""

    async def story() -> None:
        async with node_at_level() as node:
            node.replica.fail_next = failure
            answer = await node.admin.RemoveNode(a.RemoveNodeRequest(name="node-1"))
            assert answer.error_code == ErrorCode.ERROR_CODE_NOT_COORDINATOR

    asyncio.run(story())


def test_a_node_that_does_not_lead_changes_nothing() -> None:
    async def story() -> None:
        async with served(leading=False) as node:
            answer = await node.admin.AddNode(NEW)
            assert answer.error_code == ErrorCode.ERROR_CODE_NOT_COORDINATOR

    asyncio.run(story())


def test_the_audit_tells_who_changed_the_nodes(tmp_path: Path) -> None:
    """The log does not: its entry is the list of nodes. What changed nothing is not noted."""

    async def story() -> None:
        async with node_at_level(audit=tmp_path) as node:
            await node.admin.AddNode(NEW)
            await node.admin.AddNode(NEW)
            node.replica.fail_next = OutcomeUnknown("lost")
            with pytest.raises(grpc.aio.AioRpcError):
                await node.admin.PromoteNode(PROMOTE)
            await node.admin.RemoveNode(a.RemoveNodeRequest(name="node-9"))

    asyncio.run(story())
    told = [one for one in read(tmp_path) if one["kind"] == "changed"]
    assert [(one["principal"], one["call"], one["on"], one["why"]) for one in told] == [
        ("anonymous", "AddNode", "node 'node-3'", "it is in force"),
        ("anonymous", "PromoteNode", "node 'node-3'", "whether it happened is unknown"),
    ]
