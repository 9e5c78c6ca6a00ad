"""What a start finds in the journal's tail: whole batches in unbroken sequence, or damage (S21).

The last batch may be torn: then its sync never returned, nothing that depends on it has left the
node, and it is left out. Everything else that is not as it was written is damage: a broken batch
before a whole one, a gap in the sequence, a missing file, a file of another journal. A last batch
that was acknowledged and then damaged looks like a torn one: the mark beside the tail and the
peers' memory tell (S21). Reads only; knows no LMDB.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from holdfast.storage.disk.records import RecordDamaged
from holdfast.storage.errors import JournalDamaged, WriteRefused
from holdfast.storage.journal.journal import JournalBatch, JournalImage
from holdfast.storage.journal.memory_journal import MemoryDisk, MemoryJournal
from holdfast.storage.journal.rules import outline_of
from holdfast.storage.journal.tail_batch import decode_batch
from holdfast.storage.journal.tail_file import (
    Found,
    file_name,
    journal_id_of,
    mark_of,
    read_file,
    serial_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.storage.disk.folder import Files


class Checkpoint(NamedTuple):
    """How far the environment is: the record that it holds, in one transaction with the rest."""

    journal_id: str
    """Random, in hex; the files of the tail carry it."""
    sequence: int
    """The environment holds all batches up to this number."""
    file: int
    """The files up to this serial number are not needed any more. The next one exists."""


class Recovered(NamedTuple):
    """What the tail holds behind a checkpoint."""

    batches: tuple[JournalBatch, ...]
    sequence: int
    """The number of the last batch; that of the checkpoint if there is none."""
    used: int
    """The newest file in which something was ever written; that of the checkpoint if none."""
    newest: int
    """The newest file."""
    torn: bool
    """Whether a batch behind the last whole one was being written when the node ended."""


def recover(path: Path, checkpoint: Checkpoint, files: Files) -> Recovered:
    """Read the tail behind `checkpoint`. Raises `JournalDamaged`, OSError."""
    batches, sequence, used = list[JournalBatch](), checkpoint.sequence, checkpoint.file
    torn = False
    serials = _serials_behind(path, checkpoint, files)
    for serial in serials:
        found = _read(path, checkpoint, serial, files)
        for number, body in found.batches:
            if number != sequence + 1:
                raise JournalDamaged(path, None, _gap(sequence + 1, number, serial))
            batches.append(_decoded(path, number, serial, body))
            sequence = number
        if found.stranded is not None:
            raise JournalDamaged(path, None, _broken(sequence + 1, found, serial))
        if found.touched and (torn or used != serial - 1):
            raise JournalDamaged(path, None, _written_after(sequence + 1, serial))
        if found.touched:
            used, torn = serial, found.torn
    return Recovered(tuple(batches), sequence, used, serials[-1], torn)


def replayed(path: Path, image: JournalImage, recovered: Recovered) -> JournalImage:
    """Carry the batches out on the environment's image. Raises `JournalDamaged`."""
    journal = MemoryJournal(MemoryDisk(outline_of(image), list(image.entries)))
    journal.load()
    first = recovered.sequence - len(recovered.batches) + 1
    for number, batch in enumerate(recovered.batches, start=first):
        try:
            journal.commit(batch)
        except WriteRefused as refused:
            reason = f"batch {number} of its tail contradicts what is before it: {refused.reason}"
            raise JournalDamaged(path, None, reason) from refused
    return journal.load()


def refuse_tail_before_checkpoint(path: Path, files: Files) -> None:
    """Raise JournalDamaged if an environment without a checkpoint has a tail with anything in it.

    Before it has one, its first file is made, and nothing is written there: such a file is left of
    a start that was cut off. Anything else means that the environment forgot its checkpoint.
    """
    for serial in tail_serials(files):
        content = files.read(file_name(serial))
        journal_id = journal_id_of(content, serial)
        if journal_id is None or read_file(content, mark_of(journal_id, serial)).touched:
            raise JournalDamaged(path, None, _FORGOTTEN.format(name=file_name(serial)))


def refuse_lost_batch(path: Path, known: int, found: int) -> None:
    """Raise JournalDamaged if a batch that was durable is gone: `known` is what the mark says."""
    if known > found:
        raise JournalDamaged(
            path,
            None,
            f"batch {known} of its tail was durable, and the last one found is {found}: its newest "
            "file is damaged or missing, or was replaced by an older one",
        )


def tail_serials(files: Files) -> list[int]:
    """Return the serial numbers of all files of the tail, in order."""
    serials = (serial_of(name) for name in files.names())
    return sorted(serial for serial in serials if serial is not None)


def _serials_behind(path: Path, checkpoint: Checkpoint, files: Files) -> list[int]:
    serials = [serial for serial in tail_serials(files) if serial > checkpoint.file]
    wanted = range(checkpoint.file + 1, checkpoint.file + 1 + max(1, len(serials)))
    for number, serial in zip_longest(wanted, serials):
        if number != serial:
            reason = f"the file {file_name(number)} of its tail is missing"
            raise JournalDamaged(path, None, reason)
    return serials


def _read(path: Path, checkpoint: Checkpoint, serial: int, files: Files) -> Found:
    content = files.read(file_name(serial))
    journal_id = journal_id_of(content, serial)
    if journal_id is None:
        reason = f"the head of the file {file_name(serial)} of its tail does not match its checksum"
        raise JournalDamaged(path, None, reason)
    if journal_id.hex() != checkpoint.journal_id:
        reason = f"the file {file_name(serial)} of its tail belongs to another journal"
        raise JournalDamaged(path, None, reason)
    return read_file(content, mark_of(journal_id, serial))


def _decoded(path: Path, number: int, serial: int, body: bytes) -> JournalBatch:
    try:
        return decode_batch(body)
    except RecordDamaged as error:
        reason = f"batch {number} in the file {file_name(serial)} of its tail: {error}"
        raise JournalDamaged(path, None, reason) from error


def _gap(expected: int, number: int, serial: int) -> str:
    return (
        f"batch {expected} of its tail is damaged or missing, and batch {number} after it is whole,"
        f" in the file {file_name(serial)}"
    )


def _written_after(expected: int, serial: int) -> str:
    return (
        f"batch {expected} of its tail is damaged or missing, and something was written after it, "
        f"in the file {file_name(serial)}"
    )


def _broken(expected: int, found: Found, serial: int) -> str:
    return (
        f"batch {expected} of its tail, at byte {found.end} of the file {file_name(serial)}, is "
        f"damaged, and a whole one stands behind it at byte {found.stranded}"
    )


_FORGOTTEN = (
    "it has no checkpoint, but something was written to the file {name} of its tail: a meta page is"
    " damaged, or data.mdb was replaced by an older one"
)
