"""Have an answer say, of each thing that its caller may not touch, who was refused and what helps.

The rules refuse a topic among others by its name alone: their answers are kept for repeated
requests (S15), and grants are none of their matter. Here the sentences get the principal, and the
command that an administrator can give. Knows what those responses have in common; no grant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from holdfast.coordinator.model.text import readable
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.v1 import extras_pb2 as x
    from holdfast.v1 import offset_pb2 as o
    from holdfast.v1.errors_pb2 import ErrorCode

    Say = Callable[[str], str]
    """Words the refusal of a thing, by its name."""

_TOPIC: Final = e.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED


class TopicResult(Protocol):
    """What an answer says of one topic."""

    name: str
    error_code: ErrorCode.ValueType
    error_message: str


def tell_topics(results: Iterable[TopicResult], extras: x.ResponseExtras, say: Say) -> None:
    """Reword the refusals of topics; `extras` has the sentence of the first refusal of all."""
    first = True
    for each in results:
        if each.error_code == _TOPIC:
            each.error_message = readable(say(each.name))
            if first:
                extras.message = each.error_message
        first = first and not each.error_code


def tell_offsets(response: o.OffsetCommitResponse | o.OffsetDeleteResponse, say: Say) -> None:
    """Reword the sentence about the first partition that was refused, if its topic is why."""
    if not response.holdfast.message:
        return
    for topic in response.topics:
        code = next((each.error_code for each in topic.partitions if each.error_code), 0)
        if code == _TOPIC:
            response.holdfast.message = readable(say(topic.name))
        if code:
            return
