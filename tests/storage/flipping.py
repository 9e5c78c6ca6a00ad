"""Start after start, each with one bit flipped, in a process that may fork: what each start finds.

    python -m storage.flipping DIRECTORY SEED COUNT (anywhere | heads)

The directory holds `raft/` and `state/`. For every flip a child opens both as a node does; prints a
JSON line: file, byte, bit, and what the child found. The file is mended before the next. A
child that finds records sound and pages damaged writes the file anew, as a node does. With `heads`
only what LMDB itself says of its pages is flipped, and a child that finds everything goes on
writing: then all that was there has to be there still.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import lmdb

from holdfast.storage.directory.anew import write_anew
from holdfast.storage.directory.check import ENVIRONMENTS, walk_directory
from holdfast.storage.disk.environment import DATA_FILE, LOCK_FILE
from holdfast.storage.journal.journal import Entry, JournalBatch, JournalImage
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import StateStore
from storage.power import PAGE
from storage.stores import content, meta

SAME, MENDED, DAMAGED = "same", "mended", "damaged"
OLDER, WRONG, SPOILED = "older", "wrong", "spoiled"
_CODES: Final = (SAME, MENDED, DAMAGED, OLDER, WRONG, SPOILED)
WRITES: Final = 12
"""Commits and snapshots after a start that found everything, which use the pages that are free."""
HEAD: Final = 16
"""Bytes of a page's head."""


def seen(path: Path) -> tuple[object, tuple[object, ...]]:
    """Everything that a node would read at its start."""
    journal = LmdbJournal(path / ENVIRONMENTS[0])
    image = journal.load()
    journal.close()
    store = StateStore(path / ENVIRONMENTS[1])
    found = content(store)
    store.close()
    return image, found


def start(path: Path, whole: tuple[object, tuple[object, ...]], *, writes: bool) -> str:
    """Check as a node does, then read, then write if wanted; this process may die of it."""
    verdict = walk_directory(path)
    if not verdict.sound:
        return DAMAGED
    for name in verdict.spoiled:
        write_anew(path / name)
    journal, state = seen(path)
    if (journal, state) == whole:
        found = MENDED if verdict.spoiled else SAME
        return found if not writes or _goes_on(path, whole) else SPOILED
    return OLDER if journal == whole[0] and _is_older(state, whole[1]) else WRONG


def _goes_on(path: Path, whole: tuple[object, tuple[object, ...]]) -> bool:
    """Write as a node does that goes on; return whether all that was there is there still."""
    image, (told, records, all_events) = whole
    assert isinstance(image, JournalImage)
    assert isinstance(told, StateMeta)
    assert isinstance(records, list)
    assert isinstance(all_events, list)
    _sync_nothing()
    journal, store = LmdbJournal(path / ENVIRONMENTS[0]), StateStore(path / ENVIRONMENTS[1])
    journal.load()
    last = image.entries[-1].index
    for step in range(1, WRITES + 1):
        entry = Entry(last + step, 1, b"written later %d " % step * 100)
        journal.commit(JournalBatch(append=[entry], commit_index=entry.index))
        record = ("groups", b"later %d" % step, bytes(2_000))
        store.write_snapshot([record], [], meta(told.index + step))
    journal.close()
    store.close()
    verdict = walk_directory(path)
    after, (_, records_after, events_after) = seen(path)
    assert isinstance(after, JournalImage)
    assert isinstance(records_after, list)
    kept = after.entries[: len(image.entries)] == image.entries
    sound = verdict.sound and not verdict.spoiled
    return sound and kept and set(records) <= set(records_after) and events_after == all_events


def _sync_nothing() -> None:
    """Write without waiting for the disk: no power is cut here, and this process ends soon."""
    opened: Any = lmdb.open

    def unsynced(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - whatever LMDB takes
        return opened(*arguments, **{**options, "sync": False})

    for module, name, instead in (
        (lmdb, "open", unsynced),
        (os, "fsync", lambda _file: None),
        (os, "fdatasync", lambda _file: None),
    ):
        setattr(module, name, instead)


def _is_older(state: tuple[object, ...], whole: tuple[object, ...]) -> bool:
    """Whether it is the state of an earlier snapshot: a smaller index, and events that agree."""
    meta, events, all_events = state[0], state[2], whole[2]
    assert isinstance(events, list)
    assert isinstance(all_events, list)
    return meta != whole[0] and events == all_events[: len(events)]


def in_child(path: Path, whole: tuple[object, tuple[object, ...]], *, writes: bool) -> str:
    """Start in a child; its death by a signal is damage, as S21 has it."""
    child = os.fork()
    if not child:
        code = 99
        try:
            code = _CODES.index(start(path, whole, writes=writes))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return DAMAGED if os.WTERMSIG(status) in {signal.SIGBUS, signal.SIGSEGV} else WRONG
    code = os.waitstatus_to_exitcode(status)
    return _CODES[code] if code < len(_CODES) else WRONG


def flips(sizes: list[int], random: Random, count: int) -> Iterator[tuple[int, int, int]]:
    """Choose (folder, byte, bit): half in the first pages, where LMDB keeps what it cannot lose."""
    for number in range(count):
        folder = number % 2
        most = sizes[folder] if number % 4 < 2 else min(sizes[folder], 4 * 4096)
        yield folder, random.randrange(most), random.randrange(8)


def of_heads(images: list[bytes], random: Random, count: int) -> Iterator[tuple[int, int, int]]:
    """Choose (folder, byte, bit) in the heads of pages, and in the lists of unused ones."""
    for number in range(count):
        folder = number % 2
        image = images[folder]
        page = random.randrange(len(image) // PAGE)
        at = page * PAGE + random.randrange(HEAD)
        if number % 4 < 2:
            at = random.choice(_unused_lists(image))
        yield folder, at, random.randrange(8)


def _unused_lists(image: bytes) -> range:
    """Return the bytes of the page with the lists of unused pages, as the newest meta page says.

    Offsets as in LMDB's mdb.c: the root of the tree of unused pages is the last field of the first
    MDB_db of an MDB_meta; the transaction is the meta page's last field.
    """
    roots = [int.from_bytes(image[at + 80 : at + 88], sys.byteorder) for at in (0, PAGE)]
    transactions = [int.from_bytes(image[at + 144 : at + 152], sys.byteorder) for at in (0, PAGE)]
    root = roots[transactions.index(max(transactions))]
    free_room_ends = int.from_bytes(image[root * PAGE + 14 : root * PAGE + 16], sys.byteorder)
    return range(root * PAGE + free_room_ends, (root + 1) * PAGE)


def main(directory: str, seed: str, count: str, where: str) -> None:
    """Flip, start, mend; again and again."""
    path, random = Path(directory), Random(seed)
    whole = seen(path)
    images = {file: file.read_bytes() for file in path.glob("*/*") if file.name != LOCK_FILE}
    flippable = [path / folder / DATA_FILE for folder in ENVIRONMENTS]
    contents = [images[file] for file in flippable]
    heads = where == "heads"
    chosen = (
        of_heads(contents, random, int(count))
        if heads
        else flips([len(each) for each in contents], random, int(count))
    )
    for folder, at, bit in chosen:
        flipped = bytearray(contents[folder])
        flipped[at] ^= 1 << bit
        flippable[folder].write_bytes(flipped)
        found = in_child(path, whole, writes=heads)
        for file in set(path.glob("*/*")) - images.keys():
            file.unlink()
        for file, image in images.items():
            file.write_bytes(image)
        print(json.dumps([ENVIRONMENTS[folder], at, bit, found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
