"""The part of Admin that looks at groups, of either protocol. Changes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.client._translate.admin_results import by_name, described
from holdfast.client._translate.call_arguments import (
    GROUP_STATES,
    GROUP_TYPES,
    groups_named,
    words_listed,
)
from holdfast.client.errors import GroupNotFound
from holdfast.v1 import admin_pb2, extras_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from google.protobuf.message import Message

    from holdfast.client.errors import HoldfastError

AnswerT = TypeVar("AnswerT", bound="Message")


class GroupDescriptions(ABC):
    """What `Admin` inherits; how a call is made is the business of `Admin`."""

    @abstractmethod
    async def _read(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Make a call that has no request id."""

    @abstractmethod
    def _pages(self, request: Any, answer: type[AnswerT]) -> AsyncIterator[AnswerT]:  # noqa: ANN401 - of two kinds
        """Make a call for a list, page by page."""

    @overload
    async def describe_groups(
        self, group: str, /, *, rebalances: int = 1
    ) -> dict[str, admin_pb2.DescribedGroup]: ...
    @overload
    async def describe_groups(
        self, *groups: str, rebalances: int = 1
    ) -> dict[str, admin_pb2.DescribedGroup | HoldfastError]: ...
    async def describe_groups(
        self, *groups: str, rebalances: int = 1
    ) -> dict[str, admin_pb2.DescribedGroup] | dict[str, admin_pb2.DescribedGroup | HoldfastError]:
        """Describe state, members, assignments, and the last rebalances (at most 10).

        A single group that does not exist is raised as GroupNotFound; of several it is the value.
        """
        extras = extras_pb2.RequestExtras(rebalances_max=rebalances)
        names = groups_named("describe_groups", groups)
        request = admin_pb2.DescribeGroupsRequest(groups=names, holdfast=extras)
        answer = await self._read(request, admin_pb2.DescribeGroupsResponse)
        return by_name({group.group_id: described(group) for group in answer.groups}, names)

    @overload
    async def consumer_group_describe(
        self, group: str, /, *, epochs: int = 1
    ) -> dict[str, admin_pb2.ConsumerGroupDescribedGroup]: ...
    @overload
    async def consumer_group_describe(
        self, *groups: str, epochs: int = 1
    ) -> dict[str, admin_pb2.ConsumerGroupDescribedGroup | HoldfastError]: ...
    async def consumer_group_describe(
        self, *groups: str, epochs: int = 1
    ) -> Mapping[str, admin_pb2.ConsumerGroupDescribedGroup | HoldfastError]:
        """Describe groups of the heartbeat protocol: targets, tokens, the last epochs (at most 10).

        A single group that does not exist is raised as GroupNotFound; of several it is the value.
        """
        extras = extras_pb2.RequestExtras(rebalances_max=epochs)
        names = groups_named("consumer_group_describe", groups)
        request = admin_pb2.ConsumerGroupDescribeRequest(group_ids=names, holdfast=extras)
        answer = await self._read(request, admin_pb2.ConsumerGroupDescribeResponse)
        return by_name({group.group_id: described(group) for group in answer.groups}, names)

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[admin_pb2.ListedGroup]:
        """List all groups, or those in these states (Kafka's words, "Stable") and of these types.

        Any number: they are read in pages. A group that comes or goes meanwhile may be in it or
        not. Raises ValueError for a word that is no state and no type.
        """
        request = admin_pb2.ListGroupsRequest(
            states_filter=words_listed("states", states, GROUP_STATES),
            types_filter=words_listed("types", types, GROUP_TYPES),
        )
        pages = self._pages(request, admin_pb2.ListGroupsResponse)
        return [group async for answer in pages for group in answer.groups]

    async def _find(self, group: str) -> None:
        """Raise GroupNotFound if the calls of neither protocol know a group (K-K3, K-K6)."""
        try:
            await self.describe_groups(group, rebalances=0)
        except GroupNotFound:
            request = admin_pb2.ConsumerGroupDescribeRequest(group_ids=[group])
            answer = await self._read(request, admin_pb2.ConsumerGroupDescribeResponse)
            if isinstance(described(answer.groups[0]), GroupNotFound):
                raise
