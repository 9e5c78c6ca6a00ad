"""Reads the partitions out of the bytes of an assignment, or of a subscription, and writes them.

Those of protocol type `consumer`. In a classic group the core passes them on without reading them;
it reads assignments to tell people what a rebalance moved, and both when a group changes its
protocol. The bytes are a `ConsumerProtocolAssignment` or a `ConsumerProtocolSubscription`
(group.proto) in protobuf's wire form, read here because the core knows no protobuf. A test compares
it with protobuf's own reader and writer. Pure.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.ids import TopicPartitions

_ASSIGNED_PARTITIONS: Final = 1
_USER_DATA: Final = 2
_OWNED_PARTITIONS: Final = 3
_OF_THE_CLIENT: Final = b'{"counts": '
"""So begins what `holdfast.client` notes there, whichever assignor it runs: how large the topics
were, and whether the member is to join again. It is about the rebalance that made it alone."""
_TOPIC: Final = 1
_PARTITIONS: Final = 2

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5
_WIDTHS: Final = {_FIXED64: 8, _FIXED32: 4}
_VARINT_BYTES_MAX: Final = 10
_MORE: Final = 0x80
"""The bit that says "more follows"."""
_INT32_MAX: Final = (1 << 31) - 1


class _Unreadable(Exception):
    """The bytes are not in the form that this file reads."""


def partitions(assignment: bytes) -> tuple[TopicPartition, ...] | None:
    """Return the partitions that an assignment names, in its order; None if it cannot be read."""
    return _read(assignment, _ASSIGNED_PARTITIONS)


def claimed(subscription: bytes) -> tuple[TopicPartition, ...] | None:
    """Return the partitions that a member says it owns, as `partitions` returns assigned ones."""
    return _read(subscription, _OWNED_PARTITIONS)


def _read(message: bytes, field: int) -> tuple[TopicPartition, ...] | None:
    found: list[TopicPartition] = []
    try:
        for number, content in _fields(message):
            if number == field:
                found += _of_topic(_as_bytes(content))
    except (_Unreadable, UnicodeDecodeError):
        return None
    return tuple(found)


def has_user_data(assignment: bytes) -> bool:
    """Return whether an assignor has put bytes of its own into an assignment that can be read."""
    told = [content for number, content in _fields(assignment) if number == _USER_DATA and content]
    return any(isinstance(each, int) or not each.startswith(_OF_THE_CLIENT) for each in told)


def written(partitions: Iterable[TopicPartitions]) -> bytes:
    """Return the bytes of an assignment, as protobuf writes them."""
    topics = (
        _sized(_TOPIC, each.topic.encode())
        + _sized(_PARTITIONS, b"".join(map(_varint_of, each.partitions)))
        for each in partitions
    )
    return b"".join(_sized(_ASSIGNED_PARTITIONS, topic) for topic in topics)


def _sized(number: int, content: bytes) -> bytes:
    """Return a field of bytes; protobuf leaves empty ones out."""
    tag = bytes([number << 3 | _LENGTH])
    return tag + _varint_of(len(content)) + content if content else b""


def _varint_of(value: int) -> bytes:
    found = bytearray()
    while value >= _MORE:
        found.append(value & (_MORE - 1) | _MORE)
        value >>= 7
    found.append(value)
    return bytes(found)


def _of_topic(message: bytes) -> Iterable[TopicPartition]:
    """Read one `ConsumerProtocolTopicPartitions`."""
    topic = ""
    numbers: list[int] = []
    for number, content in _fields(message):
        if number == _TOPIC:
            topic = _as_bytes(content).decode()
        elif number == _PARTITIONS:
            numbers += [content] if isinstance(content, int) else _packed(content)
    if numbers and max(numbers) > _INT32_MAX:
        raise _Unreadable
    return map(TopicPartition, repeat(topic), numbers)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield each field's number and content: a number, or bytes.

    Fields of fixed width are skipped: this message has none, so protobuf does not know them.
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = _varint(message, at)
            yield tag >> 3, number
            continue
        if kind == _LENGTH:
            width, at = _varint(message, at)
        elif kind in _WIDTHS:
            width = _WIDTHS[kind]
        else:
            raise _Unreadable
        if at + width > end:
            raise _Unreadable
        if kind == _LENGTH:
            yield tag >> 3, message[at : at + width]
        at += width


def _packed(content: bytes) -> Iterable[int]:
    if content.isascii():  # `_MORE` is nowhere set
        return content
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Read the number that begins at `at`; return it and where it ends."""
    if at < len(message) and message[at] < _MORE:
        return message[at], at + 1
    value = shift = 0
    for end, byte in enumerate(message[at : at + _VARINT_BYTES_MAX], at + 1):
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value, end
        shift += 7
    raise _Unreadable


def _as_bytes(content: int | bytes) -> bytes:
    if isinstance(content, int):
        raise _Unreadable
    return content
