"""The copy of a node's state that a backup is read from, and the sealed segments beside it.

A node keeps one copy at a time, in a file of its own: a transfer that broke off goes on with the
same bytes, and no read transaction is held for it (S18). It is made by a child process of low
priority and read at a bounded pace, so that callers hardly notice. A copy that nobody reads is
dropped; the next start removes one that a crash left. Knows files; no gRPC and no engine.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from holdfast.coordinator.model.events import HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.backup.copy_state import CopiedState
from holdfast.runtime.event_log.child import run_child
from holdfast.runtime.event_log.history import Page
from holdfast.storage.disk.environment import DATA_FILE
from holdfast.storage.disk.files import free_bytes, make_directory, remove_tree, reserve_bytes
from holdfast.storage.disk.priority import idle_disk
from holdfast.storage.errors import StorageError
from holdfast.storage.segments.checkpoint import checkpoint_name
from holdfast.storage.segments.segments import MANIFEST, Manifest, read_manifest, segments_in

logger = logging.getLogger(__name__)

BYTES_A_SECOND: Final = 16 << 20
"""Pace of a transfer: half of what nodes take to fetch segments from each other, since the clients'
port shares its processor with callers."""
CHUNK_BYTES: Final = 256 * 1024
BUSY_SECONDS: Final = 60.0
"""A copy that was read within this time belongs to its reader; another backup has to wait."""
KEPT_SECONDS: Final = 900.0
"""A copy is dropped when nobody has read it for this long."""
_STATE_FILE: Final = "state"


class CopyBusy(Exception):
    """Another backup is being taken, or there is no room for a copy now: try again later."""


class BadOffset(Exception):
    """A file was asked for from behind its end. The text says it."""


class CopyGone(Exception):
    """This copy, or this file of it, is not here: begin the backup anew."""


class HistoryMoved(CopyBusy):
    """The history was cut off while the copy was made: state and segments do not fit together."""


class NothingToCopy(Exception):
    """The cluster is not formed yet."""


class HeldSegment(NamedTuple):
    """A sealed segment: its folder's name, and (name, bytes) of its files, the manifest last."""

    name: str
    files: tuple[tuple[str, int], ...]


class BackupCopy(NamedTuple):
    """A copy that can be read."""

    copy_id: str
    state: CopiedState
    wall_time_ms: int
    first: Position | None
    """First record of the unbroken history; None: there is no record."""
    segments: tuple[HeldSegment, ...]
    checkpoint: tuple[str, int] | None = None
    """Name and bytes of the file that stands for the records before them; None: nothing was cut."""


class Piece(NamedTuple):
    """A file of a copy from byte `offset` on.

    `segment` "": the state, or the checkpoint if `file` names it.
    """

    copy_id: str
    segment: str
    file: str
    offset: int


class FirstOfHistory(Protocol):
    """The part of `History` that is needed."""

    async def read(self, start: Position | None, limit: int) -> Page:
        """Return at most `limit` records from `start` (None: the first held) on."""


@dataclass(frozen=True, slots=True)
class BackupPlace:
    """The folders of a node that a backup is made from."""

    state: Path
    segments: Path
    copy: Path
    """Where the copy lies while it is read; on the same disk."""
    disk_reserve_bytes: int | None = None
    """None: the reserve of S20."""


