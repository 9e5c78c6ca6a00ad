"""The methods of AdminService that describe groups: a state to read, and answers made in slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.kernel import queries
from holdfast.coordinator.projections.history import epochs
from holdfast.coordinator.projections.stories import KEPT_MAX
from holdfast.server.access.table import need_of, topics_of
from holdfast.server.guard.answer_size import Encoded, Room
from holdfast.server.rpc.callers import answered
from holdfast.server.rpc.slices import Slices
from holdfast.server.translate import consumer_views, views
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from google.protobuf.message import Message

    from holdfast.coordinator.model.described import DescribedConsumerGroup
    from holdfast.runtime.groups.actors import Actors
    from holdfast.server.access.gate import Gate
    from holdfast.server.access.table import Need
    from holdfast.server.rpc.callers import Context
    from holdfast.server.rpc.reads import Reads
    from holdfast.server.rpc.takeovers import Takeovers
    from holdfast.v1.extras_pb2 import RequestExtras

_CONSUMER: Final = "AdminService.ConsumerGroupDescribe"


class DescribeCalls:
    """What AdminService inherits; it has the parts that are declared here."""

    _actors: Actors
    _reads: Reads
    _takeovers: Takeovers
    _gate: Gate
    _denied: Callable[[Message, Need, Iterable[str], Context], frozenset[str]]
    _words: Callable[[Message, Need, Context], Callable[[str], str]]
    _forbidden_topics: Callable[[Message, Iterable[str], Context], frozenset[str]]
    _sees: Callable[[str, Need, Context], Callable[[str], bool]]

    @answered(a.DescribeGroupsResponse)
    async def DescribeGroups(
        self, request: a.DescribeGroupsRequest, context: Context
    ) -> a.DescribeGroupsResponse:
        """Show groups with their members."""
        need = need_of("AdminService.DescribeGroups")
        say = self._words(request, need, context)
        denied = self._denied(request, need, request.groups, context)
        state, extras = await self._reads.state(request.holdfast)
        asked = views.Asked(
            _most(request.holdfast),
            self._reads.histories,
            self._actors.session_left_ms,
            self._takeovers.count,
        )
        room, slices = Room("name fewer groups, or ask for fewer rebalances"), Slices()
        response = Encoded(a.DescribeGroupsResponse(holdfast=extras), room)

        async def encode(group_id: str) -> bytes:
            if group_id in denied:
                return room.taken(views.forbidden(group_id, say(group_id)).SerializeToString())
            return await views.described(state, group_id, asked, room, slices)

        async for raw in _encoded_once(request.groups, encode, room, slices):
            response.put(a.DescribeGroupsResponse.GROUPS_FIELD_NUMBER, raw)
        return response.message(a.DescribeGroupsResponse)

    @answered(a.ConsumerGroupDescribeResponse)
    async def ConsumerGroupDescribe(
        self, request: a.ConsumerGroupDescribeRequest, context: Context
    ) -> a.ConsumerGroupDescribeResponse:
        """Describe groups of the heartbeat protocol, each to those who may read all its topics."""
        need = need_of(_CONSUMER)
        say = self._words(request, need, context)
        denied = self._denied(request, need, request.group_ids, context)
        state, extras = await self._reads.state(request.holdfast)
        most, histories = _most(request.holdfast), self._reads.histories
        sees = self._sees("ConsumerGroupDescribe", topics_of(_CONSUMER), context)
        room, slices = Room("name fewer groups, or ask for fewer epochs"), Slices()
        response = Encoded(a.ConsumerGroupDescribeResponse(holdfast=extras), room)

        async def encode(group_id: str) -> bytes:
            if group_id in denied:
                return room.taken(
                    consumer_views.forbidden(group_id, say(group_id)).SerializeToString()
                )
            await slices.done()
            found = queries.describe_consumer_group(state, group_id)
            if await self._hides(found, request, context, slices):
                return room.taken(consumer_views.unreadable(group_id).SerializeToString())
            told = epochs(histories, group_id, most) if found.error is None else ()
            return await consumer_views.described(found, told, sees, room, slices)

        async for raw in _encoded_once(request.group_ids, encode, room, slices):
            response.put(a.ConsumerGroupDescribeResponse.GROUPS_FIELD_NUMBER, raw)
        return response.message(a.ConsumerGroupDescribeResponse)

    async def _hides(
        self,
        group: DescribedConsumerGroup,
        request: a.ConsumerGroupDescribeRequest,
        context: Context,
        slices: Slices,
    ) -> bool:
        """Return whether a group has topics that the caller may not read."""
        if self._gate.open:
            return False
        names = await consumer_views.topics(group, slices)
        return bool(self._forbidden_topics(request, names, context))


def _most(asked: RequestExtras) -> int:
    """Return how many rebalances, or epochs, are told of."""
    return min(asked.rebalances_max if asked.HasField("rebalances_max") else 1, KEPT_MAX)


async def _encoded_once(
    group_ids: Iterable[str],
    encode: Callable[[str], Awaitable[bytes]],
    room: Room,
    slices: Slices,
) -> AsyncIterator[bytes]:
    """Yield the encoded description of each group; one that is named again is not made again."""
    made: dict[str, bytes] = {}
    for group_id in group_ids:
        if group_id in made:
            await slices.done()
            room.take(len(made[group_id]))
        else:
            made[group_id] = await encode(group_id)
        yield made[group_id]
