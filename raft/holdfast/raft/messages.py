"""What the nodes say to each other: frozen dataclasses.

Only `wire` knows how they travel; what they mean, the concerns that send and handle them know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

ITEMS_MAX: Final = 1 << 16
"""Entries of an `Append`, and nodes of a `Hello`: a sender keeps to it, a receiver checks it."""


class LogEntry(NamedTuple):
    """An entry on the wire; its index follows from its place in the message."""

    term: int
    command: bytes


class Formed(NamedTuple):
    """A node and the incarnation of its disk, as the sender of a `Hello` knows it (S19)."""

    node: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class PreVote:
    """Asks whether the receiver would vote for the sender in `term`. Changes nothing on either."""

    round: int
    term: int
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVoteGranted:
    """The sender would vote as the pre-vote `round` for `term` asked."""

    round: int
    term: int


@dataclass(frozen=True, slots=True)
class TermNotice:
    """A pre-vote was refused because its term is not above `term` (S10 e)."""

    term: int


@dataclass(frozen=True, slots=True)
class RequestVote:
    """Asks for a real vote."""

    term: int
    last_index: int
    last_term: int
    transfer: int
    """The term whose leader handed over to the candidate; 0: none."""


@dataclass(frozen=True, slots=True)
class VoteGranted:
    """The sender voted for the receiver in `term`."""

    term: int


@dataclass(frozen=True, slots=True)
class Append:
    """Entries after (`prev_index`, `prev_term`), or a heartbeat when there are none."""

    term: int
    round: int
    """The number of the quorum probe (S10 c)."""
    commit_index: int
    prev_index: int
    prev_term: int
    admit: str
    """The receiver's incarnation, if its rebuild has ended (S19); else ""."""
    entries: tuple[LogEntry, ...]


@dataclass(frozen=True, slots=True)
class EntryChunk:
    """A piece of the one entry after (`prev_index`, `prev_term`) that is too long for `Append`."""

    term: int
    round: int
    commit_index: int
    prev_index: int
    prev_term: int
    entry_term: int
    total: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A piece of the snapshot whose last entry is (`index`, `index_term`)."""

    term: int
    round: int
    index: int
    index_term: int
    offset: int
    last: bool
    data: bytes
    membership_index: int = 0
    """The newest entry of membership at or before `index`; 0: there is none. First piece only."""
    membership: str = ""
    """The text of that entry (S25 a)."""


@dataclass(frozen=True, slots=True)
class ChunkAck:
    """The receiver has the first `offset` bytes of the entry or snapshot with this `index`."""

    term: int
    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Answer to `Append`."""

    term: int
    next_index: int
    success: bool
    """Everything below `next_index` is durable on the sender and matches the leader's log."""
    reset: bool
    """Without `success`: the leader continues at `next_index`."""
    round: int
    """Echoes the quorum probe; 0: none of this term."""
    promise_ms: int
    """The election minimum, in ms: the sender keeps it from when it heard the probe (S10 c)."""
    stage: str
    """How far the sender's disk is from being a voter (S19)."""
    incarnation: str
    """The sender's disk (S19)."""


@dataclass(frozen=True, slots=True)
class TimeoutNow:
    """The leader of `term` hands over to the receiver (S10 d)."""

    term: int


@dataclass(frozen=True, slots=True)
class Hello:
    """Says whose disk the sender's is, and which disks founded its cluster.

    First of all on each connection (S25 f); again and again until a cluster has formed (S19).
    """

    cluster_id: str
    stage: str
    incarnation: str
    answer: bool
    """Whether this answers a `Hello`; an answer is never answered."""
    formed: tuple[Formed, ...]


@dataclass(frozen=True, slots=True)
class StateDigest:
    """The digest of the sender's state with all entries up to `index` applied (S3)."""

    index: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    """Asks what the receiver remembers of the sender's disk, which is `incarnation` (S21)."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the sender remembers of the receiver's disk (S21); zeros and "" if nothing."""

    incarnation: str
    term: int
    """The term, led by the receiver or another node, in which the disk held `index`."""
    index: int
    """The disk held everything up to this entry."""
    vote_term: int
    """The term of the receiver's last vote for the sender."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A leader tells that `node` held everything up to `index` in `term` (S21)."""

    node: str
    incarnation: str
    """The node's disk; "" if it is not known."""
    term: int
    index: int


@dataclass(frozen=True, slots=True)
class Removed:
    """The receiver is no node of the cluster any more (S25 e)."""

    index: int
    """An entry of membership that is committed and says so."""


Message = (
    PreVote
    | PreVoteGranted
    | TermNotice
    | RequestVote
    | VoteGranted
    | Append
    | EntryChunk
    | SnapshotChunk
    | ChunkAck
    | Ack
    | TimeoutNow
    | Hello
    | StateDigest
    | Recall
    | Recalled
    | Witness
    | Removed
)
