"""Copy the state of a running node to a file, in a child process, which has a low priority.

As a program: `python -m holdfast.runtime.backup.copy_state STATE COPY OUT`.

Reading and encoding all records takes about 20 microseconds each, for which the node's own
interpreter would be blocked. The child copies LMDB's pages (S18: nothing is read in a long
transaction), writes the copy as a stream of records, reads that back, and prints what it holds.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from holdfast.runtime.backup.stored_state import StoredState, stored_state
from holdfast.storage.disk.files import remove_tree
from holdfast.storage.state.state_store import StateStore, read_chunks

CHUNK_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class CopiedState:
    """What was copied: one index, and the file's bytes. Digests in hexadecimal."""

    cluster_id: str
    index: int
    term: int
    digest: str
    chain: str
    log_time_ms: int
    recovery_number: int
    cut: tuple[int, int] | None
    """Where the history begins by this state, if some of it was cut off (S24)."""
    size: int
    sha256: str


def copy_state(state: Path, copy: Path, out: Path) -> CopiedState:
    """Write what a node's state holds now to `out`; `copy` is a folder for a moment.

    Raises StorageError; StateFileFlawed if a record is damaged; OSError.
    """
    store = StateStore(state, beside_writer=True)
    try:
        store.copy_to(copy)
    finally:
        store.close()
    whole = hashlib.sha256()
    try:
        with out.open("wb") as file:
            chunks = _passed(read_chunks(copy, CHUNK_BYTES), file.write, whole.update)
            found = stored_state(chunks)
            size = file.tell()
    finally:
        remove_tree(copy)
    return _copied(found, size, whole.hexdigest())


def _passed(chunks: Iterator[bytes], *takers: Callable[[bytes], object]) -> Iterator[bytes]:
    for chunk in chunks:
        for take in takers:
            take(chunk)
        yield chunk


def _copied(found: StoredState, size: int, sha256: str) -> CopiedState:
    state, meta = found.image.state, found.meta
    return CopiedState(
        state.cluster_id,
        meta.index,
        meta.term,
        found.digest.hex(),
        meta.chain.hex(),
        meta.log_time_ms,
        state.recovery_number,
        None if state.history_cut is None else state.history_cut.last,
        size,
        sha256,
    )


def main(arguments: list[str]) -> int:
    """Copy as a program; prints a `CopiedState` as JSON."""
    state, copy, out = map(Path, arguments)
    sys.stdout.write(json.dumps(asdict(copy_state(state, copy, out))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
