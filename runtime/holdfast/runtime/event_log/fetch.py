"""Fetch the sealed segments that this node lacks from its peers (S22).

After the install of a snapshot the state is complete, but the history is not: sealed segments are
no part of a snapshot. They are fetched in the background, on connections and threads of their own,
no faster than `BYTES_A_SECOND`, so that no heartbeat waits for them (S7, S18). A transfer continues
after a restart; a child process verifies each segment before it counts. Records that no peer has
intact stay in `missing`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from zlib import crc32

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended, run_child
from holdfast.runtime.event_log.flaws import AGAIN_SECONDS, Flaws
from holdfast.runtime.event_log.segment_calls import Call, Piece, encode_list, encode_read
from holdfast.storage.disk.files import remove_tree, shortage
from holdfast.storage.disk.priority import idle_disk
from holdfast.storage.errors import StorageError
from holdfast.storage.segments.adopt import EXIT_FLAWED, Gap
from holdfast.storage.segments.segments import (
    BUCKETS,
    MANIFEST,
    Manifest,
    bucket_file,
    parse_manifest,
    segment_name,
)

logger = logging.getLogger(__name__)

BYTES_A_SECOND: Final = 32 << 20
LOOK_AGAIN_SECONDS: Final = 60.0
"""Seconds until the next look, while records are missing or their absence could not be checked."""

FIRST_LOOK_SECONDS: Final = 2.0
"""Seconds from a start to the first look: elections and clients come first."""

_BUCKET_OF: Final = {bucket_file(bucket): bucket for bucket in range(BUCKETS)}
_PASSING: Final = (TimeoutError, OSError, ValueError, StorageError)
"""Errors of a peer or a disk: they are logged, and another try follows."""

_CRASHES: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
_FLAWED: Final = (EXIT_FLAWED, *(-number for number in _CRASHES))
"""How a verification ends because of a peer's bytes, which may crash their reader.

