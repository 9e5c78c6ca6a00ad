"""The follower's side: entries from a leader, verified before they count (E-1, E-2, E-7, S7, S18).

Replaces the stock handler. It cuts only what conflicts, never below the commit index; commits only
what the message has verified; a snapshot commits nothing but itself; a mismatch names where the
conflicting term begins, so that repair takes a round per term and not per entry.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.raft.api import EngineStopped, SnapshotFailed, SnapshotMark
from holdfast.raft.core.context import Switch
from holdfast.raft.core.membership.voters import NEVER
from holdfast.raft.core.snapshot_transfer import Cursor, StreamKey
from holdfast.raft.messages import Ack, Append, ChunkAck, EntryChunk, LogEntry, SnapshotChunk
from holdfast.storage.journal.journal import NotedMembership

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.raft.api import SnapshotSink, SnapshotSource
    from holdfast.raft.core.apply import Delivery
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.elections import Elections
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.core.membership.rebuild import Rebuild

logger = logging.getLogger(__name__)


class Appending:
    """Tick thread only."""

    def __init__(
        self, ctx: Context, identity: NodeIdentity, elections: Elections, rebuild: Rebuild
    ) -> None:
        """Start without a leader."""
        self._ctx, self._identity, self._elections, self._rebuild = (
            ctx,
            identity,
            elections,
            rebuild,
        )
        self._heard_round = (0, 0)
        self.current = (NEVER, 0)
        """When all that the leader had committed was committed here, and up to which index."""
        self.catch_up_index: int | None = None
        """The index that `current` had first: what was committed before this start is below it."""
        self._verified = 0
        self._cursor = Cursor()
        self._buffer = bytearray()

    def follow(self, peer: str, term: int, round_: int) -> bool:
        """Accept the sender as the leader of its term.

        An ack tells a stale leader the newer term.
        """
        state = self._ctx.state
        if term < state.term:
            self.reply(peer, 0)
            return False
        if term > state.term:
            state.forget_transfer()
            state.set_term(term, None)
        state.follow(peer)
        self._heard_round = (term, round_)
        self._elections.heard_leader()
        return True

    def reply(
        self, peer: str, next_index: int, *, success: bool = False, reset: bool = False
    ) -> None:
        """Answer the leader; the ack is held until the state that it shows is durable."""
        term, round_ = self._heard_round
        echoed = round_ if term == self._ctx.state.term else 0
        identity = self._identity
        head = (self._ctx.state.term, next_index, success, reset, echoed)
        self._ctx.ready.send.append(
            (peer, Ack(*head, identity.promise_ms, identity.stage, identity.incarnation))
        )

    # -- entries ---------------------------------------------------------------------

    def on_append(self, peer: str, append: Append) -> None:
        """Take entries or a heartbeat."""
        if self.follow(peer, append.term, append.round):
            self._take(peer, append.prev_index, append.prev_term, append.entries)
            self._commit(append)
            self._rebuild.on_append(peer, append)

    def _take(self, peer: str, previous: int, term: int, entries: tuple[LogEntry, ...]) -> None:
        self._verified = 0
        log = self._ctx.log
        if previous > log.last_index:
            self.reply(peer, log.last_index + 1, reset=True)
            return
        held = log.term_at(previous)
        if held is not None and held != term:
            self.reply(peer, self._conflict_begins(previous, held), reset=True)
            return
        self._store(previous + 1, entries)
        self._verified = previous + len(entries)
        self.reply(peer, self._verified + 1, success=True)

    def _conflict_begins(self, index: int, term: int) -> int:
        """Return where the conflicting term begins, but nothing below the commit index (E-7)."""
        log, floor = self._ctx.log, self._ctx.state.commit_index + 1
        while index > floor and log.term_at(index - 1) == term:
            index -= 1
        return max(index, floor)

    def _store(self, index: int, entries: tuple[LogEntry, ...]) -> None:
        """Skip entries that are held, cut where the terms differ, append the rest (E-1)."""
        log = self._ctx.log
        if not self._ctx.on(Switch.CUT_ON_CONFLICT) and index <= log.last_index:
            log.truncate_unchecked(index)
        for offset, entry in enumerate(entries):
            at = index + offset
            if at <= log.anchor_index:
                continue
            held = log.term_at(at)
            if held == entry.term:
                continue
            if held is not None:
                log.truncate_from(at)
            log.append(entry.command, entry.term)

    def _commit(self, append: Append) -> None:
        """Commit what the leader has committed and this message has verified, no more (E-2)."""
        index = min(append.commit_index, self._verified)
        if index > self._ctx.state.commit_index:
            self._ctx.state.commit_index = index
            self._ctx.log.set_commit(index)
        if append.commit_index <= self._ctx.state.commit_index:
            self._note_current(append.term)

    def _note_current(self, term: int) -> None:
        """Note that the leader knows of no more; before an entry of its term, it may know less.

        Its predecessor may have committed, and this node may have told, what it only holds (S4).
        """
        index = self._ctx.state.commit_index
        if self._ctx.log.term_at(index) != term:
            return
        self.current = (self._elections.heard_at, index)
        if self.catch_up_index is None:
            self.catch_up_index = index

    # -- long entries (S7) ---------------------------------------------------------------

    def on_entry_chunk(self, peer: str, chunk: EntryChunk) -> None:
        """Collect a long entry; when it is whole, handle it like any other append."""
        if not self.follow(peer, chunk.term, chunk.round):
            return
        self._check_size(peer, chunk.total)
        index = chunk.prev_index + 1
        key = StreamKey(peer, chunk.term, index, chunk.entry_term, is_snapshot=False)
        if self._cursor.accepts(key, chunk.offset):
            if chunk.offset == 0:
                self._buffer = bytearray()
            self._buffer += chunk.data
            self._cursor.offset += len(chunk.data)
        if self._cursor.key == key and self._cursor.offset >= chunk.total:
            entry = LogEntry(chunk.entry_term, bytes(self._buffer))
            self._cursor.drop()
            self._buffer = bytearray()
            head = (chunk.term, chunk.round, chunk.commit_index)
            self.on_append(peer, Append(*head, chunk.prev_index, chunk.prev_term, "", (entry,)))
        else:
            ack = ChunkAck(chunk.term, index, self._cursor.expected(key))
            self._ctx.ready.send.append((peer, ack))

    def _check_size(self, peer: str, total: int) -> None:
        """Stop the node on an entry over the limit, which is the same on all nodes (S7)."""
        limit = self._ctx.settings.entry_bytes_max
        if total > limit:
            raise EngineStopped(
                f"{peer} sends an entry of {total} bytes, entry_bytes_max is {limit} here: give "
                "all nodes the same limit and start this one again"
            )


class Installing:
    """Receives snapshots (S18). Until one is durable, log and state stay as they are."""

    def __init__(
        self,
        ctx: Context,
        appending: Appending,
        delivery: Delivery,
        snapshots: SnapshotSource,
        wake: Callable[[], None],
    ) -> None:
        """Start without a snapshot. `wake` brings about the next tick, from any thread."""
        self._ctx, self._appending, self._delivery = ctx, appending, delivery
        self._snapshots, self._wake = snapshots, wake
        self._told = 0
        self._cursor = Cursor()
        self._sink: SnapshotSink | None = None
        self._sealed = False
        self._installed_index = 0

    def on_chunk(self, peer: str, chunk: SnapshotChunk) -> None:
        """Queue the next bytes of a snapshot, and say how many were written (S20)."""
        if not self._appending.follow(peer, chunk.term, chunk.round):
            return
        if chunk.index <= self._ctx.state.handed_index:
            self._drop()
            self._appending.reply(peer, chunk.index + 1, success=True)
            return
        key = StreamKey(peer, chunk.term, chunk.index, chunk.index_term, is_snapshot=True)
        if key != self._cursor.key and chunk.offset == 0:
            self._begin(SnapshotMark(chunk.index, chunk.index_term))
            if chunk.membership:
                noted = NotedMembership(chunk.membership_index, chunk.membership)
                self._ctx.log.note_membership(noted)
        if self._cursor.accepts(key, chunk.offset) and not self._sealed:
            self._write(chunk)
        self._acknowledge(key)

    def _acknowledge(self, key: StreamKey) -> None:
        """Tell the sender how many bytes the disk has taken, which opens its window (S20).

        0 makes it begin again.
        """
        taken = self._taken()
        self._told = taken if key == self._cursor.key else 0
        self._ctx.ready.send.append((key.peer, ChunkAck(key.term, key.index, self._told)))

    def _taken(self) -> int:
        try:
            return self._sink.taken() if self._sink else 0
        except SnapshotFailed as error:
            self._forget(error)
            return 0

    def _write(self, chunk: SnapshotChunk) -> None:
        if self._sink is None:
            return
        if chunk.data:
            if not self._sink.write(chunk.data):
                return
            self._cursor.offset += len(chunk.data)
        if chunk.last:
            self._sink.seal()
            self._sealed = True

    def _begin(self, mark: SnapshotMark) -> None:
        if self._sink is not None:
            self._sink.abort()
        self._sink, self._sealed = self._snapshots.begin(mark, self._wake), False

    def _drop(self) -> None:
        if self._sink is not None:
            self._sink.abort()
        self._sink, self._sealed = None, False
        self._cursor.drop()

    @property
    def is_waiting(self) -> bool:
        """Whether a complete snapshot is being made durable."""
        return self._sealed

    def tick(self) -> None:
        """Go on behind a snapshot as soon as it is durable; the matching suffix is kept (E-1)."""
        sink, key = self._sink, self._cursor.key
        if key is not None and self._taken() > self._told:
            self._acknowledge(key)
        if not self._sealed or sink is None or key is None or not self._is_ready(sink):
            return
        if key.index <= self._ctx.state.handed_index:
            self._drop()
            return
        if self._delivery.evolved_index < self._installed_index:
            return  # the consumer must find on disk what its next item says
        sink.install()
        self._installed_index = key.index
        self._sink, self._sealed = None, False
        self._cursor.drop()
        self._continue_behind(key)

    def _is_ready(self, sink: SnapshotSink) -> bool:
        """Return whether the snapshot is durable; drop it and return False if it is unusable."""
        try:
            return sink.ready()
        except SnapshotFailed as error:
            self._forget(error)
            return False

    def _forget(self, error: SnapshotFailed) -> None:
        """Drop an unusable snapshot and tell its sender, which begins anew with a fresh copy."""
        logger.warning("the snapshot that arrived cannot be used: %s", error)
        key = self._cursor.key
        self._drop()
        if key is not None:
            self._acknowledge(key)

    def _continue_behind(self, key: StreamKey) -> None:
        state = self._ctx.state
        self._ctx.log.rebase(key.index, key.of_term)
        state.commit_index = max(state.commit_index, key.index)
        self._delivery.installed(key.index, key.of_term)
        if state.leader == key.peer and state.term == key.term:
            self._appending.reply(key.peer, key.index + 1, success=True)
