"""Count the items of a message in its bytes, without parsing it (protobuf's wire format).

Parsing makes an object of every two bytes of a list of empty items; counting makes none and stops
at the first item too many. Malformed bytes are left to the parser, which stops at the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

VARINT, EIGHT_BYTES, SIZED, GROUP, GROUP_END, FOUR_BYTES = range(6)
"""Wire types, as protobuf numbers them."""
_VARINT_BYTES_MAX: Final = 10
_ONE_BYTE: Final = 127
"""The largest number whose varint takes one byte."""
_MORE: Final = bytes(range(128, 256))
"""The bytes of a varint after which another byte follows."""
PLAIN_MESSAGE_BYTES: Final = 4_096
"""Bytes above which a nested message without lists is counted inside: below, fields are few."""


class Field(NamedTuple):
    """A field that is repeated or holds messages."""

    path: str
    name: str
    number: int
    most: int | None  # items that it may hold in the whole message; None: it is not repeated
    packed: bool  # it holds numbers, which are encoded in one run
    inner: Mapping[int, Field] | None  # such fields of its messages by number; None: no messages
    lists: bool  # whether a field in `inner` is repeated


class TooMany(Exception):
    """A message holds more than it may. `field` None: more fields than any valid message has."""

    def __init__(self, field: Field | None) -> None:
        """`field`: the field with too many items."""
        super().__init__(field.path if field else "fields")
        self.field = field


class _Malformed(Exception):
    """The bytes are no message; the parser will report that."""


class Counter:
    """Counts one message."""

    def __init__(self, raw: bytes, fields_max: int, items_more: int = 0) -> None:
        """`items_more`: items by which each bound is raised for this message."""
        self._raw, self._fields_left, self._items_more = raw, fields_max, items_more
        self._counts: dict[str, int] = {}
        self._nested: list[tuple[int, int, Mapping[int, Field]]] = []

    def count(self, known: Mapping[int, Field]) -> None:
        """Raise TooMany at the first item or field too many."""
        self._nested.append((0, len(self._raw), known))
        while self._nested:
            try:
                self._level(*self._nested.pop())
            except (_Malformed, IndexError):
                continue  # the parser still reads what lies before it in the same message

    def _level(self, at: int, end: int, known: Mapping[int, Field]) -> None:
        raw, number, get = self._raw, self._number, known.get
        while at < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise TooMany(None)
            first, (tag, at) = at, number(at)
            field = get(tag >> 3)
            if tag & 7 == SIZED:
                size, at = number(at)
                if field is not None:
                    self._sized(field, at, min(size, end - at))  # what is cut off is read, too
                at += size
                if field is not None and field.inner is not None and not field.lists:
                    at = self._run(field, raw[first], at, end)
            else:
                if field is not None:
                    self._add(field, 1)
                at = self._after(tag & 7, at)

    def _run(self, field: Field, tag: int, at: int, end: int) -> int:
        """Count further short items of the same list, several times faster than one by one.

        Returns the offset where the run ends: at another field, or at an item to be counted inside.
        """
        if field.most is None or tag > _ONE_BYTE:
            return at
        raw, items = self._raw, 0
        room = field.most + self._items_more - self._counts[field.path]
        while at < end and raw[at] == tag and items <= room:
            size = raw[at + 1]
            if size <= _ONE_BYTE:
                at += 2 + size
            elif raw[at + 2] < PLAIN_MESSAGE_BYTES >> 7:
                at += 3 + (size & _ONE_BYTE | raw[at + 2] << 7)
            else:
                break
            items += 1
        self._fields_left -= items
        self._add(field, items)
        return at

    def _sized(self, field: Field, at: int, size: int) -> None:
        items = 1
        if field.packed:
            items = len(self._raw[at : at + size].translate(None, _MORE))
        elif field.inner is not None and (field.lists or size > PLAIN_MESSAGE_BYTES):
            self._nested.append((at, at + size, field.inner))
        self._add(field, items)

    def _add(self, field: Field, items: int) -> None:
        if field.most is None:
            return
        count = self._counts[field.path] = self._counts.get(field.path, 0) + items
        if count > field.most + self._items_more:
            raise TooMany(field)

    def _after(self, kind: int, at: int) -> int:
        if kind == VARINT:
            return self._number(at)[1]
        if kind == EIGHT_BYTES:
            return at + 8
        if kind == FOUR_BYTES:
            return at + 4
        if kind in {GROUP, GROUP_END}:
            return at  # what is inside is counted as if it were outside
        raise _Malformed

    def _number(self, at: int) -> tuple[int, int]:
        """Decode a varint; return its value and the offset after it."""
        first = self._raw[at]
        if first <= _ONE_BYTE:
            return first, at + 1
        second = self._raw[at + 1]
        if second <= _ONE_BYTE:
            return first & _ONE_BYTE | second << 7, at + 2
        value = 0
        for place in range(_VARINT_BYTES_MAX):
            byte = self._raw[at + place]
            value |= (byte & _ONE_BYTE) << 7 * place
            if byte <= _ONE_BYTE:
                return value, at + place + 1
        raise _Malformed


def first_bytes(field: Field) -> tuple[bytes, ...]:
    """Return the bytes of which one begins each item, however its sender encodes the number."""
    first = field.number << 3 & _ONE_BYTE | SIZED
    return bytes([first]), bytes([first | 128])
