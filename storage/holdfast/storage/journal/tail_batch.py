"""One `JournalBatch` as the body of a batch in the journal's tail, and back. Bytes in, bytes out.

A body begins with a byte of flags, or two if the first says so (bit 7). They say which parts
follow, in this order (big-endian):

    reset_to        index u64 | term u64
    truncate_from   index u64
    append          count u32 | first index u64 | term u64 of each | length u32 of each | payloads
    cut_to          index u64 | term u64
    hard_state      term u64 | length of the vote u32, 2^32 - 1 for no vote | the vote in UTF-8
    commit_index    index u64
    identity        length u32 | JSON, as in the named record of the environment
    membership      index u64 | length u32 | the text in UTF-8

It is read strictly: unknown flags, a text that is not UTF-8, or bytes left over are damage. Knows
no file and no checksum.
"""

from __future__ import annotations

import json
import struct
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from holdfast.storage.disk.records import RecordDamaged, identity_body, identity_of
from holdfast.storage.journal.journal import Entry, HardState, JournalBatch, NotedMembership

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.storage.journal.journal import Identity

_RESET, _TRUNCATE, _APPEND, _CUT, _HARD, _COMMIT, _IDENTITY, _MORE = (1 << bit for bit in range(8))
_MEMBERSHIP = 1
"""In the second byte of flags, which follows the first if that has `_MORE`."""

_FLAGS = struct.Struct(">B")
_NUMBER = struct.Struct(">Q")
_LENGTH = struct.Struct(">I")
_PAIR = struct.Struct(">QQ")
_RUN = struct.Struct(">IQ")
_VOTE = struct.Struct(">QI")
_NOTED = struct.Struct(">QI")
_NO_VOTE = (1 << 32) - 1
_ENTRY_BYTES_MIN = 12
"""An entry's term and length: more entries than fit are damage, before they are counted out."""


def encode_batch(batch: JournalBatch) -> list[bytes]:
    """Encode a batch as pieces whose concatenation is the body; payloads are not copied."""
    flags, pieces = 0, [b""]
    if batch.reset_to is not None:
        flags |= _RESET
        pieces.append(_PAIR.pack(*batch.reset_to))
    if batch.truncate_from is not None:
        flags |= _TRUNCATE
        pieces.append(_NUMBER.pack(batch.truncate_from))
    if batch.append:
        flags |= _APPEND
        pieces += _run_of(batch.append)
    if batch.cut_to is not None:
        flags |= _CUT
        pieces.append(_PAIR.pack(*batch.cut_to))
    if batch.hard_state is not None:
        flags |= _HARD
        pieces += _vote_of(batch.hard_state)
    if batch.commit_index is not None:
        flags |= _COMMIT
        pieces.append(_NUMBER.pack(batch.commit_index))
    if batch.identity is not None:
        flags |= _IDENTITY
        pieces += _text_of(batch.identity)
    if batch.membership is not None:
        flags |= _MORE
        pieces += _membership_of(batch.membership)
    more = bytes([_MEMBERSHIP]) if flags & _MORE else b""
    pieces[0] = _FLAGS.pack(flags) + more
    return pieces


def decode_batch(body: bytes) -> JournalBatch:
    """Decode a body that `encode_batch` encoded. Raises `RecordDamaged`."""
    reader = _Reader(body)
    (flags,) = reader.take(_FLAGS)
    if flags & _MORE and (more := reader.take(_FLAGS)[0]) != _MEMBERSHIP:
        raise RecordDamaged(f"the batch has unknown flags: {more:#x}")
    batch = JournalBatch(
        reset_to=reader.pair() if flags & _RESET else None,
        truncate_from=reader.number() if flags & _TRUNCATE else None,
        append=reader.run() if flags & _APPEND else (),
        cut_to=reader.pair() if flags & _CUT else None,
        hard_state=reader.vote() if flags & _HARD else None,
        commit_index=reader.number() if flags & _COMMIT else None,
        identity=reader.identity() if flags & _IDENTITY else None,
        membership=reader.membership() if flags & _MORE else None,
    )
    reader.end()
    return batch


def _run_of(entries: Sequence[Entry]) -> list[bytes]:
    count = len(entries)
    terms = struct.pack(f">{count}Q", *[entry.term for entry in entries])
    lengths = struct.pack(f">{count}I", *[len(entry.payload) for entry in entries])
    head = _RUN.pack(count, entries[0].index)
    return [head, terms, lengths, *[entry.payload for entry in entries]]


def _vote_of(hard: HardState) -> list[bytes]:
    if hard.voted_for is None:
        return [_VOTE.pack(hard.term, _NO_VOTE)]
    name = hard.voted_for.encode()
    return [_VOTE.pack(hard.term, len(name)), name]


def _text_of(identity: Identity) -> list[bytes]:
    text = json.dumps(identity_body(identity), separators=(",", ":"), sort_keys=True).encode()
    return [_LENGTH.pack(len(text)), text]


def _membership_of(noted: NotedMembership) -> list[bytes]:
    text = noted.text.encode()
    return [_NOTED.pack(noted.index, len(text)), text]


class _Reader:
    """Takes a body apart from its beginning. Every method raises `RecordDamaged`."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def bytes_(self, size: int) -> bytes:
        """Take `size` bytes."""
        end = self._at + size
        if end > len(self._body):
            raise RecordDamaged("the batch ends within a value")
        taken, self._at = self._body[self._at : end], end
        return taken

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        """Take the numbers of a form."""
        return form.unpack(self.bytes_(form.size))

    def number(self) -> int:
        """Take an index."""
        return self.take(_NUMBER)[0]

    def pair(self) -> tuple[int, int]:
        """Take an (index, term)."""
        index, term = self.take(_PAIR)
        return index, term

    def run(self) -> tuple[Entry, ...]:
        """Take the appended entries."""
        count, first = self.take(_RUN)
        if not 0 < count <= (len(self._body) - self._at) // _ENTRY_BYTES_MIN:
            raise RecordDamaged(f"the batch cannot hold {count} entries")
        terms = self.take(struct.Struct(f">{count}Q"))
        lengths = self.take(struct.Struct(f">{count}I"))
        payloads = self.bytes_(sum(lengths))
        ends = pairwise(accumulate(lengths, initial=0))
        return tuple(
            Entry(first + place, term, payloads[start:end])
            for place, (term, (start, end)) in enumerate(zip(terms, ends, strict=True))
        )

    def vote(self) -> HardState:
        """Take a term and a vote."""
        term, size = self.take(_VOTE)
        return HardState(term, None if size == _NO_VOTE else self._text(size))

    def identity(self) -> Identity:
        """Take an identity."""
        (size,) = self.take(_LENGTH)
        text = self._text(size)
        try:
            body: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordDamaged(f"the identity in the batch is not JSON: {error}") from error
        return identity_of(body)

    def membership(self) -> NotedMembership:
        """Take a membership."""
        index, size = self.take(_NOTED)
        return NotedMembership(index, self._text(size))

    def end(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != len(self._body):
            raise RecordDamaged(f"{len(self._body) - self._at} bytes follow the batch")

    def _text(self, size: int) -> str:
        try:
            return self.bytes_(size).decode()
        except UnicodeDecodeError as error:
            raise RecordDamaged(f"a text in the batch is not UTF-8: {error}") from error
