"""Snapshots: the state made durable behind the journal, and sent to nodes too far behind (S18).

The cost of a snapshot is proportional to what changed since the last: states are immutable values,
so a worker thread can compare and encode them, in slices, while the loop goes on. The engine's
thread never waits: threads of their own read streams and write installs. Knows what is stored
through `image`; no group rules, no network.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import Final

from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.raft.api import SnapshotFailed, SnapshotMark
from holdfast.runtime.event_log.rests import Rests
from holdfast.runtime.event_log.tail import Tail
from holdfast.runtime.replica.image import Image, image_changes, read_image
from holdfast.runtime.replica.state_machine import ALL, AppliedEntry, StateMachine
from holdfast.storage.codec.event_codec import CHAIN_START, NewerSchema
from holdfast.storage.disk.files import remove_tree
from holdfast.storage.disk.priority import idle_disk_for_good
from holdfast.storage.errors import (
    DirectoryRefused,
    Refusal,
    StateContradicted,
    StateFailed,
    StorageError,
    WriteOvertaken,
    WriteRefused,
)
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_install import StateInstall
from holdfast.storage.state.state_store import EventRecord, StateStore, read_chunks

logger = logging.getLogger(__name__)

DIRTY_BYTES: Final = 4 << 20
"""A snapshot is taken when entries of about this many bytes were applied since the last (S18)."""

CHUNK_BYTES: Final = 256 * 1024
CHUNKS_AHEAD: Final = 8
"""How many chunks wait between a disk and the network, in each direction (S20)."""

_NEWER: Final = (
    f"its state is of a newer level than {LEVEL_MAX}, the newest at which this version of Holdfast "
    "can run. Start the node with the version that wrote it, or a later one"
)


class StateSnapshots:
    """The replica's `Snapshots` and the engine's `SnapshotSource` over one state store.

    The loop calls `note`, `maybe_take`, `reload` and `close`; the tick thread calls `latest`,
    `open` and `begin`.
    """

    def __init__(
        self,
        store: StateStore,
        copy_path: Path,
        writer: Executor | None = None,
        *,
        rest: float = 0.0,
        ahead_bytes: int = 0,
    ) -> None:
        """`copy_path`: copies for streams lie beside it. `writer`: writes snapshots one by one.

        `rest`: between slices of the writer's work, in slices. `ahead_bytes`: by how much the first
        snapshot is earlier, so that nodes do not take theirs at the same entry.
        """
        self._store, self._copy_path = store, copy_path
        self._copies = itertools.count(1)
        self._writer = writer or ThreadPoolExecutor(
            1, thread_name_prefix="snapshot", initializer=idle_disk_for_good
        )
        self.tail = Tail()
        self._dirty = ahead_bytes
        self._rest = rest
        self._rests = Rests(rest)
        self._under_way: Future[None] | None = None
        self._contradiction: StateContradicted | None = None
        self._stored = Image()
        meta = store.meta()
        self._mark = SnapshotMark(meta.index, meta.term) if meta else SnapshotMark(0, 0)
        self._marking = Lock()
        self._incoming: Incoming | None = None
        self.on_durable: Callable[[int], None] = lambda _index: None
        self.on_installed: Callable[[], None] = lambda: None

    def load(self) -> StateMachine:
        """Load the stored state, from which a start replays the journal's tail.

        Raises `StateDamaged`, `DirectoryRefused` for a state that a newer version wrote, or
        `CodecError` for a record that no version writes.
        """
        try:
            self._stored, histories = read_image(self._store.load())
        except NewerSchema as error:
            raise DirectoryRefused(self._store.path, Refusal.NEWER_SCHEMA, _NEWER) from error
        meta = self._store.meta()
        self.tail.begin_at(meta.index if meta else 0)
        return StateMachine(self._stored.state, self._stored.heads, histories)

    # --- the loop ---

    def note(self, outcome: AppliedEntry, size: int) -> None:
        """Keep what one entry of `size` bytes added to the event log."""
        self.tail.add(
            [EventRecord(*record.position, content) for record, content in outcome.records]
        )
        self._dirty += size
        if self._dirty >= DIRTY_BYTES:
            self._rests.hurry()  # the next one is due; else they fell behind a long load for good

    def maybe_take(self, machine: StateMachine, term: int) -> None:
        """Begin a snapshot of this moment if enough has changed and none is under way.

        Raises `StateContradicted` once an earlier one was refused because of that.
        """
        if self._contradiction is not None:
            raise self._contradiction
        if self._dirty >= DIRTY_BYTES and (self._under_way is None or self._under_way.done()):
            self.take(machine, term)

    def take(self, machine: StateMachine, term: int) -> Future[None]:
        """Begin a snapshot of this moment; snapshots are written one after another."""
        self._dirty = 0
        self._rests = Rests(self._rest)
        image = Image(machine.state, machine.heads, machine.histories)
        self._under_way = self._writer.submit(self._write_or_tell, image, term, self._rests)
        return self._under_way

    async def take_now(self, machine: StateMachine, term: int) -> None:
        """Take a snapshot of this moment and wait until it is durable."""
        await asyncio.wrap_future(self.take(machine, term))

    async def reload(self) -> StateMachine:
        """Read the state of a snapshot that was just installed."""
        self._dirty = 0
        machine = await asyncio.get_running_loop().run_in_executor(self._writer, self.load)
        self.on_installed()
        return machine

    async def close(self, machine: StateMachine, term: int) -> None:
        """Wait for snapshots under way and take a last one, so that the next start is short."""
        self._rest = 0.0
        self._rests.hurry()
        if machine.state.applied_index > self._mark.index:
            await self.take_now(machine, term)
        self._writer.shutdown()

    # --- the writer's thread ---

    def _write_or_tell(self, image: Image, term: int, rests: Rests) -> None:
        """Write a snapshot. A failure is logged here: mostly nobody looks at the future.

        Without snapshots the journal is never cut, so whatever stops them must be seen (S18, S20).
        """
        try:
            self._write(image, term, rests)
        except StateFailed as error:
            index = image.state.applied_index
            logger.error("snapshot %s failed: %s The next one holds it", index, error)  # noqa: TRY400 - the sentence says it all
            raise
        except Exception:
            index = image.state.applied_index
            logger.critical("alarm: snapshot %s could not be taken", index, exc_info=True)
            raise

    def _write(self, image: Image, term: int, rests: Rests) -> None:
        """Write changes, new event records and the meta record in one transaction.

        Records leave the tail only when they are durable: a reader of the history finds them at
        any moment, and a snapshot that failed leaves them to the next one. A state that is durable
        already (after a start or an install) keeps the term that it was stored with.
        """
        state, whole = image.state, image.heads.get(ALL, CHAIN_START)
        if state.applied_index <= self._mark.index:
            return
        events = self.tail.through(state.applied_index)
        meta = StateMeta(state.applied_index, term, state.log_time_ms, whole)
        changed = image_changes(self._stored, image)
        try:
            self._store.write_snapshot(rests.over(changed), rests.over(events), meta)
        except WriteOvertaken:
            logger.info("snapshot %s was overtaken by an install", meta.index)
            return
        except StateContradicted as error:
            self._contradiction = error
            raise
        except WriteRefused:
            if self._mark.index <= meta.index:
                raise
            logger.info("snapshot %s is older than what was installed", meta.index)
            return
        self.tail.durable(meta.index)
        self._stored = image
        self._advance(SnapshotMark(meta.index, meta.term))
        self.on_durable(meta.index)

    # --- the tick thread: engine's SnapshotSource ---

    def latest(self) -> SnapshotMark:
        """Return the mark of the newest durable snapshot; (0, 0): none."""
        return self._mark

    def open(self, index: int) -> Iterator[bytes]:
        """Return the chunks of the snapshot at `index`; an empty one means: ask again later.

        If a newer snapshot has taken its place by the time it is copied, the stream ends without
        an end mark, and the engine opens the newer one: state and journal must meet exactly.
        """
        path = self._copy_path.with_name(f"{self._copy_path.name}-{next(self._copies)}")
        return _ReadAhead(self._store, path, index)

    def begin(self, mark: SnapshotMark, progressed: Callable[[], None]) -> Incoming:
        """Begin to receive a snapshot."""
        before = self._incoming
        if before is not None:
            before.abort()
        self._incoming = Incoming(self._store, mark, self._advance, progressed, before)
        return self._incoming

    def _advance(self, mark: SnapshotMark) -> None:
        """Move the mark forward, never back behind an install. Writer's or tick thread."""
        with self._marking:
            if mark.index > self._mark.index:
                self._mark = mark


