"""Messages between nodes as bytes: what is written is read, and nothing else is."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
from google.protobuf.message import Message as Protobuf
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.raft.api import BadMessage
from holdfast.raft.messages import (
    ITEMS_MAX,
    Ack,
    Append,
    ChunkAck,
    EntryChunk,
    Formed,
    Hello,
    LogEntry,
    Message,
    PreVote,
    PreVoteGranted,
    Recall,
    Recalled,
    Removed,
    RequestVote,
    SnapshotChunk,
    StateDigest,
    TermNotice,
    TimeoutNow,
    VoteGranted,
    Witness,
)
from holdfast.raft.wire import codec
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import NUMBER_MAX, TEXT_MAX
from holdfast.raft.wire.codec import HEAD_BYTES_MAX, TABLE, decode, encode

YES, NO = True, False
ENTRIES = (LogEntry(1, b"\x01"), LogEntry(2, b""), LogEntry(3, b"\xff" * 99))
EXAMPLES: list[Message] = [
    PreVote(1, 2, 3, 4),
    PreVoteGranted(1, 2),
    TermNotice(NUMBER_MAX),
    RequestVote(5, 6, 7, 4),
    VoteGranted(5),
    VoteGranted(0),
    Append(1, 2, 3, 4, 5, "", ()),
    Append(1, 2, 3, 4, 5, "0f", ENTRIES),
    Append(1, 2, 3, 4, 5, "0f", ENTRIES[1:2]),
    EntryChunk(1, 2, 3, 4, 5, 6, 700, 300, b"abc"),
    SnapshotChunk(1, 2, 3, 4, 5, YES, b""),
    SnapshotChunk(1, 2, 3, 4, 0, NO, b"x", 3, "A, B"),
    ChunkAck(1, 2, 3),
    Ack(1, 2, YES, NO, 3, 400, "member", "00ff"),
    TimeoutNow(9),
    Hello("cluster", "forming", "00ff", NO, (Formed("A", "1"), Formed("ü", "2"))),
    StateDigest(512, b"digest"),
    Recall("00ff"),
    Recalled("", 0, 0, 0),
    Witness("A", "", 3, 4),
    Removed(9),
]
IDS = [type(message).__name__ for message in EXAMPLES]

# --- the table ----------------------------------------------------------------------------------


def test_every_message_has_its_form_and_every_part_its_message() -> None:
    """No message is forgotten, and nothing in peer.proto is read by nobody."""
    assert TABLE.keys() == {*get_args(Message)} == {type(message) for message in EXAMPLES}
    parts = pb.Peer.DESCRIPTOR.oneofs_by_name["message"].fields

    assert {form.part for form in TABLE.values()} == {part.name for part in parts}
    assert len(parts) == len(TABLE)
    assert len(pb.Peer.DESCRIPTOR.fields) == len(parts)


@pytest.mark.parametrize("kind", TABLE)
def test_a_part_has_the_name_of_its_message(kind: type[Message]) -> None:
    part = getattr(pb.Peer(), TABLE[kind].part)

    assert type(part).__name__ == kind.__name__


# --- what is written is read ------------------------------------------------------------------

SIMPLE: dict[object, st.SearchStrategy[Any]] = {
    int: st.integers(0, NUMBER_MAX),
    bool: st.booleans(),
    str: st.text(min_size=1, max_size=TEXT_MAX),
    bytes: st.binary(min_size=1, max_size=TEXT_MAX),
}
LISTS: dict[object, st.SearchStrategy[Any]] = {
    "entries": st.lists(st.builds(LogEntry, SIMPLE[int], st.binary()), max_size=5).map(tuple),
    "formed": st.lists(st.builds(Formed, SIMPLE[str], SIMPLE[str]), max_size=5).map(tuple),
    "data": st.binary(max_size=5_000),
    "admit": st.text(max_size=TEXT_MAX),
}


def any_of(kind: type[Message]) -> st.SearchStrategy[Message]:
    assert is_dataclass(kind)
    hints = get_type_hints(kind)
    return st.builds(
        kind,
        *((LISTS | SIMPLE)[f.name if f.name in LISTS else hints[f.name]] for f in fields(kind)),
    )


@pytest.mark.slow
@given(st.one_of([any_of(kind) for kind in TABLE]))
@settings(max_examples=400, deadline=None)
def test_what_is_written_is_read(message: Message) -> None:
    """Whatever its values are, as long as a node may send them."""
    read = decode(encode(message))

    assert read == message
    assert type(read) is type(message)
    assert [*map(type, _values(read))] == [*map(type, _values(message))]


def _values(message: Message) -> list[object]:
    return [getattr(message, field.name) for field in fields(message)]


@pytest.mark.parametrize("message", EXAMPLES, ids=IDS)
def test_an_example_is_read(message: Message) -> None:
    assert decode(encode(message)) == message


def test_golden_frames() -> None:
    """The bytes of a message do not change within a peer protocol (`wire.greeting`).

    Length of the head; the part of `Peer` (0x32: field 6, of some length); its fields; commands.
    """
    heartbeat = encode(Append(1, 2, 300, 4, 5, "", ()))
    entries = encode(Append(1, 2, 3, 4, 5, "ab", (LogEntry(6, b"xyz"), LogEntry(7, b""))))
    chunk = encode(SnapshotChunk(1, 2, 3, 4, 5, YES, b"xyz"))

    assert heartbeat.hex() == "0000000d" + "320b" + "0801100218ac0220042805"
    assert entries.hex() == (
        "00000018" + "3216" + "0801" "1002" "1803" "2004" "2805"
        + "32026162" + "3a020607" + "42020300" + "78797a"
    )  # fmt: skip
    assert chunk.hex() == ("00000010" + "420e" + "0801100218032004280530013803" + "78797a")


# --- and nothing else is -----------------------------------------------------------------------


def frame(head: Protobuf | bytes, tail: bytes = b"") -> bytes:
    content = head if isinstance(head, bytes) else head.SerializeToString()
    return len(content).to_bytes(4, "big") + content + tail


@pytest.mark.parametrize("message", EXAMPLES, ids=IDS)
def test_no_frame_may_be_cut_or_lengthened(message: Message) -> None:
    whole = encode(message)
    for size in range(len(whole)):
        with pytest.raises(BadMessage):
            decode(whole[:size])
    with pytest.raises(BadMessage, match="too many"):
        decode(whole + b"\x00")


def test_every_head_may_not_have_an_unknown_field() -> None:
    """In `Peer`, in its part, in a list's messages: what a later node says is not half-read."""
    for message in EXAMPLES:
        peer = pb.Peer.FromString(_head(encode(message)))
        part = TABLE[type(message)].part
        beyond = b"\xf8\x07\x01"  # field 127 = 1
        with pytest.raises(BadMessage, match="unknown"):
            decode(frame(peer.SerializeToString() + beyond))
        inner = getattr(peer, part)
        inner.MergeFromString(beyond)
        with pytest.raises(BadMessage, match="unknown"):
            decode(frame(peer))
    hello = pb.Hello(formed=[pb.Formed.FromString(b"\x0a\x01A\x12\x011\xf8\x07\x01")])
    with pytest.raises(BadMessage, match="unknown"):
        decode(frame(pb.Peer(hello=hello)))


