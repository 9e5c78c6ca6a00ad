"""Anchors: what a node would have told of its log at moments of a made-up history.

The state is the one that the leader decided on when it was at that index, so whatever computes a
state from the files can be compared with it there. Knows the leader and a text file.
"""

from __future__ import annotations

import json
from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.replay.generate.world import CLUSTER_ID
from holdfast.replay.read.anchor_files import FORMAT
from holdfast.storage.codec.state_image import Digest

if TYPE_CHECKING:
    from typing import Self, TextIO

    from holdfast.replay.generate.leader import Leader
    from holdfast.replay.generate.plan import Plan

NODE: Final = "node-1"
"""Who would have told it."""


class Told(NamedTuple):
    """What the log has come to, behind an entry."""

    records: int
    last_index: int
    """Of the last entry."""
    log_time_ms: int
    """Of the state (S8)."""
    chain_head: bytes
    """Of the chain over all records (S3)."""
    state_digest: int
    """Of the state after the last entry (S3)."""

    @classmethod
    def by(cls, leader: Leader, digest: int) -> Self:
        """Return what a leader tells now. `digest`: of its state."""
        state = leader.state
        place = leader.count, state.applied_index, state.log_time_ms
        return cls(*place, leader.whole, digest)

    def anchor(self) -> dict[str, object]:
        """Return it in the form of `holdfast log anchor`, with the number of records."""
        return {
            "format": FORMAT,
            "cluster_id": CLUSTER_ID,
            "node": NODE,
            "index": self.last_index,
            "log_time_ms": self.log_time_ms,
            "chain": self.chain_head.hex(),
            "digest": f"{self.state_digest:016x}",
            "recovery_number": 0,
            "records": self.records,
        }


class Anchors:
    """Writes a line at places that are chosen at random, each behind an entry."""

    def __init__(self, plan: Plan, leader: Leader, file: TextIO | None) -> None:
        """Choose the places by the plan's seed; the history's own chance is left alone.

        `file`: takes the lines; None: nobody wants them.
        """
        self._leader, self._file = leader, file
        chance = Random(f"anchors {plan.seed}")  # noqa: S311 - to be made again by its seed
        counts = range(1, plan.events + 1)
        chosen = chance.sample(counts, min(plan.anchors, plan.events))
        self._due = deque(sorted(chosen))
        self._digest = Digest()

    def entry_is_there(self) -> None:
        """Write an anchor if one is due, and one alone for an entry that has several places."""
        if self._file is None or not self._due or self._leader.count < self._due[0]:
            return
        while self._due and self._due[0] <= self._leader.count:
            self._due.popleft()
        told = Told.by(self._leader, self._digest.advance(self._leader.state))
        self._file.write(json.dumps(told.anchor()) + "\n")
