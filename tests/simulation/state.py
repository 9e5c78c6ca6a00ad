"""The state's snapshots in the simulator: the real `StateSnapshots` over a modelled directory.

Taking a snapshot, marking it, cutting the journal behind it and the tail of young records are the
real code; its writer's thread is a planned moment on the schedule. Streams to a slow peer carry the
whole modelled directory through the real stream codec, and are installed whole.
"""

from __future__ import annotations

import struct
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.raft.api import SnapshotFailed, SnapshotMark
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.storage.errors import InstallRefused
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import EventRecord
from holdfast.storage.state.state_stream import StreamDecoder, StreamedRecord, encode_stream
from simulation.disk import WRITE_US, StateDisk, StoredState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.runtime.replica.state_machine import StateMachine
    from holdfast.storage.state.state_store import StateStore
    from simulation.process import Process

CHUNK_BYTES: Final = 16 * 1024
LOOK_AGAIN_US: Final = 10_000
"""A paused process gets to its work about so long after it goes on."""
_EVENTS, _META = 200, 201
_POSITION: Final = struct.Struct(">QQ")
_META_HEAD: Final = struct.Struct(">QQQ")


class Writer(Executor):
    """A thread of one process: what it is given happens later, one after another, or never."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._free_us = 0
        self.slowness_us = 0

    def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> Future[Any]:
        """Do it when the disk has done it."""
        future: Future[Any] = Future()
        process = self._process
        cost_us = process.random.randint(*WRITE_US) + self.slowness_us
        self._free_us = max(self._free_us, process.schedule.now_us) + cost_us
        process.schedule.at(self._free_us, self._work, future, fn, args, kwargs)
        return future

    def _work(
        self,
        future: Future[Any],
        fn: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        process = self._process
        if not process.alive:
            return
        if process.paused:
            process.schedule.after(LOOK_AGAIN_US, self._work, future, fn, args, kwargs)
            return
        if future.done():
            return
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            future.set_exception(error)


class SimSnapshots(StateSnapshots):
    """The replica's `Snapshots` and the engine's `SnapshotSource`."""

    def __init__(self, disk: StateDisk, process: Process) -> None:
        self.writer = Writer(process)
        super().__init__(cast("StateStore", disk), Path("unused"), self.writer)
        self._disk = disk
        self.on_reloaded: Callable[[StateMachine], None] = lambda _machine: None

    async def reload(self) -> StateMachine:
        """Read what was installed, and tell."""
        machine = await super().reload()
        self.on_reloaded(machine)
        return machine

    def open(self, index: int) -> Iterator[bytes]:
        """Stream the directory as it is now, if it still is at `index`."""
        stored = self._disk.stored
        if stored.meta is None or stored.meta.index != index:
            raise SnapshotFailed(f"the state has moved on from index {index}")
        yield b""
        for chunk in encode_stream(_records_of(stored), CHUNK_BYTES):
            yield chunk
            yield b""

    def begin(  # type: ignore[override]  # in memory
        self, mark: SnapshotMark, _progressed: Callable[[], None]
    ) -> Incoming:
        """Begin to receive a snapshot."""
        return Incoming(self, mark)

    def install(self, stored: StoredState, mark: SnapshotMark) -> None:
        """Put a whole directory in the place of this one."""
        self._disk.stored = stored
        self._advance(mark)

    def later(self, act: Callable[[], None]) -> None:
        """Do it when the disk has done it."""
        self.writer.submit(act)


class Incoming:
    """A snapshot on its way in; implements `holdfast.raft.api.SnapshotSink`."""

    def __init__(self, snapshots: SimSnapshots, mark: SnapshotMark) -> None:
        self._snapshots, self._mark = snapshots, mark
        self._decoder = StreamDecoder()
        self._records: list[StreamedRecord] = []
        self._stored: StoredState | None = None
        self._failure = ""
        self._aborted = False
        self._taken = 0

    def write(self, chunk: bytes) -> bool:
        """Take the next bytes, in order."""
        try:
            self._records += self._decoder.feed(chunk)
        except InstallRefused as error:
            self._failure = str(error)
        self._taken += len(chunk)
        return True

    def taken(self) -> int:
        """How many bytes the disk took in. Raises SnapshotFailed."""
        if self._failure:
            raise SnapshotFailed(self._failure)
        return self._taken

    def seal(self) -> None:
        """All bytes are there: make them durable beside the present state."""
        self._snapshots.later(self._sealed)

    def _sealed(self) -> None:
        if not self._decoder.whole:
            self._failure = self._failure or "its end is missing"
            return
        stored = _stored_from(self._records)
        meta = stored.meta
        if meta is None or (meta.index, meta.term) != (self._mark.index, self._mark.term):
            self._failure = f"it covers {meta}, not {self._mark} as announced"
        elif not self._aborted:
            self._stored = stored

    def ready(self) -> bool:
        """Tell whether it is durable. Raises SnapshotFailed."""
        if self._failure:
            raise SnapshotFailed(self._failure)
        return self._stored is not None

    def install(self) -> None:
        """Make it what a start would load from now on."""
        if self._stored is None:
            raise SnapshotFailed("it is not ready")
        self._snapshots.install(self._stored, self._mark)

    def abort(self) -> None:
        """Forget it."""
        self._aborted, self._stored = True, None


# --- a directory as a stream ---


def _records_of(stored: StoredState) -> Iterator[StreamedRecord]:
    names = sorted({database for database, _ in stored.records})
    for (database, key), content in stored.records.items():
        tagged = database.encode() + b"\0" + key
        yield StreamedRecord(names.index(database), tagged, content)
    for event in stored.events:
        key = _POSITION.pack(event.index, event.ordinal)
        yield StreamedRecord(_EVENTS, key, event.payload)
    if stored.meta is not None:
        meta = stored.meta
        head = _META_HEAD.pack(meta.index, meta.term, meta.log_time_ms)
        yield StreamedRecord(_META, b"meta", head + meta.chain)


def _stored_from(streamed: list[StreamedRecord]) -> StoredState:
    records: dict[tuple[str, bytes], bytes] = {}
    events: list[EventRecord] = []
    meta: StateMeta | None = None
    for database, key, content in streamed:
        if database == _EVENTS:
            index, ordinal = _POSITION.unpack(key)
            events.append(EventRecord(index, ordinal, content))
        elif database == _META:
            index, term, log_time_ms = _META_HEAD.unpack(content[: _META_HEAD.size])
            meta = StateMeta(index, term, log_time_ms, content[_META_HEAD.size :])
        else:
            name, _, plain = key.partition(b"\0")
            records[name.decode(), plain] = content
    return StoredState(records, tuple(events), meta)
