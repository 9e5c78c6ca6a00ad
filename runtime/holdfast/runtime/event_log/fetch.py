"""Fetches the sealed segments that this node lacks from its peers (S22).

After the install of a snapshot the state is whole and the history is not: what the leader had
sealed came by no stream. It is fetched in the background, on connections and threads of its own,
no faster than `BYTES_A_SECOND`, so that no heartbeat waits for it (S7, S18). What has arrived stays
over a restart and is gone on with; a child process verifies it before any of it counts. What nobody
has, or nobody has intact, stays named in `missing`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from zlib import crc32

from holdfast.coordinator.model.ids import Position
from holdfast.runtime.event_log.child import Ended, run_child
from holdfast.runtime.event_log.flaws import AGAIN_SECONDS, Flaws
from holdfast.runtime.event_log.segment_calls import Call, Piece, encode_list, encode_read
from holdfast.storage.disk.files import remove_tree, shortage
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
"""When missing records are looked for again, as long as some are missing or none could be told."""

FIRST_LOOK_SECONDS: Final = 2.0
"""A start comes first: it has elections and clients to see to."""

_BUCKET_OF: Final = {bucket_file(bucket): bucket for bucket in range(BUCKETS)}
_PASSING: Final = (TimeoutError, OSError, ValueError, StorageError)
"""What a peer or a disk may do to a fetch: it is told, and another try follows."""

_CRASHES: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
_FLAWED: Final = (EXIT_FLAWED, *(-number for number in _CRASHES))
"""How a verification ends that a peer's bytes are to blame for: they may crash their reader.

Any other end is our own: a full disk, a child that somebody killed.
"""


class Gaps(Protocol):
    """What is needed of the `History`."""

    def missing(self) -> list[Gap]:
        """What this node should hold and lacks."""


@dataclass(frozen=True, slots=True)
class FetchingPlace:
    """Where segments go, and whose they are.

    `disk_reserve_bytes`: what stays free there; None: the reserve of S20.
    """

    segments: Path
    cluster_id: str
    node_id: str
    disk_reserve_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Offer:
    """A peer's segment, and the manifest that it came with."""

    peer: str
    manifest: Manifest
    raw: bytes

    def has(self, gap: Gap) -> bool:
        """Whether some of what is missing lies in it."""
        first, last = self.manifest.first, self.manifest.last
        return Position(*last) > gap.after and Position(*first) <= gap.through

    @property
    def segment(self) -> str:
        """Its name, as a folder's."""
        return segment_name(Position(*self.manifest.first), Position(*self.manifest.last))

    @property
    def name(self) -> str:
        """Whose it is and which: another peer's files, or later ones, may have other bytes."""
        return f"{self.segment}.{crc32(self.peer.encode() + self.raw):08x}"


class Fetching:
    """One fetch at a time. All methods in the loop."""

    def __init__(
        self,
        place: FetchingPlace,
        history: Gaps,
        peers: list[str],
        call: Call,
        first_look_seconds: float = FIRST_LOOK_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`call`: how a peer is asked. `now`: seconds, for the pauses after a flaw."""
        self.missing: tuple[Gap, ...] = ()
        """What was found missing at the last look."""
        self._place, self._history, self._peers, self._call = place, history, peers, call
        self._pause = first_look_seconds
        self._told: tuple[Gap, ...] = ()
        self._flaws = Flaws(now)
        self._look = asyncio.Event()
        self._ended = threading.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for what is missing now, and whenever `look` is called."""
        if self._peers:
            self._task = asyncio.create_task(self._run())

    def look(self) -> None:
        """Something may be missing now: a snapshot was installed."""
        self._look.set()

    async def close(self) -> None:
        """End at the next chunk; what has arrived is gone on with at the next start."""
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
            await asyncio.wait_for(self._look.wait(), seconds)
        except TimeoutError:
            return

    async def fetch(self) -> None:
        """Look once, and fetch what is missing from whoever has it."""
        await self._note_missing()
        if not self.missing:
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
        self.missing = tuple(await asyncio.to_thread(self._history.missing))

    async def _all_offers(self) -> list[_Offer]:
        """What each peer has, in order; what was flawed before comes last, if it is due at all."""
        offers: list[_Offer] = []
        for peer in self._peers:
            try:
                offers += await asyncio.to_thread(self._offers, peer)
            except _PASSING as error:
                _tell_passing(peer, error)
        due = [offer for offer in offers if self._flaws.may_try(offer.name)]
        return sorted(due, key=lambda offer: self._flaws.is_known(offer.name))

    async def _try(self, offer: _Offer) -> bool:
        """Take of a segment what is missing now, if anything; False if its peer is away."""
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
        """Fetch a segment and have it verified; a flawed one is fetched from its beginning, later.

        Elsewhere first: what one peer's disk has spoilt is intact at another. Raises OSError if it
        could not be verified here; that is no peer's flaw, and tried again at the next look.
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
            raise OSError(f"its verification here ended with {ended.code}: {_last_line(ended)}")
        else:
            logger.info("took over segment %s, fetched from %s", ended.output, offer.peer)

    def _note_flaw(self, offer: _Offer, ended: Ended) -> None:
        """A look that finds the same flaw again is no news."""
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
        """All files of the segment, into a folder that is kept until they were verified."""
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
        with path.open("ab") as file:
            for chunk in chunks:
                file.write(chunk)
                if self._ended.wait(len(chunk) / BYTES_A_SECOND):
                    raise OSError("the node is being stopped")


def _tell_passing(peer: str, error: Exception) -> None:
    logger.warning("missing records could not be fetched from %s: %s", peer, error)


def _last_line(ended: Ended) -> str:
    """What a child complained of: a traceback says it at its end."""
    return ended.complaint.strip().rpartition("\n")[2] or "it said nothing"


def _remove_rest(segments: Path) -> None:
    """What was begun with one peer and ended with another."""
    for folder in segments.glob(".*.incoming"):
        remove_tree(folder)
