"""The entries of an Append: each number of entries has one form, and nothing hides in another.

Protobuf reads a list of numbers packed or unpacked and measures it packed. Unpacked, a list of one
is a byte shorter than measured, one of two is as long, a longer one is longer. So the one place
where a head could be longer than it seems is a list of one: it is refused (ADR 17).
"""

from __future__ import annotations

import pytest
from google.protobuf.message import Message as Protobuf
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.raft.api import BadMessage
from holdfast.raft.messages import Append, LogEntry
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import NUMBER_MAX
from holdfast.raft.wire.codec import decode, encode

TERMS, SIZES, SINGLE = 7, 8, 9
UNPACKED = b"\x08\x05" + b"\x38\x05" + b"\x40\x03"
"""Append: term 5; an entry of term 5 and 3 bytes in lists of one, each a byte short of packed."""
PACKED = b"\x08\x05" + b"\x3a\x01\x05" + b"\x42\x01\x03"
SLACK = {
    "nothing": UNPACKED,
    "nothing, and packed": PACKED,
    "unpacked terms beside packed sizes": b"\x08\x05" + b"\x38\x05" + b"\x42\x01\x03",
    "an unknown field": UNPACKED + b"\x78\x07",
    "a field twice": b"\x08\x09" + UNPACKED,
    "an explicit zero": UNPACKED + b"\x18\x00",
    "a number in a long form": b"\x08\x85\x80\x00" + UNPACKED[2:],
}


def frame(part: bytes, tail: bytes, before: bytes = b"") -> bytes:
    """Return the frame of an Append whose fields are these bytes."""
    head = before + b"\x32" + varint(len(part)) + part
    return len(head).to_bytes(4, "big") + head + tail


def varint(number: int) -> bytes:
    """Return protobuf's shortest form of a number."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("what", SLACK)
def test_nothing_hides_behind_a_list_of_one(what: str) -> None:
    with pytest.raises(BadMessage, match=r"a list of one entry|its head has"):
        decode(frame(SLACK[what], b"abc"))


def test_no_message_hides_before_a_list_of_one() -> None:
    """The last of two messages would count: the head of the first is two bytes, as the slack is."""
    with pytest.raises(BadMessage, match="a list of one entry"):
        decode(frame(UNPACKED, b"abc", before=b"\x1a\x00"))


def test_a_single_entry_has_fields_of_its_own() -> None:
    """The bytes do not change within a peer protocol; field 9 holds the term and the size."""
    message = Append(1, 2, 3, 4, 5, "", (LogEntry(6, b"xyz"),))
    whole = encode(message)

    assert whole.hex() == (
        "00000012" + "3210" + "0801" "1002" "1803" "2004" "2805" + "4a0408061003" + "78797a"
    )  # fmt: skip
    assert decode(whole) == message


BAD: dict[str, tuple[Protobuf, bytes, str]] = {
    "a single entry beside a list": (
        pb.Append(entry_terms=[1, 1], entry_sizes=[1, 1], single=pb.Entry(term=1, size=1)),
        b"abc",
        "a single entry beside a list",
    ),
    "a single entry beside a list of sizes": (
        pb.Append(entry_sizes=[1], single=pb.Entry(term=1, size=1)),
        b"a",
        "a single entry beside a list",
    ),
    "a term out of range": (pb.Append(single=pb.Entry(term=NUMBER_MAX + 1)), b"", "exceeds"),
    "a command that is not there": (pb.Append(single=pb.Entry(size=4)), b"abc", "too few"),
    "bytes that are nobody's": (pb.Append(single=pb.Entry(size=2)), b"abc", "1 bytes too many"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_single_entry_is_refused_with_what_is_wrong(what: str) -> None:
    part, tail, why = BAD[what]

    with pytest.raises(BadMessage, match=why):
        decode(frame(part.SerializeToString(), tail))


# --- every form in which protobuf may write the same ---------------------------------------------

HIDDEN = [b"", b"", b"\x78\x07", b"\x18\x00", b"\x08\x09", b"\x88\x00\x05", b"\x3a\x00"]
"""Before the fields of an Append: nothing; what its shortest form does not have."""
BEFORE = [b"", b"", b"\x1a\x00", b"\x32\x00", b"\x32\x02\x08\x09", b"\xf8\x07\x01"]
"""Before the Append: nothing; another message, the same one, an unknown field."""


@pytest.mark.slow
@given(
    entries=st.lists(st.builds(LogEntry, st.integers(0, NUMBER_MAX), st.binary()), max_size=4),
    packed=st.tuples(st.booleans(), st.booleans()),
    hidden=st.sampled_from(HIDDEN),
    before=st.sampled_from(BEFORE),
    single=st.booleans(),
)
@settings(max_examples=600, deadline=None)
def test_only_the_shortest_form_is_read(
    entries: list[LogEntry],
    packed: tuple[bool, bool],
    hidden: bytes,
    before: bytes,
    single: bool,  # noqa: FBT001 - drawn
) -> None:
    """Entries in lists, packed or not, or alone; with and without what a node does not send.

    Two numbers take as many bytes unpacked as packed, so both forms of such a list are shortest.
    """
    sizes = [len(entry.command) for entry in entries]
    terms = [entry.term for entry in entries]
    alone = single and len(entries) == 1
    lists = (
        _alone(*entries)
        if alone
        else _list(TERMS, terms, packed[0]) + _list(SIZES, sizes, packed[1])
    )
    tail = b"".join(entry.command for entry in entries)
    whole = frame(hidden + b"\x08\x05" + lists, tail, before)

    if not hidden and not before and (alone or _is_shortest(len(entries), packed)):
        assert decode(whole) == Append(5, 0, 0, 0, 0, "", tuple(entries))
    else:
        with pytest.raises(BadMessage):
            decode(whole)


def _is_shortest(count: int, packed: tuple[bool, bool]) -> bool:
    return count in {0, 2} or (count > 2 and all(packed))


def _alone(entry: LogEntry) -> bytes:
    term, size = entry.term, len(entry.command)
    content = (b"\x08" + varint(term) if term else b"") + (b"\x10" + varint(size) if size else b"")
    return varint(SINGLE << 3 | 2) + varint(len(content)) + content


def _list(field: int, numbers: list[int], packed: bool) -> bytes:  # noqa: FBT001 - drawn
    if not packed:
        return b"".join(varint(field << 3) + varint(number) for number in numbers)
    content = b"".join(map(varint, numbers))
    return varint(field << 3 | 2) + varint(len(content)) + content if numbers else b""