class _ReadAhead(Iterator[bytes]):
    """Reads a copy of the state in a thread of its own, a few chunks ahead.

    The thread knows the pipe only, not this object: dropping it ends the thread and its copy.
    """

    def __init__(self, store: StateStore, path: Path, index: int) -> None:
        self._pipe = pipe = _Pipe()
        arguments = (store, path, index, pipe)
        Thread(target=_read_copy, args=arguments, name="stream-out", daemon=True).start()

    def __next__(self) -> bytes:
        try:
            chunk = self._pipe.chunks.get_nowait()
        except Empty:
            return b""
        if chunk is None and self._pipe.failure:
            raise SnapshotFailed(self._pipe.failure)
        if chunk is None:
            raise StopIteration
        return chunk

    def __del__(self) -> None:
        self._pipe.dropped.set()


class _Pipe:
    """A bounded queue from the thread that reads a copy to the tick thread that sends it."""

    def __init__(self) -> None:
        self.chunks: Queue[bytes | None] = Queue(CHUNKS_AHEAD)
        self.dropped = Event()
        self.failure = ""

    def put(self, chunk: bytes | None) -> bool:
        """Wait for room and queue a chunk; False if the reader was dropped."""
        while not self.dropped.is_set():
            try:
                self.chunks.put(chunk, timeout=1.0)
            except Full:  # does anybody still want it?
                continue
            return True
        return False


