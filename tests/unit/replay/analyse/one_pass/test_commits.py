"""How the members of groups committed: known answers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from holdfast.replay.analyse.analysis import Commits
from holdfast.replay.analyse.one_pass import commits
from holdfast.replay.analyse.one_pass.commits import CommitTally
from holdfast.storage.segments.columns import SCHEMA

Committed = tuple[str, str, int, list[tuple[str, int, int]] | None]
COLUMNS = ["grp", "type", "log_time_ms", "offsets"]
COMMITTED: list[Committed] = [
    ("g", "OffsetsCommitted", 0, [("t", 0, 1)]),
    ("g", "OffsetsCommitted", 100, [("t", 0, 2), ("t", 1, 7)]),
    ("g", "MemberJoined", 300, None),
    ("g", "OffsetsDeleted", 300, [("t", 1, 7)]),
    ("g", "OffsetsCommitted", 400, [("t", 0, 3)]),
    ("h", "OffsetsCommitted", 990, [("t", 0, 3)]),
]


def batch(rows: list[Committed]) -> pa.RecordBatch:
    """Make rows as they are read from a segment: groups and types as numbers of their names."""
    names = ("topic", "partition", "offset")
    offsets = [[dict(zip(names, each, strict=True)) for each in told or ()] for *_, told in rows]
    columns = [*list(zip(*rows, strict=True))[:3], offsets]
    arrays = [pa.array(c, SCHEMA.field(n).type) for n, c in zip(COLUMNS, columns, strict=True)]
    arrays[:2] = [array.dictionary_encode() for array in arrays[:2]]
    return pa.RecordBatch.from_arrays(arrays, names=COLUMNS)


@pytest.mark.parametrize("rows_each", [1, 2, 6])
@pytest.mark.parametrize("merged_at", [0, 100_000])
def test_commits_are_told_by_the_time_between_them(
    rows_each: int, merged_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """t/0 at 0, 100 and 400; t/1 at 100 alone: two steps of 200 ms on average, 900 ms silence.

    However the rows are cut into batches, and whenever their sums are added up.
    """
    monkeypatch.setattr(commits, "_MERGED_AT", merged_at)
    tally = CommitTally()
    for at in range(0, len(COMMITTED), rows_each):
        tally.take(batch(COMMITTED[at : at + rows_each]))

    assert tally.rows(1_000) == [
        Commits("g", 2, 4, 200, "t/1", 900),
        Commits("h", 1, 1, None, "t/0", 10),
    ]


def test_of_partitions_that_are_silent_as_long_the_first_is_named() -> None:
    tally = CommitTally()
    tally.take(batch([("g", "OffsetsCommitted", 5, [("u", 0, 1), ("t", 10, 1), ("t", 9, 1)])]))

    assert tally.rows(7) == [Commits("g", 3, 3, None, "t/9", 2)]
