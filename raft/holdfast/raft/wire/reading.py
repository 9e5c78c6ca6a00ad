"""One function for each message between nodes: it reads the message's part of a `Peer`, strictly.

Protobuf takes any number for a number and what is missing for zero. Here every number, text and
list is within its bounds, nothing that must be there is missing, and the tail is as long as the
head says; all else is `BadMessage`. Knows no frames; `writing` is the other direction, `codec` has
the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from holdfast.raft import messages as m
from holdfast.raft.wire import peer_pb2 as pb

NUMBER_MAX: Final = 2**63 - 1
"""Anything above is a negative number in two's complement, or nothing that a node counts."""
TEXT_MAX: Final = 256
"""Characters of a text, and bytes of a digest."""
ITEMS_MAX: Final = 1 << 16
"""Entries of an `Append`, and nodes of a `Hello`."""


def bad(why: str) -> NoReturn:
    """Refuse a frame."""
    raise m.BadMessage(f"not a Raft message: {why}")


# --- bounds -------------------------------------------------------------------------------


def _bound(bits: int) -> None:
    """Refuse numbers that are too great; `bits`: all of a message's numbers, joined by `|`."""
    if bits > NUMBER_MAX:
        bad(f"a number exceeds {NUMBER_MAX}")


def _flag(value: int) -> bool:
    if value > 1:
        bad(f"{value} is not a flag")
    return value == 1


def _text(value: str) -> str:
    if len(value) > TEXT_MAX:
        bad(f"a text of {len(value)} characters exceeds {TEXT_MAX}")
    return value


def _name(value: str) -> str:
    """Check a text that is never empty."""
    if not value:
        bad("a name is missing")
    return _text(value)


def _count(items: Sequence[object]) -> int:
    if len(items) > ITEMS_MAX:
        bad(f"a list of {len(items)} exceeds {ITEMS_MAX}")
    return len(items)


def _measure(tail: bytes, wanted: int) -> None:
    if wanted > len(tail):
        bad(f"{len(tail)} bytes after its head are too few: it speaks of {wanted}")
    if wanted < len(tail):
        bad(f"{len(tail) - wanted} bytes too many")


# --- messages -----------------------------------------------------------------------------


def pre_vote(peer: pb.Peer, tail: bytes) -> m.PreVote:
    part = peer.pre_vote
    _measure(tail, 0)
    _bound(part.round | part.term | part.last_index | part.last_term)
    return m.PreVote(part.round, part.term, part.last_index, part.last_term)


def pre_vote_granted(peer: pb.Peer, tail: bytes) -> m.PreVoteGranted:
    part = peer.pre_vote_granted
    _measure(tail, 0)
    _bound(part.round | part.term)
    return m.PreVoteGranted(part.round, part.term)


def term_notice(peer: pb.Peer, tail: bytes) -> m.TermNotice:
    term = peer.term_notice.term
    _measure(tail, 0)
    _bound(term)
    return m.TermNotice(term)


def request_vote(peer: pb.Peer, tail: bytes) -> m.RequestVote:
    part = peer.request_vote
    _measure(tail, 0)
    _bound(part.term | part.last_index | part.last_term | part.transfer)
    return m.RequestVote(part.term, part.last_index, part.last_term, part.transfer)


def vote_granted(peer: pb.Peer, tail: bytes) -> m.VoteGranted:
    term = peer.vote_granted.term
    _measure(tail, 0)
    _bound(term)
    return m.VoteGranted(term)


def append(peer: pb.Peer, tail: bytes) -> m.Append:
    part = peer.append
    term, probe, commit_index = part.term, part.round, part.commit_index
    prev_index, prev_term = part.prev_index, part.prev_term
    _bound(term | probe | commit_index | prev_index | prev_term)
    entries = _entries(part.entry_terms, part.entry_sizes, tail)
    return m.Append(term, probe, commit_index, prev_index, prev_term, _text(part.admit), entries)


