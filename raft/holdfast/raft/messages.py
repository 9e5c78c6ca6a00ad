"""What the nodes say to each other: frozen dataclasses.

How they travel is known in `wire` alone; what they mean, to those who send and take them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class BadMessage(ValueError):
    """Bytes that no node of this version sends: the connection that brought them is closed."""


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
    """Would you vote for me in `term`? Changes nothing at either end."""

    round: int
    term: int
    last_index: int
    last_term: int


@dataclass(frozen=True, slots=True)
class PreVoteGranted:
    """Yes to the pre-vote `round` for `term`."""

    round: int
    term: int


@dataclass(frozen=True, slots=True)
class TermNotice:
    """A pre-vote was refused because its term is not above `term` (S10 e)."""

    term: int


@dataclass(frozen=True, slots=True)
class RequestVote:
    """A real vote. `transfer`: the term whose leader handed over to the candidate, 0 = none."""

    term: int
    last_index: int
    last_term: int
    transfer: int


@dataclass(frozen=True, slots=True)
class VoteGranted:
    """The sender voted for the receiver in `term`."""

    term: int


@dataclass(frozen=True, slots=True)
class Append:
    """Entries after (`prev_index`, `prev_term`), or a heartbeat when there are none.

    `round` numbers the quorum probe (S10 c); `admit` names the incarnation of the receiver whose
    rebuild has ended (S19), "" if none.
    """

    term: int
    round: int
    commit_index: int
    prev_index: int
    prev_term: int
    admit: str
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


@dataclass(frozen=True, slots=True)
class ChunkAck:
    """The receiver has the first `offset` bytes of the entry or snapshot with this `index`."""

    term: int
    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Answer to `Append`. Success: everything below `next_index` is durable here and matches.

    Without success and with `reset`, the leader goes on at `next_index`. `round` echoes the probe
    (0: none of this term), `promise_ms` is the election minimum that the sender promises from
    when it heard it (S10 c); `stage` and `incarnation` say which disk speaks (S19).
    """

    term: int
    next_index: int
    success: bool
    reset: bool
    round: int
    promise_ms: int
    stage: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class TimeoutNow:
    """The leader of `term` hands over to the receiver (S10 d)."""

    term: int


@dataclass(frozen=True, slots=True)
class Hello:
    """First start only (S19): who I am, and which disks I know. An answer is never answered."""

    cluster_id: str
    stage: str
    incarnation: str
    answer: bool
    formed: tuple[Formed, ...]


@dataclass(frozen=True, slots=True)
class StateDigest:
    """The sender's state, evolved up to `index`, has this digest (S3)."""

    index: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Recall:
    """The sender asks what is remembered of its disk, which is `incarnation` (S21)."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the sender remembers of the receiver's disk (S21); zeros and "" if nothing.

    In the leadership of `term`, another node's or its own, it held everything up to `index`; its
    last vote for the sender was in `vote_term`.
    """

    incarnation: str
    term: int
    index: int
    vote_term: int


@dataclass(frozen=True, slots=True)
class Witness:
    """A leader tells what `node`, on this disk, held in `term`; "": not known which disk (S21)."""

    node: str
    incarnation: str
    term: int
    index: int


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
)
