"""S21: an LMDB file whose records are all sound and whose pages are not is written anew.

What LMDB says of its pages only a write uses. Where that alone is damaged nothing is lost yet, so a
node goes on with a copy of its records, and keeps its vote. Otherwise a mistake of the look at the
pages, which knows LMDB's layout from outside, could take their votes from all nodes at once. Knows
LMDB's files, no record in them. The directory is locked, and nobody else has the file open.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from holdfast.storage.disk.environment import (
    DATA_FILE,
    new_environment,
    open_databases,
    open_environment,
    reading,
    walk,
)
from holdfast.storage.disk.files import remove_tree, rename_durably, sync_path
from holdfast.storage.journal.commit_mark import MARK_FILE

if TYPE_CHECKING:
    from pathlib import Path

    import lmdb

BEGUN: Final = ".anew"
"""Added to an environment's name: a copy that is not finished."""
_SPOILED: Final = f"{DATA_FILE}.damaged-"
_RECORDS_AT_ONCE: Final = 10_000
"""So many records are one transaction of the copy: it bounds the memory that LMDB takes for it."""


def write_anew(environment: Path) -> Path:
    """Put a copy of an environment's records in the place of its file; return where that is kept.

    After a crash the old file or the new one is there, whole. Raises OSError and `lmdb.Error`.
    """
    beginning = environment.with_name(environment.name + BEGUN)
    remove_tree(beginning)
    _copy(environment, beginning)
    kept = _next(environment)
    os.link(environment / DATA_FILE, kept)
    # The copy counts its transactions from the beginning, and so would look rolled back.
    (environment / MARK_FILE).unlink(missing_ok=True)
    sync_path(environment)
    rename_durably(beginning / DATA_FILE, environment / DATA_FILE)
    remove_tree(beginning)
    return kept


def _copy(source: Path, target: Path) -> None:
    with open_environment(source, readonly=True) as old:
        with reading(old) as txn:
            names = [bytes(key).decode() for key in txn.cursor().iternext(values=False)]
        with new_environment(target, names, sync=False) as new:
            for name in names:
                _copy_database(old, new, name)
            new.sync(force=True)
    sync_path(target)


def _copy_database(old: lmdb.Environment, new: lmdb.Environment, name: str) -> None:
    """Copy the records in the order of their keys, a bounded number in each transaction."""
    source, target = open_databases(old, [name])[name], open_databases(new, [name])[name]
    with reading(old) as txn:
        writing = new.begin(write=True)
        for number, (key, value) in enumerate(walk(txn, source), 1):
            writing.put(key, value, db=target, append=True)
            if number % _RECORDS_AT_ONCE == 0:
                writing.commit()
                writing = new.begin(write=True)
        writing.commit()


def _next(environment: Path) -> Path:
    """Return a name for the file as it was, which is never deleted."""
    taken = (path.name.removeprefix(_SPOILED) for path in environment.glob(f"{_SPOILED}*"))
    number = 1 + max((int(each) for each in taken if each.isdecimal()), default=0)
    return environment / f"{_SPOILED}{number}"
