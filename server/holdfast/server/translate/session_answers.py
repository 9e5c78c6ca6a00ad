"""Answers of a Session stream: each is encoded by itself, and put into a message as bytes.

A message that is put into another one is copied, which takes as long as making it; bytes are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.text import readable
from holdfast.server.rpc.errors import Refused, ending
from holdfast.storage.codec.wire import varint
from holdfast.v1 import group_pb2 as g

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from holdfast.server.rpc.errors import Ended

STATUS: Final = "status"
"""The field of an answer to a call that ended without a response."""
_SIZED: Final = 2
"""Protobuf's wire type of messages."""
_NUMBER: Final = varint(g.SessionAnswer.NUMBER_FIELD_NUMBER << 3)
_HEADS: Final = {
    field.name: varint(field.number << 3 | _SIZED)
    for field in g.SessionAnswer.DESCRIPTOR.fields
    if field.message_type is not None
}
_ANSWER: Final = varint(g.SessionResponse.ANSWERS_FIELD_NUMBER << 3 | _SIZED)


def encoded_answer(number: int, field: str, response: Message) -> bytes:
    """Encode the answer to a call, as an item of a SessionResponse."""
    raw = response.SerializeToString()
    head = b"".join((_NUMBER, varint(number), _HEADS[field], varint(len(raw))))
    return b"".join((_ANSWER, varint(len(head) + len(raw)), head, raw))


def status_of(ended: Ended) -> g.SessionStatus:
    """Make the status of a call that ended without a response (S5)."""
    error = ending(ended)
    told = g.SessionStatus(code=error.status.value[0], message=readable(error.sentence))
    if isinstance(error, Refused):
        told.error_code, told.leader, told.not_applied = error.code, error.leader, True
    else:
        told.not_applied = error.outcome == "not-applied"
        told.permanent = not error.repeatable
    return told
