"""How the members of each group committed, counted over columns: no payload is decoded here."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.coordinator.model.events import OffsetsCommitted
from holdfast.replay.analyse.analysis import Commits

_COMMITTED: Final = OffsetsCommitted.__name__
_PLACE: Final = ["group", "topic", "partition"]
_MERGED_AT: Final = 100_000
"""Partial sums are added up when there are so many more of them than there were partitions."""


class CommitTally:
    """Counts the commits of each partition, and when the first and the last were."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._parts: list[pa.Table] = []
        self._partial = 0
        self._merged = 0

    def take(self, batch: pa.RecordBatch) -> None:
        """Count the commits in a batch of rows."""
        chosen = batch.filter(pc.equal(batch.column("type"), _COMMITTED))
        if not chosen.num_rows:
            return
        several = chosen.column("offsets")
        whose, each = pc.list_parent_indices(several), pc.list_flatten(several)
        placed = pa.table(
            {
                "group": chosen.column("grp").take(whose),
                "topic": pc.struct_field(each, "topic"),
                "partition": pc.struct_field(each, "partition"),
                "at": chosen.column("log_time_ms").take(whose),
            }
        )
        found = placed.group_by(_PLACE, use_threads=False)
        told = found.aggregate([("at", "count"), ("at", "min"), ("at", "max")])
        self._add(told.rename_columns([*_PLACE, "n", "first", "last"]))

    def _add(self, told: pa.Table) -> None:
        plain = told.set_column(0, "group", pc.cast(told.column("group"), pa.string()))
        self._parts.append(plain)
        self._partial += told.num_rows
        if self._partial > self._merged + _MERGED_AT:
            self._merge()

    def _merge(self) -> None:
        whole = pa.concat_tables(self._parts).combine_chunks()
        found = whole.group_by(_PLACE, use_threads=False)
        told = found.aggregate([("n", "sum"), ("first", "min"), ("last", "max")])
        self._parts = [told.rename_columns([*_PLACE, "n", "first", "last"])]
        self._merged = told.num_rows
        self._partial = 0

    def rows(self, last_ms: int) -> list[Commits]:
        """Tell of each group, the longest silence first; of equal ones by name."""
        if not self._parts:
            return []
        self._merge()
        told = self._parts[0]
        longest = pc.subtract(told.column("last"), told.column("first"))
        found = told.append_column("longest", longest).group_by("group", use_threads=False)
        groups = found.aggregate(
            [("n", "count"), ("n", "sum"), ("longest", "sum"), ("last", "min")]
        )
        silent = self._silent()
        rows = [_commits(row, silent[row["group"]], last_ms) for row in groups.to_pylist()]
        return sorted(rows, key=place_of_commits)

    def _silent(self) -> dict[str, str]:
        """Return the partition of each group whose last commit is the oldest."""
        order = [(name, "ascending") for name in ("group", "last", "topic", "partition")]
        ordered = self._parts[0].sort_by(order)
        found: dict[str, str] = {}
        columns = (ordered.column(name).to_pylist() for name in _PLACE)
        for group, topic, partition in zip(*columns, strict=True):
            found.setdefault(group, f"{topic}/{partition}")
        return found


def place_of_commits(row: Commits) -> tuple[int, str]:
    """Return what commits are listed by."""
    return -row.silent_ms, row.group


def _commits(row: dict[str, int], silent: str, last_ms: int) -> Commits:
    turns = row["n_sum"] - row["n_count"]
    return Commits(
        group=str(row["group"]),
        partitions=row["n_count"],
        commits=row["n_sum"],
        every_ms=row["longest_sum"] // turns if turns else None,
        silent=silent,
        silent_ms=last_ms - row["last_min"],
    )
