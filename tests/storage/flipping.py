"""Start after start, each with one bit flipped, in a process that may fork: what each start finds.

    python -m storage.flipping DIRECTORY SEED COUNT

The directory holds `raft/` and `state/`. For every flip a child opens both as a node does; prints a
JSON line: file, byte, bit, and what the child found. The file is mended before the next.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from holdfast.storage.directory.check import JOURNAL_FOLDER, STATE_FOLDER, walk_directory
from holdfast.storage.journal.lmdb_journal import LmdbJournal
from holdfast.storage.state.state_store import StateStore
from storage.stores import content

SAME, DAMAGED, OLDER, WRONG = "same", "damaged", "older", "wrong"
_CODES: Final = (SAME, DAMAGED, OLDER, WRONG)
_FOLDERS: Final = (JOURNAL_FOLDER, STATE_FOLDER)


def seen(path: Path) -> tuple[object, tuple[object, ...]]:
    """Everything that a node would read at its start."""
    journal = LmdbJournal(path / JOURNAL_FOLDER)
    image = journal.load()
    journal.close()
    store = StateStore(path / STATE_FOLDER)
    found = content(store)
    store.close()
    return image, found


def start(path: Path, whole: tuple[object, tuple[object, ...]]) -> str:
    """Check as a node does, then read; this process may die of it."""
    if not walk_directory(path).sound:
        return DAMAGED
    journal, state = seen(path)
    if (journal, state) == whole:
        return SAME
    return OLDER if journal == whole[0] and _is_older(state, whole[1]) else WRONG


def _is_older(state: tuple[object, ...], whole: tuple[object, ...]) -> bool:
    """Whether it is the state of an earlier snapshot: a smaller index, and events that agree."""
    meta, events, all_events = state[0], state[2], whole[2]
    assert isinstance(events, list)
    assert isinstance(all_events, list)
    return meta != whole[0] and events == all_events[: len(events)]


def in_child(path: Path, whole: tuple[object, tuple[object, ...]]) -> str:
    """Start in a child; its death by a signal is damage, as S21 has it."""
    child = os.fork()
    if not child:
        code = 99
        try:
            code = _CODES.index(start(path, whole))
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


def main(directory: str, seed: str, count: str) -> None:
    """Flip, start, mend; again and again."""
    path = Path(directory)
    whole = seen(path)
    files = [path / folder / "data.mdb" for folder in _FOLDERS]
    images = [file.read_bytes() for file in files]
    for folder, at, bit in flips([len(image) for image in images], Random(seed), int(count)):
        with files[folder].open("r+b") as file:
            file.seek(at)
            file.write(bytes([images[folder][at] ^ 1 << bit]))
        found = in_child(path, whole)
        files[folder].write_bytes(images[folder])
        print(json.dumps([_FOLDERS[folder], at, bit, found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
