"""Answers that may become long, made piece by piece as bytes: bounded, and encoded in slices.

An answer that is too long for a client's channel is refused while it is made, before it takes up
the node's memory; a part is never sent as if it were the whole answer. Knows protobuf's wire
format and no service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from holdfast.server.rpc.errors import too_large
from holdfast.storage.codec.wire import varint

if TYPE_CHECKING:
    from google.protobuf.message import Message

MessageT = TypeVar("MessageT", bound="Message")

ANSWER_BYTES_MAX: Final = (16 << 20) - (64 << 10)
"""What a read may take of a node's memory. A client's channel has to take messages of 16 MiB; our
own client's takes more, for joins and syncs (`holdfast.client._rpc.channel`)."""
_ITEM_HEAD: Final = 6
"""Bytes before an item, at most: its field's number and its length."""


class Room:
    """How many bytes one answer may still take."""

    def __init__(self, advice: str, most: int | None = None) -> None:
        """`advice`: what a caller can do if its answer is too large."""
        self._advice = advice
        self._most = ANSWER_BYTES_MAX if most is None else most
        self.left = self._most

    def take(self, size: int) -> None:
        """Use up bytes; raises CallFailed if not so many are left."""
        self.left -= size
        if self.left < 0:
            raise too_large(self._most, self._advice)

    def taken(self, raw: bytes) -> bytes:
        """Use up the bytes of an encoded item, and return it."""
        self.take(len(raw))
        return raw

    def has(self, size: int) -> bool:
        """Return whether so many bytes are left."""
        return self.left >= size


class Encoded:
    """A message under construction, as its bytes."""

    def __init__(self, head: Message, room: Room) -> None:
        """`head`: the message with all fields that are known at the start."""
        self._room = room
        self._parts = [head.SerializeToString()]
        room.take(len(self._parts[0]) + _ITEM_HEAD)

    def add(self, number: int, item: Message) -> None:
        """Add an item to a field of messages; raises CallFailed if there is no room for it."""
        raw = item.SerializeToString()
        self._room.take(len(raw) + _ITEM_HEAD)
        self.put(number, raw)

    def put(self, number: int, raw: bytes) -> None:
        """Add an encoded item whose bytes were taken from the room before."""
        self._parts += (varint(number << 3 | 2), varint(len(raw)), raw)

    def encoded(self) -> bytes:
        """Return the message's bytes."""
        return b"".join(self._parts)

    def message(self, kind: type[MessageT]) -> MessageT:
        """Return the bytes, typed as a service's answer; `encoded` passes them on unchanged."""
        del kind
        return cast("MessageT", self.encoded())


def encoded(answer: Message | bytes) -> bytes:
    """Return the bytes to send for a service's answer, which may be encoded already."""
    return answer if isinstance(answer, bytes) else answer.SerializeToString()
