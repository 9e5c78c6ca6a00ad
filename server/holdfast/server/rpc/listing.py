"""ListGroups and ListTopics: whole lists or pages of them, in slices, from one state.

A whole list is either whole or refused: nobody can tell a first part from all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.kernel.queries import Wanted
from holdfast.server.guard.answer_size import Encoded, Room
from holdfast.server.rpc import pages
from holdfast.server.rpc.slices import Slices, ordered
from holdfast.server.translate import views
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from holdfast.coordinator.model.state import State

    Line = Callable[[str], Message | None]
    """What a list says of a name; None: nothing."""

ADVICE: Final = (
    "ask in pages, with holdfast.page_size (holdfast.client and `holdfast` do so by themselves)"
)
LINES_MAX: Final = 1_000
"""Lines of a slice; one takes about 4 microseconds."""
_GROUPS, _TOPICS = "groups", "topics"


class Lists:
    """Lists of groups and topics."""

    def __init__(self) -> None:
        self._groups, self._topics = pages.Names(), pages.Names()

    async def groups(
        self, state: State, request: a.ListGroupsRequest, extras: x.ResponseExtras
    ) -> a.ListGroupsResponse:
        """Groups by id, of those that the filters let through (K-K8). Raises CallFailed."""
        page = pages.asked(_GROUPS, request.holdfast)
        wanted = Wanted.of(request.states_filter, request.types_filter)

        def line(name: str) -> a.ListedGroup | None:
            group = state.groups[name]
            return views.listed(group) if wanted.takes(group) else None

        names = await self._groups.of(state.groups)
        head = a.ListGroupsResponse(holdfast=extras)
        number = a.ListGroupsResponse.GROUPS_FIELD_NUMBER
        made = await _made(_List(_GROUPS, names, line), page, head, number)
        return made.message(a.ListGroupsResponse)

    async def topics(
        self, state: State, request: a.ListTopicsRequest, extras: x.ResponseExtras
    ) -> a.ListTopicsResponse:
        """Topics by name; of those named, the ones that exist. Raises CallFailed."""
        page = pages.asked(_TOPICS, request.holdfast)

        def line(name: str) -> a.ListedTopic | None:
            topic = state.topics.get(name)
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
    """The answer: its lines, and with a page the token of the next one, if there is one."""
    room = Room(ADVICE)
    made = Encoded(head, room)
    count, slices = 0, Slices(LINES_MAX)
    async for at in slices.of(pages.begin(of.names, page)):
        line = of.line(of.names[at])
        if line is None:
            continue
        raw = line.SerializeToString()
        if page is not None and (count == page.size or not room.has(len(raw) + _TOKEN_BYTES)):
            next_token = pages.token(of.kind, of.names[at - 1])
            rest = x.ResponseExtras(next_page_token=next_token)
            made.add(_EXTRAS, rest)  # merged with what the head has of it
            break
        room.take(len(raw))
        made.put(number, raw)
        count += 1
    return made


_EXTRAS: Final = a.ListGroupsResponse.HOLDFAST_FIELD_NUMBER
_TOKEN_BYTES: Final = 32 << 10
"""Room for a token: names have at most 4,096 characters, 4 bytes each, and a third more in it."""
