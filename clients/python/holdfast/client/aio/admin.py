"""Admin for asyncio: what operators and tools ask of a cluster.

Reads answer with the contract's messages. Changes carry a request id, are retried with it, and
answer per group, member or topic: None when it is done. What is refused of several things is there
by its name, as an exception *value*, so that one refusal does not hide the other results; of a
single thing the refusal is raised (admin_results.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, overload

from holdfast.client._rpc.caller import CALL_TIMEOUT_MS, END_GRACE_MS, Caller
from holdfast.client._rpc.clock import boot_ms, left_ms
from holdfast.client._translate import offset_messages
from holdfast.client._translate.admin_results import (
    by_name,
    no_such_topic,
    nobody_known,
    refuse_members,
)
from holdfast.client._translate.arguments import check_callables, check_client_id
from holdfast.client._translate.call_arguments import (
    check_timeout,
    group_named,
    groups_named,
    names_listed,
    one_by_one,
    partition_counts,
    settings_to_alter,
)
from holdfast.client.aio.cluster_admin import ClusterAdmin
from holdfast.client.aio.group_descriptions import GroupDescriptions
from holdfast.client.errors import HoldfastError, NotYet, from_code
from holdfast.v1 import admin_pb2, extras_pb2, offset_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from types import TracebackType

    from google.protobuf.message import Message

    from holdfast.client._rpc.channel import Credentials
    from holdfast.client._session.session_io import TopicPartition
    from holdfast.client._translate.acknowledged import OnAcknowledged
    from holdfast.client._translate.call_arguments import Offset

    Results: TypeAlias = dict[str, HoldfastError | None]
    OffsetResults: TypeAlias = dict[TopicPartition, HoldfastError | None]

PAGE_SIZE: Final = 1_000
"""Groups or topics that are asked for at a time."""

AnswerT = TypeVar("AnswerT", bound="Message")
OffsetAnswer = TypeVar(
    "OffsetAnswer", offset_pb2.OffsetCommitResponse, offset_pb2.OffsetDeleteResponse
)


class Admin(ClusterAdmin, GroupDescriptions):
    """`async with Admin(endpoints) as admin`.

    Every method raises Unavailable or OutcomeUnknown when the cluster cannot be reached within
    `timeout_ms`, and Rejected when it refuses the whole call, or the one thing that was named. An
    argument that cannot be is a ValueError or a TypeError, before anything is sent.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        credentials: Credentials = None,
        client_id: str | None = None,
        timeout_ms: int = CALL_TIMEOUT_MS,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        check_client_id(client_id)
        check_callables(on_acknowledged=on_acknowledged)
        check_timeout(timeout_ms)
        self._caller = Caller(
            endpoints,
            credentials=credentials,
            client_id=client_id,
            on_acknowledged=on_acknowledged,
        )
        self._timeout_ms = timeout_ms

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close(grace_ms=END_GRACE_MS)

    # --- groups --------------------------------------------------------------------------------

    async def delete_groups(self, *groups: str) -> Results:
        """Delete groups without members, with their offsets."""
        names = groups_named("delete_groups", groups)
        request = admin_pb2.DeleteGroupsRequest(groups_names=names)
        answer = await self._change(request, admin_pb2.DeleteGroupsResponse)
        results = {
            result.group_id: _refusal(
                result.error_code, f"Group {result.group_id!r}", result.holdfast.message
            )
            for result in answer.results
        }
        return by_name(results, names)

    async def remove_members(
        self,
        group: str,
        *,
        instance_ids: Iterable[str] = (),
        member_ids: Iterable[str] = (),
        instance_prefix: str = "",
        everyone: bool = False,
        reason: str | None = None,
    ) -> Results:
        """Remove members in one step: one rebalance however many they are (K-G14), 2,000 by name.

        Name them by `instance_ids` and `member_ids`, or by `instance_prefix` (every static member
        whose instance id begins so), or say `everyone`: one of the three. Who has announced a
        restart goes as well (K-G24). Results are keyed by instance id for static members, else by
        member id. A removed process that still runs may act until its next heartbeat: there only
        the fencing token excludes it (S12).

        Raises ValueError when nobody is named (K-G25), IncompatibleServer when the service is older
        than this call, GroupNotFound for a group that does not exist, UnknownMember for a single
        member that the group does not have.
        """
        static = names_listed("instance_ids", instance_ids)
        others = names_listed("member_ids", member_ids)
        members = [admin_pb2.MemberToRemove(group_instance_id=name) for name in static]
        members += [admin_pb2.MemberToRemove(member_id=name) for name in others]
        if sum((bool(members), bool(instance_prefix), everyone)) != 1:
            raise ValueError(
                "Name members by instance_ids or member_ids, or give an instance_prefix, or ask "
                "for everyone: one of the three."
            )
        request = admin_pb2.RemoveMembersRequest(
            group_id=group_named(group),
            members=members,
            all=everyone,
            reason=reason,
            instance_prefix=instance_prefix or None,
        )
        answer = await self._change(request, admin_pb2.RemoveMembersResponse)
        results = {
            _named(member): _refusal(
                member.error_code, f"Member {_named(member)!r} of {group!r}", member.error_message
            )
            for member in answer.members
        }
        if nobody_known(results):
            await self._find(group)  # K-G1: no group, no members
        return by_name(results, members)

    async def trigger_rebalance(self, group: str, *, reason: str | None = None) -> None:
        """Open a join phase, as if the group leader had asked; or raise the epoch (KIP-848)."""
        request = admin_pb2.TriggerRebalanceRequest(group_id=group_named(group), reason=reason)
        await self._change(request, admin_pb2.TriggerRebalanceResponse)

    # --- offsets -------------------------------------------------------------------------------

    async def offsets(
        self, group: str, partitions: Iterable[tuple[str, int]] = ()
    ) -> dict[TopicPartition, Offset]:
        """Return committed offsets of the partitions (none named: all); others are left out.

        Raises GroupNotFound for a group that does not exist.
        """
        request = offset_messages.fetch_request(group_named(group), partitions)
        answer = await self._read(request, offset_pb2.OffsetFetchResponse)
        found = offset_messages.fetched(answer)
        if not found:
            await self.describe_groups(group)  # K-J16: the answer is the same for a missing group
        return found

    async def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], Offset | int]
    ) -> OffsetResults:
        """Set offsets from outside, of a group without members; it is created if it is absent.

        More than 500 partitions are sent in several calls, each all or nothing.

        Raises GroupNotEmpty while the group has members (K-J5): only they may commit then. Raises
        ValueError or TypeError for an offset that cannot be (it is 0 or more); then none is sent.
        """
        requests = list(offset_messages.outside_commit_requests(group_named(group), offsets))
        return await self._change_all(requests, offset_pb2.OffsetCommitResponse, group)

    async def delete_offsets(
        self, group: str, partitions: Iterable[tuple[str, int]]
    ) -> OffsetResults:
        """Delete offsets; refused for topics that a member subscribes to (K-J24).

        More than 500 partitions are sent in several calls, each all or nothing.
        """
        requests = list(offset_messages.delete_requests(group_named(group), partitions))
        return await self._change_all(requests, offset_pb2.OffsetDeleteResponse)

    async def _change_all(
        self,
        requests: Sequence[offset_pb2.OffsetCommitRequest | offset_pb2.OffsetDeleteRequest],
        answer: type[OffsetAnswer],
        committed: str = "",
    ) -> OffsetResults:
        """Make one call after the other; if one fails, the results of those before it are kept.

        `committed`: the group, if its members may not be there (K-J5).
        """
        results: OffsetResults = {}
        for number, request in enumerate(requests):
            try:
                some = _offset_results(await self._change(request, answer))
                if committed:
                    refuse_members(committed, some)
            except HoldfastError as error:
                if not number:
                    raise
                left = (name for one in requests[number:] for name in offset_messages.named(one))
                results |= dict.fromkeys(left, error)
                break
            results |= some
        return by_name(results, results)

    # --- topics --------------------------------------------------------------------------------

    async def create_topics(self, topics: Mapping[str, int]) -> Results:
        """Create topics with so many partitions each."""
        counts = partition_counts("topics", topics)
        request = admin_pb2.CreateTopicsRequest(
            topics=[admin_pb2.CreatableTopic(name=n, num_partitions=c) for n, c in counts.items()]
        )
        answer = await self._change(request, admin_pb2.CreateTopicsResponse)
        return by_name(_topic_results(answer.topics), counts)

    async def create_partitions(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to so many partitions each; counts only grow."""
        wanted = partition_counts("counts", counts)
        request = admin_pb2.CreatePartitionsRequest(
            topics=[admin_pb2.CreatePartitionsTopic(name=n, count=c) for n, c in wanted.items()]
        )
        answer = await self._change(request, admin_pb2.CreatePartitionsResponse)
        return by_name(_topic_results(answer.results), wanted)

    async def delete_topics(self, *topics: str, force: bool = False) -> Results:
        """Delete topics, with the offsets that groups have of them.

        A topic that groups with members subscribe to is refused with TopicInUse, which names them.
        `force`: delete it all the same; each group's members lose its partitions at the next look
        of their group leader (`topics_refresh_ms`).
        """
        names = one_by_one("delete_topics", topics)
        request = admin_pb2.DeleteTopicsRequest(
            topics=[admin_pb2.DeleteTopicState(name=name) for name in names],
            holdfast=extras_pb2.RequestExtras(force=force),
        )
        answer = await self._change(request, admin_pb2.DeleteTopicsResponse)
        return by_name(_topic_results(answer.responses), names)

    @overload
    async def list_topics(self) -> dict[str, int]: ...
    @overload
    async def list_topics(self, name: str, /) -> dict[str, int]: ...
    @overload
    async def list_topics(self, *names: str) -> dict[str, int | HoldfastError]: ...
    async def list_topics(self, *names: str) -> dict[str, int] | dict[str, int | HoldfastError]:
        """Return partition counts by topic; of all topics, however many, when none is named.

        A single topic that does not exist is raised as TopicNotFound; of several it is the value.
        """
        request = admin_pb2.ListTopicsRequest(names=one_by_one("list_topics", names))
        pages = self._pages(request, admin_pb2.ListTopicsResponse)
        there = {t.name: t.num_partitions async for answer in pages for t in answer.topics}
        missing = {name: no_such_topic(name) for name in names if name not in there}
        return by_name({**there, **missing}, names)

    # --- settings and cluster --------------------------------------------------------------------

    async def describe_settings(
        self, *names: str, group: str | None = None
    ) -> list[admin_pb2.DescribedSetting]:
        """Describe settings on the log (S23), with unit and meaning; of a group if named."""
        asked = one_by_one("describe_settings", names)
        of = None if group is None else group_named(group)
        request = admin_pb2.DescribeSettingsRequest(names=asked, group_id=of)
        return list((await self._read(request, admin_pb2.DescribeSettingsResponse)).settings)

    async def alter_settings(
        self, settings: Mapping[str, str | int | None], *, group: str | None = None
    ) -> Results:
        """Set settings on the log; None gives one back to its default."""
        wanted = settings_to_alter(settings)
        request = admin_pb2.AlterSettingsRequest(
            settings=[admin_pb2.SettingToAlter(name=n, value=v) for n, v in wanted.items()],
            group_id=None if group is None else group_named(group),
        )
        answer = await self._change(request, admin_pb2.AlterSettingsResponse)
        return {
            setting.name: _refusal(
                setting.error_code, f"Setting {setting.name!r}", setting.error_message
            )
            for setting in answer.settings
        }

    async def describe_cluster(self) -> admin_pb2.DescribeClusterResponse:
        """Describe the nodes, the leader, and the log's position."""
        request = admin_pb2.DescribeClusterRequest()
        return await self._read(request, admin_pb2.DescribeClusterResponse)

    async def transfer_leadership(self, node: str = "") -> str:
        """Transfer the leadership to a node (empty: to the best one); return the new leader.

        Raises OutcomeUnknown where it may have happened: it is not repeated, which would hand the
        leadership on.
        """
        request = admin_pb2.TransferLeadershipRequest(node=node)
        answer = admin_pb2.TransferLeadershipResponse
        return (await self._ask(request, answer, self._timeout_ms)).node

    # --- calling -------------------------------------------------------------------------------

    async def _read(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        return await self._ask(request, answer, self._timeout_ms)

    async def _pages(self, request: Any, answer: type[AnswerT]) -> AsyncIterator[AnswerT]:  # noqa: ANN401 - of two kinds
        """Yield all pages of a list; a service without pages sends the whole list at once."""
        deadline = boot_ms() + self._timeout_ms
        request.holdfast.page_size = PAGE_SIZE
        while True:
            page: Any = await self._ask(request, answer, left_ms(deadline))
            yield page
            if not page.holdfast.next_page_token:
                return
            request.holdfast.page_token = page.holdfast.next_page_token

    async def _change(self, request: Any, answer: type[AnswerT]) -> AnswerT:  # noqa: ANN401 - any request of the contract
        deadline = boot_ms() + self._timeout_ms
        request_id = await self._caller.new_request_id(self._timeout_ms)
        request.holdfast.request_id = request_id
        return await self._ask(request, answer, left_ms(deadline))

    async def _ask(self, request: Message, answer: type[AnswerT], timeout_ms: int) -> AnswerT:
        response = await self._caller.call(request, answer, timeout_ms=timeout_ms)
        _raise_refusal(response)
        return response


def _raise_refusal(response: Any) -> None:  # noqa: ANN401 - any response of the contract
    code = getattr(response, "error_code", ErrorCode.ERROR_CODE_NONE)
    if code != ErrorCode.ERROR_CODE_NONE:
        subject = type(response).__name__.removesuffix("Response")
        refused = from_code(code, subject=subject, message=response.holdfast.message)
        if getattr(response, "may_pass_later", False):
            raise NotYet(str(refused), code=code)
        raise refused


def _refusal(code: ErrorCode.ValueType, subject: str, message: str = "") -> HoldfastError | None:
    if code == ErrorCode.ERROR_CODE_NONE:
        return None
    return from_code(code, subject=subject, message=message)


def _named(member: admin_pb2.RemovedMember) -> str:
    return member.group_instance_id or member.member_id


def _offset_results(
    answer: offset_pb2.OffsetCommitResponse | offset_pb2.OffsetDeleteResponse,
) -> OffsetResults:
    """Make the results; the service sends one sentence, that of the first refusal."""
    results: OffsetResults = {}
    message = answer.holdfast.message
    for name, code in offset_messages.codes(answer).items():
        results[name] = _refusal(code, f"Offset of {name.topic}:{name.number}", message)
        message = "" if results[name] is not None else message
    return results


def _topic_results(
    results: Iterable[
        admin_pb2.CreatableTopicResult
        | admin_pb2.CreatePartitionsTopicResult
        | admin_pb2.DeletableTopicResult
    ],
) -> Results:
    return {
        result.name: _refusal(result.error_code, f"Topic {result.name!r}", result.error_message)
        for result in results
    }
