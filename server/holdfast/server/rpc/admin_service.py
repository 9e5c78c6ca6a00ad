"""AdminService: calls of operators and tools. Translates them, asks the actor or reads, answers."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, cast

from holdfast.coordinator.model import replies
from holdfast.coordinator.model.commands import DeleteGroup, RaiseLevel, ReportBackup
from holdfast.coordinator.model.rejections import GroupAuthorizationFailed
from holdfast.coordinator.model.subscriptions import UNSURVEYED
from holdfast.runtime.groups.pending_calls import Answered
from holdfast.server.access import acl_calls, revocation_calls
from holdfast.server.access.acl_calls import AclCalls
from holdfast.server.access.forbidden_things import tell_topics
from holdfast.server.access.gate import refused, sentence
from holdfast.server.access.table import CLUSTER_READ, need_of, topics_of
from holdfast.server.rpc.callers import Callers, Context, answered, named
from holdfast.server.rpc.describe_service import DescribeCalls
from holdfast.server.rpc.errors import ENDED, partly_done
from holdfast.server.rpc.listing import Lists, survey
from holdfast.server.rpc.membership.node_service import NodeCalls
from holdfast.server.rpc.slices import Slices, collected
from holdfast.server.translate import admin, limits, views
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import admin_pb2_grpc
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from holdfast.coordinator.model.commands import Caller, Command
    from holdfast.runtime.groups.actors import Actors, Call
    from holdfast.server.access.gate import Gate
    from holdfast.server.access.table import Need
    from holdfast.server.metrics.node_facts import NodeFacts
    from holdfast.server.rpc.membership.node_changes import NodeChanges
    from holdfast.server.rpc.nodes import Nodes
    from holdfast.server.rpc.reads import Reads
    from holdfast.server.rpc.takeovers import Takeovers

logger = logging.getLogger(__name__)

COMMANDS_MAX: Final = 20
"""Commands of one call that are submitted in one turn of the loop: each goes to the log."""

RequestT = TypeVar("RequestT", bound="Message")
ResponseT = TypeVar("ResponseT", bound="Message")


class AdminService(DescribeCalls, NodeCalls, admin_pb2_grpc.AdminServiceServicer):
    """Reads and changes of groups, topics, settings and nodes."""

    def __init__(
        self,
        actors: Actors,
        reads: Reads,
        callers: Callers,
        nodes: Nodes,
        takeovers: Takeovers,
        gate: Gate,
        facts: NodeFacts,
        changes: NodeChanges,
    ) -> None:
        self._actors, self._reads, self._callers = actors, reads, callers
        self._nodes, self._takeovers, self._gate, self._facts = nodes, takeovers, gate, facts
        self._changes = changes
        self._lists, self._acls = Lists(), AclCalls(gate)

    # --- groups ---

    @answered(a.ListGroupsResponse)
    async def ListGroups(
        self, request: a.ListGroupsRequest, context: Context
    ) -> a.ListGroupsResponse:
        """List groups, all or a page."""
        sees = self._sees("ListGroups", need_of("AdminService.ListGroups"), context)
        state, extras = await self._reads.state(request.holdfast)
        return await self._lists.groups(state, request, extras, sees)

    @answered(a.DeleteGroupsResponse)
    async def DeleteGroups(
        self, request: a.DeleteGroupsRequest, context: Context
    ) -> a.DeleteGroupsResponse:
        """Delete groups without members; each by a command of its own (S15)."""
        for name in request.groups_names:  # each comes back in the answer
            limits.text("groups_names", name)
        results = _deleted(await self._delete_in_slices(request, context))
        say = self._words(request, need_of("AdminService.DeleteGroups"), context)
        return a.DeleteGroupsResponse(
            results=[admin.deleted_group(r.name, r.error, say) for r in results],
            holdfast=admin.of_deleted_groups(results, say),
        )

    async def _delete_in_slices(
        self, request: a.DeleteGroupsRequest, context: Context
    ) -> list[Answered | Exception]:
        """Submit a deletion for each group, some in each turn of the loop; await all of them."""
        begun: list[Call | _Forbidden | Exception] = []
        try:
            async for name in Slices(COMMANDS_MAX).of(request.groups_names):
                begun.append(self._deleting(name, request, context))  # noqa: PERF401 - if this is cancelled, those that were begun are, too
            return [await _outcome(each) for each in begun]
        except asyncio.CancelledError:
            for each in begun:
                if not isinstance(each, Exception):
                    each.give_up()
            raise

    def _deleting(
        self, name: str, request: a.DeleteGroupsRequest, context: Context
    ) -> Call | _Forbidden | Exception:
        """Submit the deletion of one group; return its error, for the others go on."""
        need = need_of("AdminService.DeleteGroups")
        if self._denied(request, need, (name,), context):
            return _Forbidden(name)
        try:
            with self._actors.open() as call:
                caller = self._callers.of(call.number, request, request.holdfast, context)
                call.submit(DeleteGroup(caller, name))
        except Exception as error:  # noqa: BLE001 - raised when all have an answer
            return error
        return call

    @answered(a.RemoveMembersResponse)
    async def RemoveMembers(
        self, request: a.RemoveMembersRequest, context: Context
    ) -> a.RemoveMembersResponse:
        """Remove members at an operator's request, with one rebalance for all (KIP-345)."""
        if count := admin.nameless(request):
            self._log_nameless(request, count, context)
        removed = await collected(admin.whom(request))
        got = await self._ask(
            lambda request, caller: admin.remove_members(request, caller, removed), request, context
        )
        reply = cast("replies.LeaveReply", got.reply)
        members = await collected(map(admin.removed_member, reply.members))
        return _placed(admin.removed(reply, members), got)

    def _log_nameless(self, request: a.RemoveMembersRequest, count: int, context: Context) -> None:
        """Log a warning that tells who sent entries without a name: their tool is broken."""
        caller = self._callers.of(0, request, request.holdfast, context)
        logger.warning(
            "RemoveMembers for group %r: %d of %d entries name nobody and are refused; the caller "
            "is %r, client %r at %s",
            request.group_id,
            count,
            len(request.members),
            caller.principal,
            caller.client_id,
            caller.client_host,
            extra=named("RemoveMembers", request),
        )

    @answered(a.TriggerRebalanceResponse)
    async def TriggerRebalance(
        self, request: a.TriggerRebalanceRequest, context: Context
    ) -> a.TriggerRebalanceResponse:
        """Start a rebalance of a group."""
        got = await self._ask(admin.trigger_rebalance, request, context)
        return _placed(admin.triggered(cast("replies.DoneReply", got.reply)), got)

    # --- topics ---

    @answered(a.CreateTopicsResponse)
    async def CreateTopics(
        self, request: a.CreateTopicsRequest, context: Context
    ) -> a.CreateTopicsResponse:
        """Create topics."""
        names = [topic.name for topic in request.topics]
        forbidden = self._forbidden_topics(request, names, context)
        made = partial(admin.create_topics, forbidden=forbidden)
        got = await self._ask(made, request, context)
        response = admin.created_topics(cast("replies.NamedReply", got.reply), request)
        tell_topics(response.topics, response.holdfast, self._words_of_topics(request, context))
        return _placed(response, got)

    @answered(a.CreatePartitionsResponse)
    async def CreatePartitions(
        self, request: a.CreatePartitionsRequest, context: Context
    ) -> a.CreatePartitionsResponse:
        """Raise the number of partitions of topics."""
        names = [topic.name for topic in request.topics]
        forbidden = self._forbidden_topics(request, names, context)
        made = partial(admin.create_partitions, forbidden=forbidden)
        got = await self._ask(made, request, context)
        response = admin.created_partitions(cast("replies.NamedReply", got.reply))
        tell_topics(response.results, response.holdfast, self._words_of_topics(request, context))
        return _placed(response, got)

    @answered(a.DeleteTopicsResponse)
    async def DeleteTopics(
        self, request: a.DeleteTopicsRequest, context: Context
    ) -> a.DeleteTopicsResponse:
        """Delete topics; their subscribers are looked up before, a few groups at a time."""
        self._actors.check_serving()
        topics = frozenset(admin.topics_to_delete(request))
        forbidden = self._forbidden_topics(request, topics, context)
        asked_anyway = request.holdfast.force or not topics - forbidden
        groups = self._actors.state.groups
        found = UNSURVEYED if asked_anyway else await survey(groups, topics - forbidden)
        made = partial(admin.delete_topics, survey=found, forbidden=forbidden)
        got = await self._ask(made, request, context)
        sees = self._sees("DeleteTopics", need_of("AdminService.ListGroups"), context)
        response = admin.deleted_topics(cast("replies.NamedReply", got.reply), sees)
        tell_topics(response.responses, response.holdfast, self._words_of_topics(request, context))
        return _placed(response, got)

    @answered(a.ListTopicsResponse)
    async def ListTopics(
        self, request: a.ListTopicsRequest, context: Context
    ) -> a.ListTopicsResponse:
        """List topics with their partition counts, all or a page."""
        sees = self._sees("ListTopics", topics_of("AdminService.ListTopics"), context)
        if (denied := next((name for name in request.names if not sees(name)), None)) is not None:
            need, principal = topics_of("AdminService.ListTopics"), self._callers.principal(context)
            raise refused(principal, "ListTopics", need, denied)
        state, extras = await self._reads.state(request.holdfast)
        return await self._lists.topics(state, request, extras, sees)

    # --- settings ---

    @answered(a.DescribeSettingsResponse)
    async def DescribeSettings(
        self, request: a.DescribeSettingsRequest, context: Context
    ) -> a.DescribeSettingsResponse:
        """Show the settings that are kept in the log."""
        del context
        admin.check_scope(request)
        state, extras = await self._reads.state(request.holdfast)
        return views.settings(state, request, extras)

    @answered(a.AlterSettingsResponse)
    async def AlterSettings(
        self, request: a.AlterSettingsRequest, context: Context
    ) -> a.AlterSettingsResponse:
        """Change settings: all of them or none."""
        got = await self._ask(admin.alter_settings, request, context)
        return _placed(admin.altered_settings(cast("replies.NamedReply", got.reply)), got)

    # --- nodes ---

    @answered(a.DescribeClusterResponse)
    async def DescribeCluster(
        self, request: a.DescribeClusterRequest, context: Context
    ) -> a.DescribeClusterResponse:
        """Show the nodes of the cluster as this node sees them."""
        sees = self._sees("DescribeCluster", CLUSTER_READ, context)("")
        facts = await self._facts.told() if request.facts and sees else None
        anchor = await self._nodes.anchor() if request.anchor and sees else None
        response = self._nodes.described()
        if facts is not None:
            response.facts.CopyFrom(facts)
        if anchor is not None:
            response.anchor.CopyFrom(anchor)
        if not sees:
            response.holdfast.ClearField("message")  # it may name callers and their certificates
        return response

    @answered(a.TransferLeadershipResponse)
    async def TransferLeadership(
        self, request: a.TransferLeadershipRequest, context: Context
    ) -> a.TransferLeadershipResponse:
        """Hand the leadership to another node."""
        del context
        self._actors.check_serving()
        return self._nodes.transfer(request.node)

    @answered(a.FinishUpgradeResponse)
    async def FinishUpgrade(
        self, request: a.FinishUpgradeRequest, context: Context
    ) -> a.FinishUpgradeResponse:
        """Raise the level in force, if all nodes are there and can run at a newer one."""
        self._actors.check_serving()
        upgrade = self._nodes.upgrade()
        got = await self._ask(lambda _, caller: RaiseLevel(caller, *upgrade), request, context)
        reply, level = cast("replies.DoneReply", got.reply), self._actors.state.level
        if reply.error is None:
            logger.info(
                "an operator ended an upgrade: level %d is in force",
                level,
                extra=named("FinishUpgrade", request),
            )
        return _placed(admin.finished_upgrade(reply, level), got)

    @answered(a.ReportBackupResponse)
    async def ReportBackup(
        self, request: a.ReportBackupRequest, context: Context
    ) -> a.ReportBackupResponse:
        """Note that a backup was verified, so that retention may cut off what it holds."""
        limits.text("cluster_id", request.cluster_id)
        what = request.cluster_id, request.index, request.recovery_number
        got = await self._ask(lambda _, caller: ReportBackup(caller, *what), request, context)
        index = self._actors.state.backed_up
        return _placed(admin.reported_backup(cast("replies.DoneReply", got.reply), index), got)

    # --- who may do what ---

    @answered(a.DescribeAclsResponse)
    async def DescribeAcls(
        self, request: a.DescribeAclsRequest, context: Context
    ) -> a.DescribeAclsResponse:
        """Show who may do what, or what the caller may do."""
        state, extras = await self._reads.state(request.holdfast)
        caller = self._callers.principal(context)
        return self._acls.described(state, request, caller, extras)

    @answered(a.AlterAclsResponse)
    async def AlterAcls(self, request: a.AlterAclsRequest, context: Context) -> a.AlterAclsResponse:
        """Grant and revoke, or change the mode: all of it or nothing."""
        got = await self._ask(acl_calls.command, request, context)
        return _placed(acl_calls.altered(got), got)

    @answered(a.TestAclResponse)
    async def TestAcl(self, request: a.TestAclRequest, context: Context) -> a.TestAclResponse:
        """Tell whether a principal may make a call."""
        state, extras = await self._reads.state(request.holdfast)
        return self._acls.tested(state, request, self._callers.principal(context), extras)

    @answered(a.DescribeRevocationsResponse)
    async def DescribeRevocations(
        self, request: a.DescribeRevocationsRequest, context: Context
    ) -> a.DescribeRevocationsResponse:
        """Show which certificates are refused."""
        del context
        state, extras = await self._reads.state(request.holdfast)
        return revocation_calls.described(state, extras)

    @answered(a.AlterRevocationsResponse)
    async def AlterRevocations(
        self, request: a.AlterRevocationsRequest, context: Context
    ) -> a.AlterRevocationsResponse:
        """Revoke certificates, and lift revocations: all of it or nothing."""
        refused = revocation_calls.own(request, self._callers.fingerprints(context))
        if refused is not None:
            return refused
        got = await self._ask(revocation_calls.command, request, context)
        return _placed(revocation_calls.altered(got), got)

    def _denied(
        self, request: Message, need: Need, names: Iterable[str], context: Context
    ) -> frozenset[str]:
        """Return the names of a call that its caller may not touch."""
        if self._gate.open:
            return frozenset()
        principal = self._callers.principal(context)
        return self._gate.denied(principal, _call(request), need, frozenset(names), request)

    def _forbidden_topics(
        self, request: Message, names: Iterable[str], context: Context
    ) -> frozenset[str]:
        return self._denied(request, topics_of(f"AdminService.{_call(request)}"), names, context)

    def _words(self, request: Message, need: Need, context: Context) -> Callable[[str], str]:
        """Return a function that words the refusal of a thing of this call, by its name."""
        callers, call = self._callers, _call(request)
        return lambda name: sentence(callers.principal(context), call, need, name)

    def _words_of_topics(self, request: Message, context: Context) -> Callable[[str], str]:
        return self._words(request, topics_of(f"AdminService.{_call(request)}"), context)

    def _sees(self, call: str, need: Need, context: Context) -> Callable[[str], bool]:
        """Return a function that says whether the caller may be told of a name."""
        if self._gate.open:
            return lambda _: True
        principal = self._callers.principal(context)
        return lambda name: self._gate.may(principal, call, need, name)

    async def _ask(
        self,
        translate: Callable[[RequestT, Caller], Command],
        request: RequestT,
        context: Context,
    ) -> Answered:
        """Translate a request that needs only its caller to a command, and await its answer."""
        extras: x.RequestExtras = request.holdfast  # type: ignore[attr-defined]  # all of ours have it
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, extras, context)
            return await call.ask(translate(request, caller))


