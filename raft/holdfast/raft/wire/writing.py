"""One function for each message between nodes: it fills the message's part of a `Peer`.

It returns the tail: bytes that follow the head of a frame as they are, since protobuf would copy
them twice more. Plain assignments: a loop over names is twice as dear, and these functions run for
each message of a commit. Knows no frames; `reading` is the other direction, `codec` has the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.raft import messages as m
from holdfast.raft.wire import peer_pb2 as pb

Tail = Sequence[bytes]


def pre_vote(peer: pb.Peer, message: m.PreVote) -> Tail:
    part = peer.pre_vote
    part.round = message.round
    part.term = message.term
    part.last_index = message.last_index
    part.last_term = message.last_term
    return ()


def pre_vote_granted(peer: pb.Peer, message: m.PreVoteGranted) -> Tail:
    part = peer.pre_vote_granted
    part.round = message.round
    part.term = message.term
    return ()


def term_notice(peer: pb.Peer, message: m.TermNotice) -> Tail:
    peer.term_notice.term = message.term
    return ()


def request_vote(peer: pb.Peer, message: m.RequestVote) -> Tail:
    part = peer.request_vote
    part.term = message.term
    part.last_index = message.last_index
    part.last_term = message.last_term
    part.transfer = message.transfer
    return ()


def vote_granted(peer: pb.Peer, message: m.VoteGranted) -> Tail:
    peer.vote_granted.term = message.term
    return ()


def append(peer: pb.Peer, message: m.Append) -> Tail:
    part = peer.append
    part.term = message.term
    part.round = message.round
    part.commit_index = message.commit_index
    part.prev_index = message.prev_index
    part.prev_term = message.prev_term
    if message.admit:
        part.admit = message.admit
    return _entries(part, message.entries)


def _entries(part: pb.Append, entries: tuple[m.LogEntry, ...]) -> Tail:
    """Fill in the terms and sizes of entries; a list of one would not be read."""
    if not entries:  # a heartbeat
        return ()
    if len(entries) == 1:
        single, entry = part.single, entries[0]
        single.term = entry.term
        single.size = len(entry.command)
        return (entry.command,)
    commands = [entry.command for entry in entries]
    part.entry_terms.extend([entry.term for entry in entries])
    part.entry_sizes.extend([len(command) for command in commands])
    return commands


def entry_chunk(peer: pb.Peer, message: m.EntryChunk) -> Tail:
    part = peer.entry_chunk
    part.term = message.term
    part.round = message.round
    part.commit_index = message.commit_index
    part.prev_index = message.prev_index
    part.prev_term = message.prev_term
    part.entry_term = message.entry_term
    part.total = message.total
    part.offset = message.offset
    part.data_size = len(message.data)
    return (message.data,)


def snapshot_chunk(peer: pb.Peer, message: m.SnapshotChunk) -> Tail:
    part = peer.snapshot_chunk
    part.term = message.term
    part.round = message.round
    part.index = message.index
    part.index_term = message.index_term
    part.offset = message.offset
    part.last = 1 if message.last else 0
    part.data_size = len(message.data)
    part.membership_index = message.membership_index
    part.membership = message.membership
    return (message.data,)


def chunk_ack(peer: pb.Peer, message: m.ChunkAck) -> Tail:
    part = peer.chunk_ack
    part.term = message.term
    part.index = message.index
    part.offset = message.offset
    return ()


def ack(peer: pb.Peer, message: m.Ack) -> Tail:
    part = peer.ack
    part.term = message.term
    part.next_index = message.next_index
    part.success = 1 if message.success else 0
    part.reset = 1 if message.reset else 0
    part.round = message.round
    part.promise_ms = message.promise_ms
    part.stage = message.stage
    part.incarnation = message.incarnation
    return ()


def timeout_now(peer: pb.Peer, message: m.TimeoutNow) -> Tail:
    peer.timeout_now.term = message.term
    return ()


def hello(peer: pb.Peer, message: m.Hello) -> Tail:
    part = peer.hello
    part.cluster_id = message.cluster_id
    part.stage = message.stage
    part.incarnation = message.incarnation
    part.answer = 1 if message.answer else 0
    for formed in message.formed:
        part.formed.add(node=formed.node, incarnation=formed.incarnation)
    return ()


def state_digest(peer: pb.Peer, message: m.StateDigest) -> Tail:
    part = peer.state_digest
    part.index = message.index
    part.digest = message.digest
    return ()


def recall(peer: pb.Peer, message: m.Recall) -> Tail:
    peer.recall.incarnation = message.incarnation
    return ()


def recalled(peer: pb.Peer, message: m.Recalled) -> Tail:
    part = peer.recalled
    part.incarnation = message.incarnation
    part.term = message.term
    part.index = message.index
    part.vote_term = message.vote_term
    return ()


def witness(peer: pb.Peer, message: m.Witness) -> Tail:
    part = peer.witness
    part.node = message.node
    part.incarnation = message.incarnation
    part.term = message.term
    part.index = message.index
    return ()


def removed(peer: pb.Peer, message: m.Removed) -> Tail:
    peer.removed.index = message.index
    return ()
