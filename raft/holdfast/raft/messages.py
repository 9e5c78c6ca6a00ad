"""What the nodes say to each other: frozen dataclasses and a strict binary codec. No pickle.

A frame is one type byte and the fields in order: integers as 8 bytes big-endian, texts and bytes
with their length in front, tuples with their count. `decode` accepts exactly what `encode` writes
and raises `BadMessage` for all else; no length is believed before it is checked against a bound
and against the bytes that are there. Knows neither the engine nor the network.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import NamedTuple, NoReturn

TEXT_MAX = 256
COMMAND_BYTES_MAX = (64 << 20) + 9
ITEMS_MAX = 1 << 16

_U64 = struct.Struct(">Q")
_U32 = struct.Struct(">I")


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

_TYPES: tuple[type[Message], ...] = (
    PreVote,
    PreVoteGranted,
    TermNotice,
    RequestVote,
    VoteGranted,
    Append,
    EntryChunk,
    SnapshotChunk,
    ChunkAck,
    Ack,
    TimeoutNow,
    Hello,
    StateDigest,
    Recall,
    Recalled,
    Witness,
)


def encode(message: Message) -> bytes:
    """Return the frame of a message."""
    kind, writers = _WRITERS[type(message)]
    out = [kind]
    for name, write in writers:
        write(out, getattr(message, name))
    return b"".join(out)


def decode(frame: bytes) -> Message:
    """Return the message of a frame; raises BadMessage unless it is exactly one valid message."""
    reader = _Reader(frame)
    kind = reader.byte()
    if kind >= len(_READERS):
        _bad(f"unknown message type {kind}")
    cls, readers = _READERS[kind]
    message = cls(*[read(reader) for read in readers])
    reader.end()
    return message


class _Reader:
    """A cursor over a frame that refuses to leave it."""

    __slots__ = ("_at", "_frame")

    def __init__(self, frame: bytes) -> None:
        self._frame, self._at = frame, 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._frame):
            _bad(f"{len(self._frame)} bytes are too few: byte {end} is needed")
        data = self._frame[self._at : end]
        self._at = end
        return data

    def byte(self) -> int:
        return self.take(1)[0]

    def u32(self, limit: int) -> int:
        value: int = _U32.unpack(self.take(4))[0]
        if value > limit:
            _bad(f"a length of {value} exceeds {limit}")
        return value

    def u64(self) -> int:
        value: int = _U64.unpack(self.take(8))[0]
        return value

    def flag(self) -> bool:
        value = self.byte()
        if value > 1:
            _bad(f"{value} is not a flag")
        return value == 1

    def text(self) -> str:
        data = self.take(self.u32(TEXT_MAX))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            msg = "a text is not UTF-8"
            raise BadMessage(msg) from error

    def blob(self) -> bytes:
        return self.take(self.u32(COMMAND_BYTES_MAX))

    def entries(self) -> tuple[LogEntry, ...]:
        return tuple(LogEntry(self.u64(), self.blob()) for _ in range(self.u32(ITEMS_MAX)))

    def formed(self) -> tuple[Formed, ...]:
        return tuple(Formed(self.text(), self.text()) for _ in range(self.u32(ITEMS_MAX)))

    def end(self) -> None:
        if self._at != len(self._frame):
            _bad(f"{len(self._frame) - self._at} bytes too many")


def _bad(why: str) -> NoReturn:
    msg = f"not a Raft message: {why}"
    raise BadMessage(msg)


def _write_u64(out: list[bytes], value: int) -> None:
    out.append(_U64.pack(value))


def _write_flag(out: list[bytes], value: bool) -> None:  # noqa: FBT001 - a value, not a switch
    out.append(b"\x01" if value else b"\x00")


def _write_blob(out: list[bytes], value: bytes) -> None:
    out.extend((_U32.pack(len(value)), value))


def _write_text(out: list[bytes], value: str) -> None:
    _write_blob(out, value.encode())


def _write_entries(out: list[bytes], value: tuple[LogEntry, ...]) -> None:
    out.append(_U32.pack(len(value)))
    for entry in value:
        out.extend((_U64.pack(entry.term), _U32.pack(len(entry.command)), entry.command))


def _write_formed(out: list[bytes], value: tuple[Formed, ...]) -> None:
    out.append(_U32.pack(len(value)))
    for item in value:
        _write_text(out, item.node)
        _write_text(out, item.incarnation)


_Write = Callable[[list[bytes], object], None]
_CODECS: dict[str, tuple[Callable[..., None], Callable[[_Reader], object]]] = {
    "int": (_write_u64, _Reader.u64),
    "bool": (_write_flag, _Reader.flag),
    "str": (_write_text, _Reader.text),
    "bytes": (_write_blob, _Reader.blob),
    "tuple[LogEntry, ...]": (_write_entries, _Reader.entries),
    "tuple[Formed, ...]": (_write_formed, _Reader.formed),
}
_WRITERS: dict[type[Message], tuple[bytes, tuple[tuple[str, _Write], ...]]] = {
    cls: (bytes([kind]), tuple((f.name, _CODECS[str(f.type)][0]) for f in fields(cls)))
    for kind, cls in enumerate(_TYPES)
}
_READERS: tuple[tuple[Callable[..., Message], tuple[Callable[[_Reader], object], ...]], ...] = (
    tuple((cls, tuple(_CODECS[str(f.type)][1] for f in fields(cls))) for cls in _TYPES)
)
