"""A commit of offsets, as a kind of call. Knows no gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.coordinator.model.text import readable
from holdfast.server.access.forbidden_things import tell_offsets
from holdfast.server.access.gate import sentence
from holdfast.server.rpc.calls.member_call import MemberCall
from holdfast.server.translate import requests, responses
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import offset_pb2 as o

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model import commands as c
    from holdfast.coordinator.model import replies
    from holdfast.coordinator.model.commands import Caller
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.server.rpc.errors import Refused


class Commit(MemberCall[o.OffsetCommitRequest, o.OffsetCommitResponse]):
    """A commit of offsets."""

    asked, respond = o.OffsetCommitRequest, o.OffsetCommitResponse

    def items(self, request: o.OffsetCommitRequest) -> int:
        """Count its topics, and their partitions beside the first."""
        return max(1, sum([len(topic.partitions) or 1 for topic in request.topics]))

    def command(
        self, request: o.OffsetCommitRequest, caller: Caller, parts: Sequence[object]
    ) -> c.CommitOffsets:
        """Make the command, with the topics that the caller may not touch."""
        del parts
        return requests.commit_offsets(request, caller, self._forbidden(request, caller))

    def _forbidden(self, request: o.OffsetCommitRequest, caller: Caller) -> frozenset[str]:
        if self._gate.open or self._line.topics is None:
            return frozenset()
        names = {topic.name for topic in request.topics}
        return self._gate.denied(caller.principal, self.method, self._line.topics, names, request)

    def _refused(self, request: o.OffsetCommitRequest, error: Refused) -> o.OffsetCommitResponse:
        """Refuse each partition: the response has no code of its own."""
        extras = x.ResponseExtras(message=readable(error.sentence))
        return responses.refused_commit(request, error.code, extras)

    def response(
        self, request: o.OffsetCommitRequest, got: Answered, results: Sequence[object]
    ) -> o.OffsetCommitResponse:
        """Make the response; it has no log time, since commits are many and ids few."""
        del results
        reply = cast("replies.OffsetsReply", got.reply)
        error = responses.first_error(reply)
        response = responses.commit_offsets(reply, request, error)
        if error is not None:
            self._takeovers.tell(response.holdfast, request.group_id, error)
        if got.position is not None:
            position = response.holdfast.position
            position.index, position.ordinal = got.position
        return response

    def name_caller(self, response: o.OffsetCommitResponse, who: Callable[[], str]) -> None:
        """Have a refusal of a topic name the principal and the grant that is missing."""
        if (need := self._line.topics) is not None:
            tell_offsets(response, lambda name: sentence(who(), self.method, need, name))