def _head(whole: bytes) -> bytes:
    return whole[4 : 4 + int.from_bytes(whole[:4], "big")]


def _append(**more: object) -> pb.Peer:
    return pb.Peer(append=pb.Append(term=1, **more))  # type: ignore[arg-type]  # any field


def _ack(**more: object) -> pb.Peer:
    parts = {"stage": "member", "incarnation": "1", **more}
    return pb.Peer(ack=pb.Ack(**parts))  # type: ignore[arg-type]  # any field


def _hello(*formed: pb.Formed, **more: object) -> pb.Peer:
    parts = {"cluster_id": "c", "stage": "member", "incarnation": "1", **more}
    return pb.Peer(hello=pb.Hello(formed=formed, **parts))  # type: ignore[arg-type]  # any field


TWO = pb.Peer(term_notice=pb.TermNotice(term=1)).SerializeToString()
TWO += pb.Peer(timeout_now=pb.TimeoutNow(term=1)).SerializeToString()
BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "too few"),
    "an empty head": (frame(b""), "no message"),
    "a head that claims too much": (b"\xff\xff\xff\xff" + bytes(9), "claims 4294967295 bytes"),
    "a head that is too long": (
        frame(bytes(HEAD_BYTES_MAX + 1)),
        f"claims {HEAD_BYTES_MAX + 1} bytes",
    ),
    "no protobuf": (frame(b"\xff\xff"), "no protobuf"),
    "two messages": (frame(TWO), "repeated"),
    "a field twice": (frame(b"\x1a\x04\x08\x01\x08\x01"), "repeated"),
    "an explicit zero": (frame(b"\x1a\x02\x08\x00"), "repeated"),
    "a number in a long form": (frame(b"\x1a\x03\x08\x81\x00"), "repeated"),
    "a number of another wire type": (
        frame(b"\x1a\x09\x09" + bytes(7) + b"\x01"),
        "unknown",
    ),
    "a text that is no UTF-8": (frame(b"\x72\x03\x0a\x01\xff"), "UTF-8"),
    "a negative number": (frame(b"\x1a\x0b\x08" + b"\xff" * 9 + b"\x01"), "exceeds"),
    "a number out of range": (
        frame(pb.Peer(term_notice=pb.TermNotice(term=2**63))),
        "exceeds",
    ),
    "an entry's term out of range": (
        frame(_append(entry_terms=[1, 2**63], entry_sizes=[0, 0])),
        "exceeds",
    ),
    "a flag that is none": (frame(_ack(success=2)), "2 is not a flag"),
    "an answer that is no flag": (frame(_hello(answer=2)), "2 is not a flag"),
    "a last chunk that is no flag": (
        frame(pb.Peer(snapshot_chunk=pb.SnapshotChunk(last=2))),
        "2 is not a flag",
    ),
    "a text that is too long": (frame(_append(admit="x" * (TEXT_MAX + 1))), "exceeds"),
    "a name that is too long": (frame(_ack(stage="x" * (TEXT_MAX + 1))), "exceeds"),
    "an ack of no disk": (frame(_ack(incarnation="")), "a name is missing"),
    "an ack of no stage": (frame(_ack(stage="")), "a name is missing"),
    "a hello of no cluster": (frame(_hello(cluster_id="")), "a name is missing"),
    "a hello of no disk": (frame(_hello(incarnation="")), "a name is missing"),
    "a hello that knows nobody's disk": (
        frame(_hello(pb.Formed(incarnation="1"))),
        "a name is missing",
    ),
    "a recall of no disk": (frame(b"\x72\x00"), "a name is missing"),
    "a witness of nobody": (frame(b"\x82\x01\x00"), "a name is missing"),
    "no digest": (frame(pb.Peer(state_digest=pb.StateDigest(index=1))), "a digest of 0"),
    "a long digest": (
        frame(pb.Peer(state_digest=pb.StateDigest(digest=bytes(TEXT_MAX + 1)))),
        "a digest of 257",
    ),
    "more terms than sizes": (frame(_append(entry_terms=[1, 1], entry_sizes=[0])), "2 terms"),
    "more sizes than terms": (frame(_append(entry_terms=[], entry_sizes=[0])), "1 sizes"),
    "too many entries": (
        frame(_append(entry_terms=[1] * (ITEMS_MAX + 1), entry_sizes=[0] * (ITEMS_MAX + 1))),
        "a list of 65537 exceeds 65536",
    ),
    "too many disks": (
        frame(_hello(*[pb.Formed(node="A", incarnation="1")] * (ITEMS_MAX + 1))),
        "a list of 65537 exceeds 65536",
    ),
    "commands that are not there": (
        frame(_append(entry_terms=[1, 1], entry_sizes=[1, 3]), b"abc"),
        "3 bytes after its head are too few: it speaks of 4",
    ),
    "a size that nothing can have": (
        frame(_append(entry_terms=[1, 1], entry_sizes=[2**64 - 1, 2]), b"abc"),
        "too few",
    ),
    "commands that are nobody's": (
        frame(_append(entry_terms=[1, 1], entry_sizes=[1, 1]), b"abc"),
        "1 bytes too many",
    ),
    "data that are not there": (
        frame(pb.Peer(entry_chunk=pb.EntryChunk(data_size=4)), b"abc"),
        "too few",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_frame_is_refused_with_what_is_wrong(what: str) -> None:
    whole, why = BAD[what]

    with pytest.raises(BadMessage, match=f"no node sends this: .*{why}"):
        decode(whole)


@pytest.mark.parametrize("kind", TABLE)
def test_no_number_of_any_message_may_be_out_of_range(kind: type[Message]) -> None:
    """Each of its number fields in turn is 2^63, the others are in order."""
    example = next(message for message in EXAMPLES if type(message) is kind)
    for field in getattr(pb.Peer(), TABLE[kind].part).DESCRIPTOR.fields:
        peer = pb.Peer.FromString(_head(encode(example)))
        if field.is_repeated or field.type != field.TYPE_UINT64:
            continue
        setattr(getattr(peer, TABLE[kind].part), field.name, 2**63)
        with pytest.raises(BadMessage, match=r"exceeds|not a flag|too few"):
            decode(frame(peer))


def test_a_number_that_no_field_holds_is_not_sent() -> None:
    with pytest.raises(ValueError, match="-1"):
        encode(VoteGranted(-1))


def test_a_message_of_a_later_protocol_is_not_read_on_an_older_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading stays strict for what was negotiated."""
    monkeypatch.setitem(codec._SINCE, "vote_granted", 5)
    frame = encode(VoteGranted(1))

    assert decode(frame, 5) == VoteGranted(1)
    with pytest.raises(BadMessage, match="is of protocol 5, and the connection speaks 4"):
        decode(frame, 4)


def test_garbage_never_raises_anything_else() -> None:
    """Ten thousand frames, random and damaged (seed 7): a message or BadMessage.

    What is read is what the node would send with the same fields, in whatever order they came.
    """
    chance = random.Random(7)
    for _ in range(10_000):
        whole = bytearray(encode(chance.choice(EXAMPLES)))
        for _ in range(chance.randint(1, 3)):
            whole[chance.randrange(len(whole))] = chance.randrange(256)
        try:
            read = decode(bytes(whole))
        except BadMessage:
            continue
        assert len(encode(read)) == len(whole)