class _Forbidden(NamedTuple):
    """A group that the caller may not delete: nothing was submitted."""

    group_id: str

    def give_up(self) -> None:
        """Do nothing: nobody waits."""


async def _outcome(begun: Call | _Forbidden | Exception) -> Answered | Exception:
    """Await the result of a submitted command; return its error instead of raising it."""
    if isinstance(begun, _Forbidden):
        result = replies.NamedResult(begun.group_id, GroupAuthorizationFailed(begun.group_id))
        return Answered(replies.NamedReply((result,)), None)
    if isinstance(begun, Exception):
        return begun
    try:
        return await begun.future
    except Exception as error:  # noqa: BLE001 - as in `_deleting`
        return error


def _call(request: Message) -> str:
    """Return the method that a request is for."""
    return request.DESCRIPTOR.name.removesuffix("Request")


def _deleted(got: Sequence[Answered | Exception]) -> list[replies.NamedResult]:
    """Collect the result of each group; raises if one is unknown (S5).

    A failure must not report groups that were deleted as not deleted.
    """
    faults = [one for one in got if isinstance(one, Exception)]
    answers = [one.reply for one in got if not isinstance(one, Exception)]
    results = [r for reply in answers for r in cast("replies.NamedReply", reply).results]
    if not faults:
        return results
    worst = max(faults, key=lambda fault: getattr(fault, "outcome", "") == "unknown")
    done = sum(result.error is None for result in results)
    if done and isinstance(worst, ENDED):
        what = f"{done} of {len(got)} groups were deleted, but not all"
        raise partly_done(what, worst) from worst
    raise worst


def _placed(response: ResponseT, got: Answered) -> ResponseT:
    """Set the position at which the change was recorded, if anything was changed."""
    if got.position is not None:
        position = response.holdfast.position  # type: ignore[attr-defined]  # all of ours have it
        position.index, position.ordinal = got.position
    return response
