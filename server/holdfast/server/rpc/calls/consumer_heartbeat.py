"""A heartbeat of the heartbeat protocol (KIP-848), as a kind of call. Knows no gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from google.protobuf.unknown_fields import UnknownFieldSet

from holdfast.runtime.groups import regexes
from holdfast.server.access.admission import is_limited
from holdfast.server.access.gate import refused
from holdfast.server.rpc.calls.member_call import MemberCall
from holdfast.server.translate import requests, responses
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.commands import Caller
    from holdfast.runtime.groups.hearing import Hearing
    from holdfast.runtime.groups.heartbeat_cache import RememberedBeat
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.server.rpc.errors import Refused
    from holdfast.v1 import extras_pb2 as x

_PLAIN: Final = frozenset({"group_id", "member_id", "member_epoch"})
_NUMBERED: Final = frozenset({"holdfast", "life", "beat"})
"""All that a plain heartbeat may have of our own: which one it is (S26)."""


def answered_before(
    hearing: Hearing, request: g.ConsumerGroupHeartbeatRequest, who: Callable[[], str]
) -> g.ConsumerGroupHeartbeatResponse | None:
    """Return the cached answer to a heartbeat; None if the heartbeat has to be decided.

    `hearing`: from `Actors.hearing`, asked in this turn of the loop. `who`: reads the principal.
    """
    group_id = request.group_id
    last = hearing.last(group_id, request.member_id)
    if last is None:
        return None
    life, number = "", 0
    if last.life:
        ours = request.holdfast
        life, number = ours.life, ours.beat
    instance = None if last.instance_id is None else request.instance_id
    if not last.is_followed_by(request.member_epoch, instance, who(), life, number):
        return None
    if not _says_no_more(request, last):
        return None
    return responses.cached_beat(hearing.again(group_id, last, number))


def _says_no_more(request: g.ConsumerGroupHeartbeatRequest, last: RememberedBeat) -> bool:
    """Return whether a heartbeat that `last` is followed by has no further fields.

    It is asked at every heartbeat, and to look for each field that could be there takes longest. A
    request with the fields of the last one, and of its size, has no others, for each takes bytes.
    (Numbers only rise, so the heartbeat's takes no fewer bytes than when the size was noted.)
    """
    size = request.ByteSize()
    if size == last.size:
        return True
    if not _named_by(last).issuperset(_names(request)):
        return False
    if not _has_unknown(request):
        last.size = size
    return True


def _names(request: g.ConsumerGroupHeartbeatRequest) -> Iterator[str]:
    """Yield the names of the fields that are there, and of those of our own."""
    for field, _ in request.ListFields():
        yield field.name
    for field, _ in request.holdfast.ListFields():
        yield field.name


def _has_unknown(request: g.ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether it has fields of a later version, which have a size and no name here."""
    return any(len(UnknownFieldSet(each)) for each in (request, request.holdfast))


def _named_by(last: RememberedBeat) -> frozenset[str]:
    """Return the names of the fields that a plain heartbeat may have."""
    plain = _PLAIN | _NUMBERED if last.life else _PLAIN
    return plain if last.instance_id is None else plain | {"instance_id"}


class ConsumerHeartbeat(
    MemberCall[g.ConsumerGroupHeartbeatRequest, g.ConsumerGroupHeartbeatResponse]
):
    """A heartbeat of the heartbeat protocol, which is never parked."""

    asked, respond = g.ConsumerGroupHeartbeatRequest, g.ConsumerGroupHeartbeatResponse
    brings_target = True

    def limited(self, request: g.ConsumerGroupHeartbeatRequest) -> bool:
        """Return whether limits of principals count it: joins and leaves, as those of others."""
        return is_limited(request)

    def cached(
        self, hearing: Hearing, request: g.ConsumerGroupHeartbeatRequest, who: Callable[[], str]
    ) -> g.ConsumerGroupHeartbeatResponse | None:
        """Return the cached answer; None: it has to be decided."""
        return answered_before(hearing, request, who)

    def carries(self, request: g.ConsumerGroupHeartbeatRequest) -> bool:
        """Return True, but for a goodbye."""
        return request.member_epoch >= 0

    def ends(self, code: int | str) -> bool:
        """Return whether it was refused: who sent it has to join, or to give up."""
        return code != e.ERROR_CODE_NONE

    def refusal(
        self, request: g.ConsumerGroupHeartbeatRequest, who: Callable[[], str]
    ) -> g.ConsumerGroupHeartbeatResponse | None:
        """Return the refusal, also of a subscription to topics that the caller may not read."""
        if self._gate.open:
            return None
        if (whole := super().refusal(request, who)) is not None:
            return whole
        need = self._line.topics
        if need is None or not request.HasField("subscribed_topic_names"):
            return None  # most name none, and it takes long to look into what is not there
        names = request.subscribed_topic_names.names
        denied = self._gate.denied(who(), self.method, need, names, request)
        if not denied:
            return None
        return self._refused(request, refused(who(), self.method, need, min(denied)))

    def items(self, request: g.ConsumerGroupHeartbeatRequest) -> int:
        """Count the topics that it names, and the partitions beside the first of each."""
        named = len(request.subscribed_topic_names.names)
        owned = request.topic_partitions.topic_partitions
        return max(1, named + sum([len(topic.partitions) or 1 for topic in owned]))

    def command(
        self,
        request: g.ConsumerGroupHeartbeatRequest,
        caller: Caller,
        parts: Sequence[object],
    ) -> c.ConsumerGroupHeartbeat:
        """Make the command, with what is wrong with its regular expression."""
        del parts
        regex = request.subscribed_topic_regex
        problem = regexes.problem_of(regex) if 0 < len(regex) <= regexes.LENGTH_MAX else ""
        return requests.consumer_heartbeat(request, caller, problem)

    def response(
        self,
        request: g.ConsumerGroupHeartbeatRequest,
        got: Answered,
        results: Sequence[object],
    ) -> g.ConsumerGroupHeartbeatResponse:
        """Make the response."""
        del results
        reply = cast("replies.ConsumerHeartbeatReply", got.reply)
        if request.member_epoch > 0 and reply.assignment is None:
            got = got._replace(position=None)  # it may have come with others that changed something
        response = responses.consumer_heartbeat(reply)
        self._of_one(response, request, reply.error, got)
        if response.holdfast.message:
            response.error_message = response.holdfast.message
        return response

    def _stamp(self, extras: x.ResponseExtras, got: Answered) -> None:
        """Stamp a change only: most heartbeats change nothing."""
        if got.position is not None:
            super()._stamp(extras, got)

    def _refused(
        self, request: g.ConsumerGroupHeartbeatRequest, error: Refused
    ) -> g.ConsumerGroupHeartbeatResponse:
        """Make the response of a call that is refused whole; it has Kafka's field for the text."""
        response = super()._refused(request, error)
        response.error_message = response.holdfast.message
        return response
