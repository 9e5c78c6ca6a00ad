"""The journal of a node: a tail of files, one write and one sync a batch, before an environment.

A batch is durable when it is in the tail. A helper thread writes behind: when a file is full, it
carries the net effect of the file's batches out in LMDB, in one synced transaction with the record
of how far it came (the checkpoint), and makes the file ready to be used again. A start reads the
environment and then the tail behind its checkpoint (`tail_recovery`), and writes all that it found
into the environment before anything is appended. So a batch that was read once is never lost, even
if its sync had not returned, and nothing is ever appended behind a torn one.

The order of the steps makes a crash between any two of them harmless: a file exists durably before
the checkpoint that ends the file before it, and a file is removed or used again only after the
checkpoint that covers it. Knows no engine; one thread calls it at a time.
"""

from __future__ import annotations

import logging
import secrets
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from holdfast.storage.disk.files import sync_path
from holdfast.storage.disk.folder import Files, Folder
from holdfast.storage.durations import Durations
from holdfast.storage.errors import JournalFailed, is_want_of_room
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE, CommitMark, read_mark
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.journal.net_effect import NetEffect
from holdfast.storage.journal.rules import Outline, Terms, advance, outline_of
from holdfast.storage.journal.tail_batch import encode_batch
from holdfast.storage.journal.tail_file import JOURNAL_ID_BYTES
from holdfast.storage.journal.tail_files import FILE_BYTES, TailFile, TailFiles, remove_leftover
from holdfast.storage.journal.tail_recovery import (
    Checkpoint,
    Recovered,
    recover,
    refuse_lost_batch,
    refuse_tail_before_checkpoint,
    replayed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from holdfast.storage.journal.journal import JournalBatch, JournalImage

logger = logging.getLogger(__name__)

_NOT_DURABLE = (
    "the file {mark} beside it names batch {last}, the one before, as the last that was durable. So"
    " the torn one was being written when the node ended, and nobody was told of it. Only a power "
    "cut, or a failure to write that file, could make this wrong: the peers are asked in any case"
)
_UNKNOWN = (
    "either it was being written when the node ended, and nobody was told of it, or it was durable "
    "and is damaged. Nothing here says which, since the file {mark} beside it {told}. The node asks"
    " its peers before it votes, and rebuilds if it had told them of that batch. A cluster of one "
    "has nobody to ask: examine its disk, and compare with a backup what was written last"
)
WAIT_TOLD_SECONDS = 0.1
"""A batch that waits longer than this for the helper is told of in the node's log."""


class Environment(Protocol):
    """What stands behind the tail; `LmdbJournal` is one. Its errors pass through."""

    def load_before_tail(self) -> JournalImage:
        """Read and verify what is there. Called before the first checkpoint."""

    def last_checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint; None if there was none."""

    def checkpoint(self, net: NetEffect, checkpoint: Checkpoint) -> None:
        """Make both durable, together or not at all."""

    def close(self) -> None:
        """Release the files."""


class Mark(Protocol):
    """A second record of the last batch; `CommitMark` is one."""

    def note(self, number: int) -> None:
        """Record, without a sync, that the batch with this number is durable."""

    def close(self) -> None:
        """Release the file."""


def open_journal(path: Path) -> TailedJournal:
    """Open the journal in the folder `path`, which `LmdbJournal.create` has made.

    Raises `JournalDamaged` if LMDB cannot open what is there, `JournalFailed`.
    """
    environment = LmdbJournal(path)
    try:
        # A process that was killed may have renamed a file and not made that durable.
        sync_path(path)
        known, mark = read_mark(path, TAIL_MARK_FILE), CommitMark(path, TAIL_MARK_FILE)
    except OSError as error:
        environment.close()
        raise JournalFailed(path, str(error), error.errno or 0) from error
    helper = ThreadPoolExecutor(1, thread_name_prefix="journal-behind")
    return TailedJournal(path, environment, Folder(path), mark, helper, known=known)


class TailedJournal:
    """Implements `Journal`. `known`: the number that an earlier process left in the mark."""

    def __init__(
        self,
        path: Path,
        environment: Environment,
        files: Files,
        mark: Mark,
        helper: Executor,
        *,
        known: int = 0,
        file_bytes: int = FILE_BYTES,
    ) -> None:
        self._path, self._environment, self._files = path, environment, files
        self._mark, self._helper, self._known = mark, helper, known
        self._file_bytes = file_bytes
        self.syncs = Durations()
        """What writing and syncing each batch took."""
        self._failure: Exception | None = None
        self._outline: Outline | None = None

    def load(self) -> JournalImage:
        """Read and verify everything, and make it durable in the environment.

        Gives an environment that has no tail yet its first file; from then on no version that does
        not know tails reads it. Raises `JournalDamaged`, `JournalFailed`, `DirectoryRefused`.
        """
        try:
            return self._load()
        except OSError as error:
            raise JournalFailed(self._path, str(error), error.errno or 0) from error

    def commit(self, batch: JournalBatch) -> None:
        """Make the batch durable. Raises `JournalFailed`, from then on at every call.

        Raises `WriteRefused`, with nothing written, if the batch contradicts the journal.
        """
        if self._failure is not None:
            raise self._failure
        if self._outline is None:
            raise RuntimeError("a journal must be loaded before its first commit")
        after = advance(self._outline, batch, self._terms.at)
        try:
            self._append(encode_batch(batch))
        except OSError as error:
            self._failure = JournalFailed(self._path, str(error), error.errno or 0)
            raise self._failure from error
        except Exception as error:
            self._failure = error
            raise
        self._outline = after
        self._terms.follow(batch)
        self._net.add(batch)

    def close(self) -> None:
        """Let the helper end what it is at, then release the files."""
        self._helper.shutdown(wait=True)
        if self._outline is not None:
            self._current.close()
            if self._next.exception() is None:
                self._next.result().close()
        self._environment.close()
        self._mark.close()

    # -- a start -------------------------------------------------------------------------------

    def _load(self) -> JournalImage:
        image = self._environment.load_before_tail()
        remove_leftover(self._files)
        checkpoint = self._environment.last_checkpoint() or self._begin_tail()
        self._tail = TailFiles(self._files, bytes.fromhex(checkpoint.journal_id), self._file_bytes)
        recovered = recover(self._path, checkpoint, self._files)
        refuse_lost_batch(self._path, self._known, recovered.sequence)
        image = replayed(self._path, image, recovered)
        serial = self._end_used(checkpoint, recovered)
        self._tail.keep_only(serial, serial + 1)
        self._begin_file(self._tail.open(serial), self._next_of(serial, recovered.newest))
        self._journal_id, self._sequence = checkpoint.journal_id, recovered.sequence
        self._outline, self._terms = outline_of(image), Terms(image)
        return image

    def _begin_tail(self) -> Checkpoint:
        """Give an environment without a tail its first, empty file, and the first checkpoint."""
        refuse_tail_before_checkpoint(self._path, self._files)
        refuse_lost_batch(self._path, self._known, 0)
        journal_id = secrets.token_bytes(JOURNAL_ID_BYTES)
        tail = TailFiles(self._files, journal_id, self._file_bytes)
        tail.keep_only(1, 0)
        tail.prepare(1).close()
        checkpoint = Checkpoint(journal_id.hex(), 0, 0)
        self._environment.checkpoint(NetEffect(), checkpoint)
        return checkpoint

    def _end_used(self, checkpoint: Checkpoint, recovered: Recovered) -> int:
        """Write what the used files hold into the environment; return the first unused file."""
        serial = recovered.used + 1
        if recovered.used == checkpoint.file:
            return serial
        if recovered.torn:
            self._tell_of_torn(recovered.sequence)
        if serial > recovered.newest:
            self._tail.prepare(serial).close()
        net = NetEffect()
        for batch in recovered.batches:
            net.add(batch)
        ended = Checkpoint(checkpoint.journal_id, recovered.sequence, recovered.used)
        self._environment.checkpoint(net, ended)
        return serial

    def _tell_of_torn(self, last: int) -> None:
        """Say what is known of a torn batch behind batch `last`: a bit that flipped tears one, too.

        The mark is written behind each sync, and only a power cut takes it back.
        """
        head = f"the last batch in the journal {self._path} is torn, and it is left out: "
        if self._known and self._known == last:
            logger.info("%s%s", head, _NOT_DURABLE.format(mark=TAIL_MARK_FILE, last=last))
        else:
            told = f"names batch {self._known}" if self._known else "names none"
            logger.warning("%s%s", head, _UNKNOWN.format(mark=TAIL_MARK_FILE, told=told))

    def _next_of(self, serial: int, newest: int) -> Future[TailFile]:
        following = serial + 1
        if following > newest:
            return self._helper.submit(self._tail.prepare, following)
        return self._helper.submit(self._tail.open, following)

    # -- a batch -------------------------------------------------------------------------------

    def _begin_file(self, file: TailFile, following: Future[TailFile]) -> None:
        self._current, self._next, self._net = file, following, NetEffect()

    def _append(self, pieces: Sequence[bytes]) -> None:
        if self._next.done():
            self._refuse_failed_helper()
        if not self._current.fits(pieces):
            self._change_file()
        began = time.monotonic()
        self._current.append(self._sequence + 1, pieces)
        self.syncs.add(time.monotonic() - began)
        self._sequence += 1
        self._mark.note(self._sequence)

    def _refuse_failed_helper(self) -> None:
        """Raise what ended the helper's work, but for want of room: that may pass (S20)."""
        error = self._next.exception()
        if error is not None and not _is_want_of_room(error):
            raise error

    def _change_file(self) -> None:
        """Go on in the next file, and have the helper carry out what the full one holds."""
        full, net, sequence = self._current, self._net, self._sequence
        following = self._take_next()
        ended = self._helper.submit(self._write_behind, full, net, sequence)
        self._begin_file(following, ended)

    def _take_next(self) -> TailFile:
        """Take the next file: at once, unless the helper has fallen a whole file behind."""
        self._await_next()
        if _is_want_of_room(self._next.exception()):
            # The room may be there again; if not, this batch fails, and with it the node.
            self._next = self._helper.submit(self._tail.prepare, self._current.serial + 1)
        return self._next.result()

    def _await_next(self) -> None:
        if self._next.done():
            return
        began = time.monotonic()
        with suppress(Exception):  # whatever it is, the caller finds it in the same place
            self._next.result()
        waited_s = time.monotonic() - began
        if waited_s < WAIT_TOLD_SECONDS:
            return
        logger.warning(
            "the journal %s waited %.0f ms: its files were full, and the helper had still to write "
            "an earlier one into the environment. Is the disk slow?",
            self._path,
            waited_s * 1_000,
        )

    def _write_behind(self, full: TailFile, net: NetEffect, sequence: int) -> TailFile:
        """Carry out a full file's batches in the environment; the helper's thread."""
        full.close()
        checkpoint = Checkpoint(self._journal_id, sequence, full.serial)
        self._environment.checkpoint(net, checkpoint)
        return self._tail.use_again(full, full.serial + 2)


def _is_want_of_room(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and is_want_of_room(error.errno or 0)
