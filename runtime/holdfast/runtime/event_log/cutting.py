"""Cut this node's history off where the log says, behind a checkpoint of its own (S24).

The leader has its checkpoint made first (`prepare`), and proposes the cut with its digest. Each
node then makes its own in a child process, in its turn, and compares the two; only then are the
segments before it removed. A node that lacks records, or has lost its checkpoint, fetches the file
from a peer and compares that. What goes wrong leaves everything where it is, is logged, and is
tried again. Knows folders and peers; neither settings nor what a record means.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.coordinator.cluster.retention import SealedPart
from holdfast.coordinator.model.commands import CutHistory
from holdfast.coordinator.model.events import HistoryCut, Record
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended, run_child
from holdfast.runtime.event_log.fetch import BYTES_A_SECOND
from holdfast.runtime.event_log.seal import TURN_SECONDS_AN_EVENT
from holdfast.runtime.event_log.segment_calls import Call, encode_checkpoint
from holdfast.storage.disk.priority import idle_disk
from holdfast.storage.errors import StorageError
from holdfast.storage.segments.checkpoint import checkpoint_name
from holdfast.storage.segments.cut import EXIT_MISSING, remove_cut
from holdfast.storage.segments.seal import end_of
from holdfast.storage.segments.segment_sizes import SegmentSizes
from holdfast.storage.segments.segments import read_manifest, segments_in

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 60.0
AGAIN_SECONDS_MAX: Final = 3_600.0
"""Seconds until a cut that failed is tried again, doubled each time up to this."""

_FAILURES: Final = (TimeoutError, OSError, ValueError, StorageError)
"""Of a disk, a child or a peer."""


@dataclass(frozen=True, slots=True)
class CuttingPlace:
    """The folders of a node whose history is cut off."""

    state: Path
    segments: Path
    turn: int = 0
    """How many nodes do it before this one, by the order of their names."""


class CannotCut(OSError):
    """The checkpoint could not be made, or is not the one that the log tells."""


class Cutting:
    """Carries out one cut at a time. All methods belong to the loop."""

    def __init__(
        self,
        place: CuttingPlace,
        cut: Callable[[], HistoryCut | None],
        make_durable: Callable[[], Awaitable[None]],
        release_dead_readers: Callable[[], None],
        peers: Callable[[], Sequence[str]] = tuple,
        call: Call = lambda _peer, _request: iter(()),
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`cut`: returns the last cut on the log. `make_durable`: takes a snapshot, waits for it.

        `release_dead_readers`: of LMDB, after a child that may have been killed. `peers`: returns
        who may be asked now. `call`: asks a peer. `pause`: waits for so many seconds.
        """
        self._place, self._cut, self._make_durable = place, cut, make_durable
        self._release_dead_readers = release_dead_readers
        self._peers, self._call, self._pause = peers, call, pause
        self._sizes, self._sizing = SegmentSizes(place.segments), asyncio.Lock()
        self._look = asyncio.Event()
        self._one = asyncio.Lock()
        self._ended = threading.Event()
        self._done: HistoryCut | None = None
        self._task: asyncio.Task[None] | None = None
        self._removing: asyncio.Future[int] | None = None
        self.problem = ""
        """Why the last cut on the log is not carried out here; empty: it is, or is under way."""

    def start(self) -> None:
        """Carry out what is on the log now, as far as it is not yet, and what comes later."""
        self._task = asyncio.create_task(self._run())

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Look when a cut is applied."""
        del index
        if any(isinstance(record.event, HistoryCut) for record in records):
            self.look()

    def look(self) -> None:
        """Look again: another state may be in force."""
        self._look.set()

    async def close(self) -> None:
        """Stop, wherever it is: the next start completes it.

        A removal under way ends first, for the directory must not be another process's by then.
        """
        self._ended.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._removing is not None:
            await asyncio.wait([self._removing])

    async def carry_out(self) -> None:
        """Carry out the last cut on the log. Raises OSError, StorageError; all is kept then."""
        wanted = self._cut()
        if wanted is None or wanted == self._done:
            return
        await self._wait_for_turn(wanted.last)
        async with self._one:
            ended = await self._child(wanted.last, wanted.digest.hex())
            if ended.code == EXIT_MISSING:
                ended = await self._fetched(wanted, ended)
            _made(ended, wanted.last)
            await self._make_durable()  # before anything goes, so that the next start knows the cut
            self._removing = asyncio.ensure_future(asyncio.to_thread(self._remove, wanted.last))
            count = await asyncio.shield(self._removing)
        self._done = wanted
        if count:
            logger.info(
                "the history up to %s.%s was cut off: %s segments were deleted, a checkpoint "
                "stands for them",
                *(*wanted.last, count),
            )

    async def prepare(self, last: Position) -> CutHistory:
        """Make this node's own checkpoint at a position, so that a cut there can be proposed.

        Raises TimeoutError, OSError, with nothing deleted.
        """
        async with self._one:
            told = json.loads(_made(await self._child(last, "-"), last))
        return CutHistory(last, told["log_time_ms"], bytes.fromhex(told["digest"]))

    async def sealed(self) -> list[SealedPart]:
        """Describe the segments here, in the order of the log.

        New ones are looked at in a child process. Raises TimeoutError, OSError, ValueError.
        """
        async with self._sizing:
            after = await asyncio.to_thread(self._sizes.unknown_after)
            if after is not None:
                program = "holdfast.storage.segments.segment_sizes"
                ended = await run_child(program, str(self._place.segments), after)
                if ended.code:
                    raise CannotCut(
                        f"a segment cannot be looked at: {ended.complaint.strip()[-200:]}"
                    )
                self._sizes.learn(ended.output)
            return await asyncio.to_thread(self._sizes.parts)

    async def reached(self) -> Position:
        """Return where the newest segment here ends; 0.0: there is none.

        Only one manifest is read: somebody waits. Raises OSError, ValueError.
        """
        return await asyncio.to_thread(_newest_end, self._place.segments)

    async def _run(self) -> None:
        again = AGAIN_SECONDS
        while True:
            self._look.clear()
            try:
                await self.carry_out()
                again, wait, self.problem = AGAIN_SECONDS, None, ""
            except _FAILURES as error:
                self.problem = str(error)
                wait, again = again, min(2 * again, AGAIN_SECONDS_MAX)
                logger.warning(
                    "a cut of the history is not carried out here: %s. Nothing was deleted; it is "
                    "tried again in %.0f s",
                    *(error, wait),
                )
            except Exception as error:
                wait, self.problem = again, repr(error)
                logger.exception("a cut of the history failed inside; nothing was deleted")
            await self._wait(wait)

    async def _wait(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):  # `wait_for` may swallow the end of the task
                await self._look.wait()
        except TimeoutError:
            return

    async def _wait_for_turn(self, last: Position) -> None:
        """Wait while other nodes fold: all at once they would cost callers more than in turn."""
        if self._place.turn:
            count = await asyncio.to_thread(self._count, last)
            await self._pause(self._place.turn * count * TURN_SECONDS_AN_EVENT)

    async def _child(self, last: Position, digest: str, arrived: str = "-") -> Ended:
        place = self._place
        at = f"{last.index}.{last.ordinal}"
        try:
            return await run_child(
                *("holdfast.storage.segments.cut", str(place.state), str(place.segments)),
                *(at, digest, arrived),
            )
        finally:
            await asyncio.to_thread(self._release_dead_readers)

    async def _fetched(self, wanted: HistoryCut, ended: Ended) -> Ended:
        """Take over the checkpoint from the first peer that has it; else return what ended."""
        for peer in self._peers():
            try:
                arrived = await asyncio.to_thread(self._download, peer, wanted.last)
            except _FAILURES as error:
                logger.info("no checkpoint could be fetched from %s: %s", peer, error)
                continue
            ended = await self._child(wanted.last, wanted.digest.hex(), str(arrived))
            if ended.code == 0:
                logger.info("took over a checkpoint, fetched from %s", peer)
                return ended
            logger.warning("the checkpoint of %s is not taken over: %s", peer, ended.complaint)
        return ended

    # --- in threads ---

    def _count(self, last: Position) -> int:
        manifests = map(read_manifest, segments_in(self._place.segments))
        return sum(manifest.count for manifest in manifests if manifest.last <= last)

    def _remove(self, last: Position) -> int:
        with idle_disk():
            return remove_cut(self._place.segments, last)

    def _download(self, peer: str, last: Position) -> Path:
        folder = self._place.segments
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f".{checkpoint_name(last)}.arrived"
        chunks: Iterator[bytes] = self._call(peer, encode_checkpoint(last))
        with path.open("wb") as file, idle_disk():
            for chunk in chunks:
                file.write(chunk)
                if self._ended.wait(len(chunk) / BYTES_A_SECOND):
                    raise OSError("the node is being stopped")
        return path


def _newest_end(segments: Path) -> Position:
    found = segments_in(segments)
    return end_of(found[-1]) if found else Position(0, 0)


def _made(ended: Ended, last: Position) -> str:
    """Return what the child told of its checkpoint. Raises CannotCut if it made none."""
    if ended.code == 0:
        return ended.output
    place = f"{last.index}.{last.ordinal}"
    raise CannotCut(
        f"there is no checkpoint at {place}, its process ended with {ended.code}: {ended.reason}"
    )
