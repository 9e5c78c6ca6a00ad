"""Rows of a batch as one run for each group, and how far the chains of groups were followed.

Rows of a sound file are by group, and in order within each, so that most checks of a record become
one check of a run. Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash

Place: TypeAlias = tuple[int, int]
"""Index and ordinal."""


class Run(NamedTuple):
    """The rows of a group in a batch, in order."""

    group_id: str
    first: int
    """The number of its first row."""
    end: int
    """The number behind that of its last row."""
    begins: Place
    """Of its first record."""
    last: Place
    """Of its last record."""
    payloads: list[bytes]
    chains: list[bytes]


def runs_of(batch: pa.RecordBatch) -> list[Run] | None:
    """Return the runs of all groups, without the cluster's own records, which are of none.

    None: the records of a group are not in order, or not together.
    """
    groups = batch.column("grp")
    indexes, ordinals = (batch.column(name).to_numpy() for name in ("idx", "ordinal"))
    starts = _starts(groups)
    names = groups.take(pa.array(starts)).to_pylist()
    later = indexes[1:] > indexes[:-1]
    later |= (indexes[1:] == indexes[:-1]) & (ordinals[1:] > ordinals[:-1])
    later[starts[1:] - 1] = True
    if len(set(names)) < len(names) or not later.all():
        return None
    places = list(zip(indexes.tolist(), ordinals.tolist(), strict=True))
    payloads, chains = (batch.column(name).to_pylist() for name in ("payload", "chain"))
    return [
        Run(name, a, b, places[a], places[b - 1], payloads[a:b], chains[a:b])
        for name, (a, b) in zip(names, pairwise([*starts.tolist(), len(groups)]), strict=True)
        if name
    ]


def _starts(groups: pa.Array) -> Any:  # noqa: ANN401 - an array of numpy
    """Return the numbers of the rows whose group is not that of the row before."""
    changes = pc.not_equal(groups.slice(1), groups.slice(0, len(groups) - 1))
    return np.concatenate([[0], np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1])


@dataclass(slots=True)
class Chains:
    """How far the records of each group were read. `begins`: where the log begins."""

    begins: Place
    heads: dict[str, bytes]
    """The heads of the groups' chains."""
    last: dict[str, Place] = field(default_factory=dict)
    """The last record of each group, as far as there was one."""

    def follows(self, run: Run) -> bool:
        """Return whether a run goes on where its group stands, and each record by the chain."""
        if self.has(run.group_id, run.begins):
            return False
        head = self.heads.get(run.group_id, CHAIN_START)
        for payload, chain in zip(run.payloads, run.chains, strict=True):
            head = chain_hash(head, payload)
            if head != chain:
                return False
        return True

    def pass_run(self, run: Run) -> None:
        """Take in a run that follows."""
        self.last[run.group_id], self.heads[run.group_id] = run.last, run.chains[-1]

    def has(self, group_id: str, place: Place) -> bool:
        """Return whether a record of a group was taken in, or one behind it."""
        return place <= self.last.get(group_id, self.begins)

    def step(self, group_id: str, place: Place, payload: bytes, chain: bytes) -> bool:
        """Take in one record; return whether it follows by the chain."""
        head = self.heads.get(group_id, CHAIN_START)
        self.last[group_id], self.heads[group_id] = place, chain
        return chain_hash(head, payload) == chain
