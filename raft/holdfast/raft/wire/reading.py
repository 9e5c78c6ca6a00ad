"""One function for each message between nodes: it reads the message's part of a `Peer`, strictly.

Protobuf takes any number for a number and what is missing for zero. Here every number, text and
list is within its bounds, nothing that must be there is missing, and the tail is as long as the
head says; all else is `BadMessage`. Knows no frames; `writing` is the other direction, `codec` has
the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.raft import messages as m
from holdfast.raft.wire import peer_pb2 as pb
from holdfast.raft.wire.bounds import TEXT_MAX, bad, bound, count, flag, measure, name, text


def pre_vote(peer: pb.Peer, tail: bytes) -> m.PreVote:
    part = peer.pre_vote
    measure(tail, 0)
    bound(part.round | part.term | part.last_index | part.last_term)
    return m.PreVote(part.round, part.term, part.last_index, part.last_term)


def pre_vote_granted(peer: pb.Peer, tail: bytes) -> m.PreVoteGranted:
    part = peer.pre_vote_granted
    measure(tail, 0)
    bound(part.round | part.term)
    return m.PreVoteGranted(part.round, part.term)


def term_notice(peer: pb.Peer, tail: bytes) -> m.TermNotice:
    term = peer.term_notice.term
    measure(tail, 0)
    bound(term)
    return m.TermNotice(term)


def request_vote(peer: pb.Peer, tail: bytes) -> m.RequestVote:
    part = peer.request_vote
    measure(tail, 0)
    bound(part.term | part.last_index | part.last_term | part.transfer)
    return m.RequestVote(part.term, part.last_index, part.last_term, part.transfer)


def vote_granted(peer: pb.Peer, tail: bytes) -> m.VoteGranted:
    term = peer.vote_granted.term
    measure(tail, 0)
    bound(term)
    return m.VoteGranted(term)


def append(peer: pb.Peer, tail: bytes) -> m.Append:
    part = peer.append
    term, probe, commit_index = part.term, part.round, part.commit_index
    prev_index, prev_term = part.prev_index, part.prev_term
    bound(term | probe | commit_index | prev_index | prev_term)
    if part.HasField("single"):
        entries = _single(part, tail)
    else:
        entries = _entries(part.entry_terms, part.entry_sizes, tail)
    return m.Append(term, probe, commit_index, prev_index, prev_term, text(part.admit), entries)


def _single(part: pb.Append, tail: bytes) -> tuple[m.LogEntry, ...]:
    """Take the tail for the command of the only entry."""
    if part.entry_terms or part.entry_sizes:
        bad("a single entry beside a list")
    term = part.single.term
    bound(term)
    measure(tail, part.single.size)
    return (m.LogEntry(term, tail),)


def _entries(terms: Sequence[int], sizes: Sequence[int], tail: bytes) -> tuple[m.LogEntry, ...]:
    """Cut the tail into the commands of entries.

    A list of one has slack: unpacked, it is a byte shorter than the form that `codec` measures.
    """
    entry_count = count(terms)
    if len(sizes) != entry_count:
        bad(f"{entry_count} terms of entries and {len(sizes)} sizes")
    if entry_count == 1:
        bad("a list of one entry")
    measure(tail, sum(sizes) if entry_count else 0)
    if not entry_count:
        return ()
    bound(max(terms))
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
    bound(term | probe | commit_index | prev_index | prev_term | entry_term | total | offset)
    measure(tail, part.data_size)
    head = (term, probe, commit_index, prev_index, prev_term)
    return m.EntryChunk(*head, entry_term, total, offset, tail)


def snapshot_chunk(peer: pb.Peer, tail: bytes) -> m.SnapshotChunk:
    part = peer.snapshot_chunk
    term, probe, index, index_term = part.term, part.round, part.index, part.index_term
    offset, membership_index = part.offset, part.membership_index
    bound(term | probe | index | index_term | offset | membership_index)
    measure(tail, part.data_size)
    head = (term, probe, index, index_term, offset, flag(part.last), tail)
    return m.SnapshotChunk(*head, membership_index, part.membership)


def chunk_ack(peer: pb.Peer, tail: bytes) -> m.ChunkAck:
    part = peer.chunk_ack
    measure(tail, 0)
    bound(part.term | part.index | part.offset)
    return m.ChunkAck(part.term, part.index, part.offset)


def ack(peer: pb.Peer, tail: bytes) -> m.Ack:
    part = peer.ack
    term, next_index, probe, promise_ms = part.term, part.next_index, part.round, part.promise_ms
    measure(tail, 0)
    bound(term | next_index | probe | promise_ms)
    told = (flag(part.success), flag(part.reset), probe, promise_ms)
    return m.Ack(term, next_index, *told, name(part.stage), name(part.incarnation))


def timeout_now(peer: pb.Peer, tail: bytes) -> m.TimeoutNow:
    term = peer.timeout_now.term
    measure(tail, 0)
    bound(term)
    return m.TimeoutNow(term)


def hello(peer: pb.Peer, tail: bytes) -> m.Hello:
    part = peer.hello
    measure(tail, 0)
    count(part.formed)
    formed = tuple(m.Formed(name(each.node), name(each.incarnation)) for each in part.formed)
    who = (name(part.cluster_id), name(part.stage), name(part.incarnation))
    return m.Hello(*who, flag(part.answer), formed)


def state_digest(peer: pb.Peer, tail: bytes) -> m.StateDigest:
    part = peer.state_digest
    measure(tail, 0)
    bound(part.index)
    if not 0 < len(part.digest) <= TEXT_MAX:
        bad(f"a digest of {len(part.digest)} bytes")
    return m.StateDigest(part.index, part.digest)


def recall(peer: pb.Peer, tail: bytes) -> m.Recall:
    measure(tail, 0)
    return m.Recall(name(peer.recall.incarnation))


def recalled(peer: pb.Peer, tail: bytes) -> m.Recalled:
    part = peer.recalled
    measure(tail, 0)
    bound(part.term | part.index | part.vote_term)
    return m.Recalled(text(part.incarnation), part.term, part.index, part.vote_term)


def witness(peer: pb.Peer, tail: bytes) -> m.Witness:
    part = peer.witness
    measure(tail, 0)
    bound(part.term | part.index)
    return m.Witness(name(part.node), text(part.incarnation), part.term, part.index)


def removed(peer: pb.Peer, tail: bytes) -> m.Removed:
    measure(tail, 0)
    bound(peer.removed.index)
    return m.Removed(peer.removed.index)
