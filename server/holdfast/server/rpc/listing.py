"""What is looked for among all groups and topics, in slices, from one state.

ListGroups and ListTopics answer with whole lists or pages. A whole list is complete or refused: a
caller could not tell a part from the whole. `survey` finds the groups that subscribe to topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.kernel.queries import Wanted
from holdfast.coordinator.model.subscriptions import Survey
from holdfast.server.guard.answer_size import Encoded, Room
from holdfast.server.rpc import pages
from holdfast.server.rpc.slices import Slices, give_way, ordered
from holdfast.server.translate import views
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from google.protobuf.message import Message

    from holdfast.coordinator.model.ids import GroupId, TopicName
    from holdfast.coordinator.model.state import Group, State
    from holdfast.coordinator.structures.pmap import PMap

    Line = Callable[[str], Message | None]
    """Makes the line for a name; None if the list leaves the name out."""
    Sees = Callable[[str], bool]
    """Whether the caller may be told of a name; a list leaves the others out."""

ADVICE: Final = (
    "ask in pages, with holdfast.page_size (holdfast.client and `holdfast` do so by themselves)"
)
LINES_MAX: Final = 1_000
"""Lines made in one slice; each takes about 4 microseconds."""
MEMBERS_A_TURN: Final = 1_000
"""Members that are examined in one turn of the loop: about a millisecond."""
_GROUPS, _TOPICS = "groups", "topics"


class Lists:
    """Lists of groups and topics."""

    def __init__(self) -> None:
        self._groups, self._topics = pages.Names(), pages.Names()

    async def groups(
        self, state: State, request: a.ListGroupsRequest, extras: x.ResponseExtras, sees: Sees
    ) -> a.ListGroupsResponse:
        """List the groups that the filters let through, by id (K-K8). Raises CallFailed."""
        page = pages.asked(_GROUPS, request.holdfast)
        wanted = Wanted.of(request.states_filter, request.types_filter)

        def line(name: str) -> a.ListedGroup | None:
            group = state.groups[name]
            return views.listed(group) if wanted.takes(group) and sees(name) else None

        names = await self._groups.of(state.groups)
        head = a.ListGroupsResponse(holdfast=extras)
        number = a.ListGroupsResponse.GROUPS_FIELD_NUMBER
        made = await _made(_List(_GROUPS, names, line), page, head, number)
        return made.message(a.ListGroupsResponse)

    async def topics(
        self, state: State, request: a.ListTopicsRequest, extras: x.ResponseExtras, sees: Sees
    ) -> a.ListTopicsResponse:
        """List topics by name; if names are given, those of them that exist. Raises CallFailed."""
        page = pages.asked(_TOPICS, request.holdfast)

        def line(name: str) -> a.ListedTopic | None:
            topic = state.topics.get(name) if sees(name) else None
            return topic and a.ListedTopic(name=topic.name, num_partitions=topic.num_partitions)

        named = request.names
        names = await (ordered(set(named)) if named else self._topics.of(state.topics))
        head = a.ListTopicsResponse(holdfast=extras)
        number = a.ListTopicsResponse.TOPICS_FIELD_NUMBER
        made = await _made(_List(_TOPICS, names, line), page, head, number)
        return made.message(a.ListTopicsResponse)


class _List(NamedTuple):
    kind: str
    names: Sequence[str]
    line: Line


async def _made(
    of: _List,
    page: pages.Page | None,
    head: a.ListGroupsResponse | a.ListTopicsResponse,
    number: int,
) -> Encoded:
    """Encode the answer: its lines and, for a page, the token of the next page, if there is one.

    A token can be read, so it names the last line of the page, and nothing that was left out.
    """
    room = Room(ADVICE)
    made = Encoded(head, room)
    count, slices = 0, Slices(LINES_MAX)
    last = page.after if page is not None and page.after is not None else ""
    async for at in slices.of(pages.begin(of.names, page)):
        line = of.line(of.names[at])
        if line is None:
            continue
        raw = line.SerializeToString()
        if page is not None and (count == page.size or not room.has(len(raw) + _TOKEN_BYTES)):
            next_token = pages.token(of.kind, last)
            rest = x.ResponseExtras(next_page_token=next_token)
            made.add(_EXTRAS, rest)  # protobuf merges it with the head's
            break
        room.take(len(raw))
        made.put(number, raw)
        count, last = count + 1, of.names[at]
    return made


_EXTRAS: Final = a.ListGroupsResponse.HOLDFAST_FIELD_NUMBER
_TOKEN_BYTES: Final = 32 << 10
"""Bytes for a token: a name of at most 4,096 characters of 4 bytes, and a third more (base64)."""


async def survey(groups: PMap[GroupId, Group[Any]], topics: Container[TopicName]) -> Survey:
    """Find the groups with a member that names one of the topics, before these are deleted.

    When the deletion is decided, it looks again at each group that has changed since.
    """
    subscribed: set[GroupId] = set()
    looked_at = 0
    for group in groups.values():
        kind = type_of(group)
        if kind.names(group, topics):
            subscribed.add(group.group_id)
        looked_at += 1 + len(kind.members(group))
        if looked_at >= MEMBERS_A_TURN:
            await give_way(looked_at)
            looked_at = 0
    return Survey(groups, frozenset(subscribed))
