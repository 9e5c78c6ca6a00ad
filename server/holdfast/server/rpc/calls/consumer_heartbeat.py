"""A heartbeat of the heartbeat protocol (KIP-848), as a kind of call. Knows no gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from holdfast.runtime.groups import regexes
from holdfast.server.access.admission import is_limited
from holdfast.server.access.gate import refused
from holdfast.server.rpc.calls.member_call import MemberCall
from holdfast.server.translate import requests, responses
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.commands import Caller
    from holdfast.runtime.groups.actors import Beat
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.server.rpc.errors import Refused
    from holdfast.v1 import extras_pb2 as x

_NUMBER: Final = ("life", "beat")
"""All that a plain heartbeat may have of our own: which one it is (S26)."""


def answered_before(
    hearing: Beat, request: g.ConsumerGroupHeartbeatRequest, who: Callable[[], str]
) -> g.ConsumerGroupHeartbeatResponse | None:
    """Return the cached answer to a heartbeat; None if the heartbeat has to be decided.

    `hearing`: from `Actors.hearing`, asked in this turn of the loop. `who`: reads the principal.
    """
    epoch, has = request.member_epoch, request.HasField
    says_more = (  # written out: a loop over the names takes as long again, at every heartbeat
        has("rack_id")
        or has("rebalance_timeout_ms")
        or has("server_assignor")
        or has("subscribed_topic_names")
        or has("subscribed_topic_regex")
        or has("topic_partitions")
    )
    if epoch <= 0 or says_more:
        return None
    life, beat = "", 0
    if has("holdfast"):
        ours = request.holdfast
        life, beat = ours.life, ours.beat
        if not beat or len(ours.ListFields()) != len(_NUMBER):
            return None
    instance = request.instance_id if has("instance_id") else None
    key = (epoch, request.member_id, instance, who(), life)
    cached = hearing(request.group_id, key, beat)
    return None if cached is None else responses.cached_beat(cached)


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
        self, hearing: Beat, request: g.ConsumerGroupHeartbeatRequest, who: Callable[[], str]
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
