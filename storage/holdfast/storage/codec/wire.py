"""Protobuf's wire format by hand, where each event of each entry passes: numbers, fields, cuts.

A record's head is a few numbers, and an entry has to be taken apart into its events' bytes; to make
messages for that costs several times as much. Bytes in, bytes out: knows no message and no schema.
"""

from __future__ import annotations

from typing import Final

_VARINT: Final = 0
_EIGHT_BYTES: Final = 1
_BYTES: Final = 2
_FOUR_BYTES: Final = 5
_FIXED: Final = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}

_MORE: Final = 0x80
_SEVEN: Final = 0x7F
_TWO_BYTES: Final = 1 << 14
_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(_MORE))
_SPAN: Final = 1 << 64


def varint(number: int) -> bytes:
    """Encode a number that is not negative, seven bits a byte, the lowest first."""
    if number < _MORE:
        return _ONE_BYTE[number]
    if number < _TWO_BYTES:
        return bytes((number & _SEVEN | _MORE, number >> 7))
    out = bytearray()
    while number > _SEVEN:
        out.append(number & _SEVEN | _MORE)
        number >>= 7
    out.append(number)
    return bytes(out)


def unsigned(tag: bytes, number: int, bits: int) -> bytes:
    """Encode a field of type uint32 or uint64; a zero is left out.

    Raises ValueError if the number has more bits or is negative.
    """
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{number} is no number of {bits} bits")
    return tag + varint(number) if number else b""


def signed(tag: bytes, number: int) -> bytes:
    """Encode a field of type int64; a zero is left out. Raises ValueError if it does not fit."""
    if not -_SPAN // 2 <= number < _SPAN // 2:
        raise ValueError(f"{number} is no number of 64 bits with a sign")
    return tag + varint(number % _SPAN) if number else b""


def text(tag: bytes, value: str) -> bytes:
    """Encode a field of type string; an empty one is left out. Raises ValueError for no Unicode."""
    return nested(tag, str.encode(value)) if value else b""


def nested(tag: bytes, content: bytes) -> bytes:
    """Encode a field that has a length: a message or bytes."""
    return tag + varint(len(content)) + content


def cut(data: bytes, tag: int, start: int, end: int) -> list[tuple[int, int]]:
    """Return where the contents of a message's fields with this tag begin and end, in order.

    The message lies between `start` and `end`. Raises ValueError if its fields do not end there, or
    if it has a group, which no message of ours has.
    """
    found: list[tuple[int, int]] = []
    try:
        while start < end:
            if data[start] == tag and (size := data[start + 1]) < _MORE:  # nearly all: no call
                start += 2 + size
                found.append((start - size, start))
            else:
                start = _pass_field(data, start, tag, found)
    except IndexError:
        raise ValueError("a field is cut off") from None
    if start > end:
        raise ValueError("a field reaches beyond the end of its message")
    return found


def _pass_field(data: bytes, at: int, tag: int, found: list[tuple[int, int]]) -> int:
    """Return the place after a field; note its content if it has the tag. Raises IndexError, too.

    Numbers of one byte, as nearly all tags and lengths are, are read without a call.
    """
    seen, at = data[at], at + 1
    if seen > _SEVEN:
        seen, at = _number(data, at - 1)
    kind = seen & 7
    if kind == _BYTES:
        size, at = data[at], at + 1
        if size > _SEVEN:
            size, at = _number(data, at - 1)
        if seen == tag:
            found.append((at, at + size))
        return at + size
    if kind == _VARINT:
        while data[at] > _SEVEN:
            at += 1
        return at + 1
    if kind in _FIXED:
        return at + _FIXED[kind]
    raise ValueError(f"a field of wire type {kind}")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Decode a varint; return it and the place after it. Raises IndexError if it does not end."""
    number, shift = 0, 0
    while data[at] > _SEVEN:
        number |= (data[at] & _SEVEN) << shift
        shift += 7
        at += 1
    return number | data[at] << shift, at + 1
