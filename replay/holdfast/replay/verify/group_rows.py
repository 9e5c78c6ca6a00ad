"""What a fold tells of each group, as rows: its part of the digest, and its keys and values.

A row for each key would cost more than the fold of the record behind it: each is made here, and
taken apart by Spark, which keeps all of them. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.replay.read.log_rows import BEGAN, GROUP, REST, Entry, ResultRow
from holdfast.storage.codec.state_image import DIGEST_SPAN, weight

ENTRIES_MAX: Final = 64
"""Most entries of a row, so that a batch of rows stays small, however large a group is."""


def group_rows(
    group_id: str, contents: Iterable[bytes], entries: Iterable[Entry]
) -> Iterator[ResultRow]:
    """Yield the rows of a group, or of what belongs to none: "". `contents`: its state records."""
    told = list(entries)
    added = sum(map(weight, contents)) % DIGEST_SPAN
    yield ResultRow(GROUP, group_id, idx=_signed(added), entries=told[:ENTRIES_MAX])
    for first in range(ENTRIES_MAX, len(told), ENTRIES_MAX):
        yield ResultRow(GROUP, group_id, entries=told[first : first + ENTRIES_MAX])


def rest_row(added: int) -> ResultRow:
    """Make the row of what a fold has not taken up of its bucket, though it adds to a digest."""
    return ResultRow(REST, idx=_signed(added % DIGEST_SPAN))


def began_row(added: int) -> ResultRow:
    """Make the row of what a task's part of the state added to the digest where the log begins."""
    return ResultRow(BEGAN, idx=_signed(added % DIGEST_SPAN))


def _signed(added: int) -> int:
    """Return 64 bits as a number that Spark has a type for."""
    return added - DIGEST_SPAN if added >= DIGEST_SPAN >> 1 else added