class BackupSource:
    """Makes and reads the node's one copy. All methods but `remove` belong to the loop."""

    def __init__(
        self,
        place: BackupPlace,
        make_durable: Callable[[], Awaitable[None]],
        release_dead_readers: Callable[[], None],
        history: FirstOfHistory,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        cut: Callable[[], HistoryCut | None] = lambda: None,
    ) -> None:
        """`make_durable`: takes a snapshot of the applied state and waits for it.

        `release_dead_readers`: of LMDB, after a child that may have been killed. `clock`: in
        seconds. `pause`: waits for so many seconds. `cut`: returns where the history is cut off.
        """
        self._place, self._make_durable, self._cut = place, make_durable, cut
        self._release_dead_readers, self._history = release_dead_readers, history
        self._clock, self._pause = clock, pause
        self._copy: BackupCopy | None = None
        self._used_at = 0.0
        self._making = False
        self._removing = asyncio.Lock()
        """So that a copy which is removed slowly is gone before the next one is made there."""
        self._drop_timer: asyncio.TimerHandle | None = None

    async def begin(self, copy_id: str) -> BackupCopy:
        """Return the copy of this id if it is still here, else make one of this moment.

        Raises CopyBusy, NothingToCopy; StorageError, OSError if it cannot be made.
        """
        if self._copy is not None and self._copy.copy_id == copy_id:
            self._touch()
            return self._copy
        idle = self._copy is None or self._clock() - self._used_at > BUSY_SECONDS
        if self._making or not idle:
            raise CopyBusy(
                "another backup is being taken from this node: take this one from another node, "
                f"or when nobody has read the other for {BUSY_SECONDS:.0f} s"
            )
        self._making = True
        try:
            await self._drop()
            self._copy = await self._make()
        finally:
            self._making = False
        self._touch()
        return self._copy

    async def read(self, piece: Piece) -> AsyncIterator[bytes]:
        """Yield a file's bytes in chunks, at the pace of a backup.

        Raises CopyGone, BadOffset, OSError.
        """
        try:
            opened = await asyncio.to_thread(self._open, piece)
        except FileNotFoundError as error:
            await self._drop()
            raise CopyGone(
                "retention has cut this part of the history off meanwhile: begin the backup anew"
            ) from error
        with opened as file:
            while chunk := await asyncio.to_thread(_read, file):
                self._touch()
                yield chunk
                await self._pause(len(chunk) / BYTES_A_SECOND)

    async def end(self, copy_id: str) -> None:
        """Drop the copy of this id, if it is here."""
        if self._copy is not None and self._copy.copy_id == copy_id:
            await self._drop()

    def forget(self) -> None:
        """Serve the copy no longer; its file stays until `remove`, or until the next start."""
        if self._drop_timer is not None:
            self._drop_timer.cancel()
        self._copy = None

    def remove(self) -> None:
        """Remove the file of a copy that is forgotten, if there is one. Blocks; any thread."""
        remove_tree(self._place.copy)

    async def _make(self) -> BackupCopy:
        await self._make_durable()
        await asyncio.to_thread(self._refuse_shortage)
        state = await self._copy_state()
        if not state.cluster_id:
            raise NothingToCopy("the cluster is not formed yet, so there is nothing to back up")
        # After the copy: what is sealed and dropped meanwhile is in the copy as well.
        first = (await self._history.read(None, 1)).first
        segments = await asyncio.to_thread(self._segments, first, state.index)
        checkpoint = await asyncio.to_thread(self._checkpoint, state)
        moment = secrets.token_hex(8), state, int(time.time() * 1000)
        made = BackupCopy(*moment, first, tuple(segments), checkpoint)
        logger.info("a copy of the state at index %s was made for a backup", state.index)
        return made

    async def _copy_state(self) -> CopiedState:
        copy = self._place.copy
        await asyncio.to_thread(make_directory, copy)
        try:
            ended = await run_child(
                *("holdfast.runtime.backup.copy_state", str(self._place.state)),
                *(str(copy / "lmdb"), str(copy / _STATE_FILE)),
            )
        finally:
            await asyncio.to_thread(self._release_dead_readers)
        if ended.code != 0:
            last = ended.complaint.strip().rpartition("\n")[2]
            raise OSError(
                f"the state could not be copied, the copying ended with {ended.code}: {last}"
            )
        return CopiedState(**json.loads(ended.output))

    def _segments(self, first: Position | None, last_index: int) -> list[HeldSegment]:
        """List what is sealed of the history from `first` through `last_index`."""
        if first is None:
            return []
        return [
            HeldSegment(path.name, tuple(_sizes(path, manifest)))
            for path in segments_in(self._place.segments)
            if (manifest := read_manifest(path)).last[0] <= last_index
            and Position(*manifest.last) >= first
        ]

    def _checkpoint(self, state: CopiedState) -> tuple[str, int] | None:
        """Find the checkpoint that stands for what was cut off. Raises HistoryMoved."""
        now = self._cut()
        if state.cut is None and now is None:
            return None
        if state.cut is not None and now is not None and Position(*state.cut) == now.last:
            name = checkpoint_name(now.last)
            with suppress(FileNotFoundError):
                return name, (self._place.segments / name).stat().st_size
        raise HistoryMoved(
            "this node is just cutting its history off, and its checkpoint is not made yet: run "
            "the same command again in some seconds, or take the backup from another node"
        )

    def _refuse_shortage(self) -> None:
        """Raise CopyBusy if the copy would take the disk below its reserve (S20)."""
        state, reserve = self._place.state, self._place.disk_reserve_bytes
        needed = 2 * (state / DATA_FILE).stat().st_size
        least = reserve_bytes(state) if reserve is None else reserve
        if free_bytes(state) < needed + least:
            raise CopyBusy(
                f"a copy of the state takes up to {needed} bytes for a while, and the disk of "
                f"this node must keep {least} bytes free: free space on it, or take the backup "
                "from another node"
            )

    def _open(self, piece: Piece) -> BinaryIO:
        file = self._path(piece).open("rb")
        size = os.fstat(file.fileno()).st_size
        if piece.offset > size:
            file.close()
            raise BadOffset(f"it is {piece.offset}, and the file has {size} bytes")
        file.seek(piece.offset)
        return file

    def _path(self, piece: Piece) -> Path:
        """Return the file; only names that `begin` has told are served."""
        copy = self._copy
        if copy is None or copy.copy_id != piece.copy_id:
            raise CopyGone("this copy is not here any more: begin the backup anew")
        if not piece.segment and not piece.file:
            return self._place.copy / _STATE_FILE
        if not piece.segment and copy.checkpoint and piece.file == copy.checkpoint[0]:
            return self._place.segments / piece.file
        for segment in copy.segments:
            if segment.name == piece.segment and piece.file in dict(segment.files):
                return self._place.segments / piece.segment / piece.file
        raise CopyGone("this file is no part of the copy: begin the backup anew")

    def _touch(self) -> None:
        self._used_at = self._clock()
        if self._drop_timer is not None:
            self._drop_timer.cancel()
        loop = asyncio.get_running_loop()
        self._drop_timer = loop.call_later(KEPT_SECONDS, self._drop_forgotten)

    def _drop_forgotten(self) -> None:
        self._dropping = asyncio.ensure_future(self._drop())

    async def _drop(self) -> None:
        self.forget()
        async with self._removing:
            await asyncio.to_thread(self.remove)


def _sizes(segment: Path, manifest: Manifest) -> list[tuple[str, int]]:
    return [(name, (segment / name).stat().st_size) for name in (*manifest.files, MANIFEST)]


def _read(file: BinaryIO) -> bytes:
    with idle_disk():
        return file.read(CHUNK_BYTES)


CANNOT_COPY: Final = (StorageError, OSError, ValueError)
"""Why a copy cannot be made or read: the disk, or damage."""
