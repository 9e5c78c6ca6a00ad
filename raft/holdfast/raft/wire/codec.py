"""Messages between nodes to frames and back, and the table of all messages.

A frame is the length of the head (4 bytes), the head, which is one `Peer` of peer.proto, and a tail
of bytes as they are. `decode` is strict where protobuf is lenient: a head holds exactly one message
of known fields and is as long as their shortest form. Knows neither the engine nor the network.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from holdfast.raft import messages as m
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire import reading, writing
from holdfast.raft.wire.bounds import bad
from holdfast.raft.wire.greeting import OURS

HEAD_BYTES_MAX: Final = 1 << 20
"""Bounds a head, because it is parsed before its lists can be counted."""

_LENGTH: Final = struct.Struct(">I")


class Form(NamedTuple):
    """How one message travels."""

    part: str
    """The member of `Peer` that carries it."""
    write: Callable[[pb.Peer, Any], writing.Tail]
    """Fills that member."""
    read: Callable[[pb.Peer, bytes], m.Message]
    """Reads it."""
    since: int = OURS.oldest
    """The first protocol that has it: who speaks an older one is not sent it, and sends none."""


TABLE: Final[dict[type[m.Message], Form]] = {
    m.PreVote: Form("pre_vote", writing.pre_vote, reading.pre_vote),
    m.PreVoteGranted: Form("pre_vote_granted", writing.pre_vote_granted, reading.pre_vote_granted),
    m.TermNotice: Form("term_notice", writing.term_notice, reading.term_notice),
    m.RequestVote: Form("request_vote", writing.request_vote, reading.request_vote),
    m.VoteGranted: Form("vote_granted", writing.vote_granted, reading.vote_granted),
    m.Append: Form("append", writing.append, reading.append),
    m.EntryChunk: Form("entry_chunk", writing.entry_chunk, reading.entry_chunk),
    m.SnapshotChunk: Form("snapshot_chunk", writing.snapshot_chunk, reading.snapshot_chunk),
    m.ChunkAck: Form("chunk_ack", writing.chunk_ack, reading.chunk_ack),
    m.Ack: Form("ack", writing.ack, reading.ack),
    m.TimeoutNow: Form("timeout_now", writing.timeout_now, reading.timeout_now),
    m.Hello: Form("hello", writing.hello, reading.hello),
    m.StateDigest: Form("state_digest", writing.state_digest, reading.state_digest),
    m.Recall: Form("recall", writing.recall, reading.recall),
    m.Recalled: Form("recalled", writing.recalled, reading.recalled),
    m.Witness: Form("witness", writing.witness, reading.witness),
    m.Removed: Form("removed", writing.removed, reading.removed),
}
_WRITERS: Final = {kind: form.write for kind, form in TABLE.items()}
_READERS: Final = {form.part: form.read for form in TABLE.values()}
_SINCE: Final = {form.part: form.since for form in TABLE.values()}


def encode(message: m.Message) -> bytes:
    """Return the frame of a message. Raises ValueError for a number that peer.proto cannot hold."""
    peer = pb.Peer()
    tail = _WRITERS[type(message)](peer, message)
    head = peer.SerializeToString()
    return b"".join((_LENGTH.pack(len(head)), head, *tail))


def since(message: m.Message) -> int:
    """Return the first protocol that has a message."""
    return TABLE[type(message)].since


def decode(frame: bytes, protocol: int = OURS.newest) -> m.Message:
    """Return the message of a frame; raises BadMessage unless it is exactly one valid message.

    `protocol`: the one that the connection speaks; messages of a later one are not valid on it.
    """
    if len(frame) < _LENGTH.size:
        bad(f"{len(frame)} bytes are too few")
    size: int = _LENGTH.unpack_from(frame)[0]
    end = size + _LENGTH.size
    if end > len(frame) or size > HEAD_BYTES_MAX:
        bad(f"its head claims {size} bytes, more than there are or may be")
    peer = _head(frame[_LENGTH.size : end])
    part = peer.WhichOneof("message")
    if part is None:
        bad("its head holds no message")
    if _SINCE[part] > protocol:
        bad(f"{part} is of protocol {_SINCE[part]}, and the connection speaks {protocol}")
    return _READERS[part](peer, frame[end:])


def _head(head: bytes) -> pb.Peer:
    """Parse a head; refuse one that is longer than the shortest form of its known fields.

    Its length shows unknown fields, fields that come twice, two messages, explicit zeros and long
    forms of numbers. The order of fields is free: protobuf promises none. No form may be shorter
    than the measured one, or something could hide in the difference: only a list of one number,
    unpacked, is, so `reading` refuses lists of one.
    """
    try:
        peer = pb.Peer.FromString(head)
    except DecodeError:
        bad("its head is no protobuf, or a text in it no UTF-8")
    peer.DiscardUnknownFields()
    if (shortest := peer.ByteSize()) != len(head):
        bad(f"its head has {len(head)} bytes where {shortest} do: unknown or repeated fields")
    return peer