def _read_copy(store: StateStore, path: Path, index: int, pipe: _Pipe) -> None:
    idle_disk_for_good()
    try:
        store.copy_to(path)
        if _covered(path) != index:
            pipe.failure = f"the state has moved on from index {index}"
            return
        for chunk in read_chunks(path, CHUNK_BYTES):
            if not pipe.put(chunk):
                return
    except (StorageError, OSError) as error:
        pipe.failure = str(error)
        logger.exception("a snapshot could not be streamed; another will be begun")
    finally:
        pipe.put(None)
        remove_tree(path)


def _covered(copy: Path) -> int:
    store = StateStore(copy)
    try:
        meta = store.meta()
        return meta.index if meta else 0
    finally:
        store.close()


class Incoming:
    """A snapshot being received (the engine's `SnapshotSink`); a thread of its own writes it."""

    def __init__(
        self,
        store: StateStore,
        mark: SnapshotMark,
        installed: Callable[[SnapshotMark], None],
        progressed: Callable[[], None],
        before: Incoming | None = None,
    ) -> None:
        """Begin once `before`, which was aborted or installed, has ended its thread."""
        self._store, self._mark, self._installed = store, mark, installed
        self._progressed = progressed
        self._taken = 0
        self._chunks: Queue[bytes | None] = Queue()
        self._aborted = Event()
        self._prepared: StateInstall | None = None
        self._failure = ""
        self._thread: Thread = Thread(
            target=self._receive,
            args=(before._thread if before else None,),  # noqa: SLF001 - one of its own
            name="stream-in",
            daemon=True,
        )
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait at most `seconds` until the thread has ended."""
        self._thread.join(seconds)

    def write(self, chunk: bytes) -> bool:
        """Queue the next bytes, in order; False if the disk is too far behind (S20)."""
        if self._chunks.qsize() >= CHUNKS_AHEAD:
            return False
        self._chunks.put(chunk)
        return True

    def taken(self) -> int:
        """Return how many bytes are written. Raises SnapshotFailed."""
        if self._failure:
            raise SnapshotFailed(self._failure)
        return self._taken

    def seal(self) -> None:
        """Begin to make the bytes durable beside the present state: all were queued."""
        self._chunks.put(None)

    def ready(self) -> bool:
        """Return whether it is durable beside the present state. Raises SnapshotFailed."""
        if self._failure:
            raise SnapshotFailed(self._failure)
        return self._prepared is not None

    def install(self) -> None:
        """Make it the snapshot that a start loads, by a rename. Raises StorageError."""
        if self._prepared is None:
            raise SnapshotFailed("it is not ready")
        self._prepared.install()
        self._installed(self._mark)

    def abort(self) -> None:
        """Drop the snapshot, sealed or not; it will not be installed."""
        self._aborted.set()
        self._chunks.put(None)

    def _receive(self, before: Thread | None) -> None:
        if before is not None:
            before.join()  # both grow up in the same folder
        try:
            self._take_in()
        finally:
            self._progressed()

    def _take_in(self) -> None:
        """Write the chunks; keep any failure, or the leader would wait for acks for ever."""
        try:
            install = StateInstall(self._store)
        except Exception as error:
            self._failure = str(error) or repr(error)
            logger.exception("a snapshot cannot be received; the leader will send another")
            return
        try:
            while (chunk := self._chunks.get()) is not None and not self._aborted.is_set():
                install.add(chunk)
                self._taken += len(chunk)
                self._progressed()
            if self._aborted.is_set():
                install.abort()
                return
            meta = install.seal()
        except Exception as error:
            self._failure = str(error) or repr(error)
            logger.exception("a snapshot cannot be used; the leader will send another")
            install.abort()
            return
        if (meta.index, meta.term) == (self._mark.index, self._mark.term):
            self._prepared = install
        else:
            self._failure = f"it covers {meta.index}, not {self._mark.index}"
            logger.error("a snapshot covers %s, not %s as announced", meta.index, self._mark.index)
            install.abort()