def _entries(terms: Sequence[int], sizes: Sequence[int], tail: bytes) -> tuple[m.LogEntry, ...]:
    """Cut the tail into commands."""
    count = _count(terms)
    if len(sizes) != count:
        bad(f"{count} terms of entries and {len(sizes)} sizes")
    _measure(tail, sum(sizes) if count else 0)
    if not count:
        return ()
    _bound(max(terms))
    entries, at = [], 0
    for term, size in zip(terms, sizes, strict=True):
        entries.append(m.LogEntry(term, tail[at : at + size]))
        at += size
    return tuple(entries)


def entry_chunk(peer: pb.Peer, tail: bytes) -> m.EntryChunk:
    part = peer.entry_chunk
    term, probe, commit_index = part.term, part.round, part.commit_index
    prev_index, prev_term, entry_term = part.prev_index, part.prev_term, part.entry_term
    total, offset = part.total, part.offset
    _bound(term | probe | commit_index | prev_index | prev_term | entry_term | total | offset)
    _measure(tail, part.data_size)
    head = (term, probe, commit_index, prev_index, prev_term)
    return m.EntryChunk(*head, entry_term, total, offset, tail)


def snapshot_chunk(peer: pb.Peer, tail: bytes) -> m.SnapshotChunk:
    part = peer.snapshot_chunk
    term, probe, index, index_term = part.term, part.round, part.index, part.index_term
    offset = part.offset
    _bound(term | probe | index | index_term | offset)
    _measure(tail, part.data_size)
    return m.SnapshotChunk(term, probe, index, index_term, offset, _flag(part.last), tail)


def chunk_ack(peer: pb.Peer, tail: bytes) -> m.ChunkAck:
    part = peer.chunk_ack
    _measure(tail, 0)
    _bound(part.term | part.index | part.offset)
    return m.ChunkAck(part.term, part.index, part.offset)


def ack(peer: pb.Peer, tail: bytes) -> m.Ack:
    part = peer.ack
    term, next_index, probe, promise_ms = part.term, part.next_index, part.round, part.promise_ms
    _measure(tail, 0)
    _bound(term | next_index | probe | promise_ms)
    told = (_flag(part.success), _flag(part.reset), probe, promise_ms)
    return m.Ack(term, next_index, *told, _name(part.stage), _name(part.incarnation))


def timeout_now(peer: pb.Peer, tail: bytes) -> m.TimeoutNow:
    term = peer.timeout_now.term
    _measure(tail, 0)
    _bound(term)
    return m.TimeoutNow(term)


def hello(peer: pb.Peer, tail: bytes) -> m.Hello:
    part = peer.hello
    _measure(tail, 0)
    _count(part.formed)
    formed = tuple(m.Formed(_name(each.node), _name(each.incarnation)) for each in part.formed)
    who = (_name(part.cluster_id), _name(part.stage), _name(part.incarnation))
    return m.Hello(*who, _flag(part.answer), formed)


def state_digest(peer: pb.Peer, tail: bytes) -> m.StateDigest:
    part = peer.state_digest
    _measure(tail, 0)
    _bound(part.index)
    if not 0 < len(part.digest) <= TEXT_MAX:
        bad(f"a digest of {len(part.digest)} bytes")
    return m.StateDigest(part.index, part.digest)


def recall(peer: pb.Peer, tail: bytes) -> m.Recall:
    _measure(tail, 0)
    return m.Recall(_name(peer.recall.incarnation))


def recalled(peer: pb.Peer, tail: bytes) -> m.Recalled:
    part = peer.recalled
    _measure(tail, 0)
    _bound(part.term | part.index | part.vote_term)
    return m.Recalled(_text(part.incarnation), part.term, part.index, part.vote_term)


def witness(peer: pb.Peer, tail: bytes) -> m.Witness:
    part = peer.witness
    _measure(tail, 0)
    _bound(part.term | part.index)
    return m.Witness(_name(part.node), _text(part.incarnation), part.term, part.index)