Any other end has its cause here: a full disk, or a child that was killed.
"""


class Gaps(Protocol):
    """The part of `History` that is needed."""

    def missing(self) -> list[Gap]:
        """Return the records that this node should hold and lacks."""


@dataclass(frozen=True, slots=True)
class FetchingPlace:
    """Where segments go, and to which node they belong."""

    segments: Path
    cluster_id: str
    node_id: str
    disk_reserve_bytes: int | None = None  # bytes to stay free there; None: the reserve of S20


@dataclass(frozen=True, slots=True)
class _Offer:
    """A segment that a peer has, with its manifest."""

    peer: str
    manifest: Manifest
    raw: bytes

    def has(self, gap: Gap) -> bool:
        """Return whether some of the missing records are in it."""
        first, last = self.manifest.first, self.manifest.last
        return Position(*last) > gap.after and Position(*first) <= gap.through

    @property
    def segment(self) -> str:
        """The name of its folder."""
        return segment_name(Position(*self.manifest.first), Position(*self.manifest.last))

    @property
    def name(self) -> str:
        """A name for this peer's files: another peer's, or later ones, may have other bytes."""
        return f"{self.segment}.{crc32(self.peer.encode() + self.raw):08x}"


class Fetching:
    """Fetches one segment at a time. All methods belong to the loop."""

    def __init__(
        self,
        place: FetchingPlace,
        history: Gaps,
        peers: Callable[[], Sequence[str]],
        call: Call,
        first_look_seconds: float = FIRST_LOOK_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`peers`: returns who may be asked now. `call`: asks a peer.

        `now`: a clock in seconds, for the pauses after a flaw.
        """
        self.missing: tuple[Gap, ...] = ()
        """The gaps that the last look found."""
        self.problem = ""
        """Why the last look could not find out what is missing; empty: it could."""
        self._due, self._looked = 1, 0
        """How many looks were due so far, and which of them the last one was that ended."""
        self._place, self._history, self._peers, self._call = place, history, peers, call
        self._pause = first_look_seconds
        self._told: tuple[Gap, ...] = ()
        self._flaws = Flaws(now)
        self._look = asyncio.Event()
        self._ended = threading.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def known_gaps(self) -> tuple[Gap, ...] | None:
        """What is missing; None while that is not known: a look is due, or under way."""
        return self.missing if self._looked == self._due else None

    def start(self) -> None:
        """Look for missing records now, and whenever `look` is called."""
        self._task = asyncio.create_task(self._run())

    def look(self) -> None:
        """Look again: a snapshot was installed, so records may be missing; or peers are others."""
        self._due += 1
        self._look.set()

    async def close(self) -> None:
        """Stop at the next chunk; the next start continues the transfer."""
        self._ended.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        await self._wait(self._pause)
        while True:
            self._look.clear()
            whole = False
            try:
                await self.fetch()
                whole = not self.missing
            except Exception:
                logger.exception("missing segments could not be looked for; tried again later")
            await self._wait(None if whole else LOOK_AGAIN_SECONDS)

    async def _wait(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):  # `wait_for` may swallow the end of the task
                await self._look.wait()
        except TimeoutError:
            return

    async def fetch(self) -> None:
        """Look once, and fetch missing records from the peers that have them, if it has any."""
        await self._note_missing()
        if not self.missing or not self._peers():
            return
        away = set[str]()
        for offer in await self._all_offers():
            if offer.peer not in away and not await self._try(offer):
                away.add(offer.peer)
        if not self.missing:
            logger.info("the history is whole again")
            self._flaws.forget_all()
            await asyncio.to_thread(_remove_rest, self._place.segments)
        elif self.missing != self._told:
            self._told = self.missing
            named = "; ".join(map(str, self.missing))
            logger.warning("no peer has these records of the history, or not intact: %s", named)

    async def _note_missing(self) -> None:
        due = self._due
        try:
            self.missing = tuple(await asyncio.to_thread(self._history.missing))
        except _PASSING as error:
            self.problem = str(error)
            raise
        self._looked, self.problem = due, ""

    async def _all_offers(self) -> list[_Offer]:
        """List what each peer has; flawed copies come last, and only if they are due.

        Those that end first come first: a peer of an older version may have several segments of
        others in one, and taking that over would remove what is sound here.
        """
        offers: list[_Offer] = []
        for peer in self._peers():
            try:
                offers += await asyncio.to_thread(self._offers, peer)
            except _PASSING as error:
                _tell_passing(peer, error)
        due = [offer for offer in offers if self._flaws.may_try(offer.name)]
        return sorted(due, key=self._order)

    def _order(self, offer: _Offer) -> tuple[bool, Position]:
        return self._flaws.is_known(offer.name), Position(*offer.manifest.last)

    async def _try(self, offer: _Offer) -> bool:
        """Take the missing records of a segment, if any; return False if its peer is away."""
        gap = next((gap for gap in self.missing if offer.has(gap)), None)
        if gap is None:
            return True
        try:
            await self._take(offer, gap)
            await self._note_missing()
        except _PASSING as error:
            _tell_passing(offer.peer, error)
            return False
        return True

    async def _take(self, offer: _Offer, gap: Gap) -> None:
        """Fetch a segment and have it verified; a flawed one is fetched again later, as a whole.

        Other peers are asked first, since their copies are probably intact. Raises OSError if the
        verification failed for a cause on this node; the next look tries again.
        """
        place = self._place
        if lack := shortage(place.segments, place.disk_reserve_bytes):
            raise OSError(f"{place.segments}: {lack}; free space on it")
        folder = await asyncio.to_thread(self._download, offer)
        after, through = (f"{at.index}.{at.ordinal}" for at in gap)
        ended = await run_child(
            *("holdfast.storage.segments.adopt", str(folder), str(place.segments), after, through),
            *(place.cluster_id, place.node_id),
        )
        await asyncio.to_thread(remove_tree, folder)
        if ended.code in _FLAWED:
            self._note_flaw(offer, ended)
        elif ended.code != 0:
            raise OSError(f"its verification here ended with {ended.code}: {ended.reason}")
        else:
            logger.info("took over segment %s, fetched from %s", ended.output, offer.peer)

    def _note_flaw(self, offer: _Offer, ended: Ended) -> None:
        """Record a flawed copy; log a warning if the flaw is new."""
        if self._flaws.note(offer.name):
            logger.warning(
                "segment %s of %s is not taken over, its verification ended with %s: %s. Other "
                "peers are asked first; this one again in %.0f s, then ever later, at least once "
                "an hour. Check that node's copy with `holdfast log verify`",
                *(offer.segment, offer.peer, ended.code, ended.complaint.strip(), AGAIN_SECONDS),
            )

    # --- in threads ---

    def _offers(self, peer: str) -> list[_Offer]:
        answers = self._call(peer, encode_list())
        return [_Offer(peer, parse_manifest(raw, f"a segment of {peer}"), raw) for raw in answers]

    def _download(self, offer: _Offer) -> Path:
        """Download all files of the segment to a folder that is kept until they are verified."""
        first, last = Position(*offer.manifest.first), Position(*offer.manifest.last)
        folder = self._place.segments / f".{offer.name}.incoming"
        folder.mkdir(parents=True, exist_ok=True)
        for name in offer.manifest.files:
            if name not in _BUCKET_OF:
                raise ValueError(f"{offer.peer} names a file {name!r}, which no segment has")
            path = folder / name
            have = path.stat().st_size if path.exists() else 0
            piece = Piece(first.index, last.index, _BUCKET_OF[name], have)
            self._append(path, self._call(offer.peer, encode_read(piece)))
        (folder / MANIFEST).write_bytes(offer.raw)
        return folder

    def _append(self, path: Path, chunks: Iterator[bytes]) -> None:
        with path.open("ab") as file, idle_disk():
            for chunk in chunks:
                file.write(chunk)
                if self._ended.wait(len(chunk) / BYTES_A_SECOND):
                    raise OSError("the node is being stopped")


def _tell_passing(peer: str, error: Exception) -> None:
    logger.warning("missing records could not be fetched from %s: %s", peer, error)


def _remove_rest(segments: Path) -> None:
    """Remove the parts of transfers that were finished with another peer."""
    for folder in segments.glob(".*.incoming"):
        remove_tree(folder)
