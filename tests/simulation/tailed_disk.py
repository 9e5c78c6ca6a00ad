"""A machine's disk whose journal is the real one, tail and helper, over a model of its files.

The model journal runs beside it and decides, as in every simulation, whether the batch under way is
on the disk after a death. So a seed's run is the same over both, up to its digest, and each start
compares what the real journal found with the model.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from simulation.disk import SyncedJournal
from storage.tail_power import Machine, PowerCut, Started

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import JournalBatch, JournalImage
    from simulation.schedule import Schedule


class TailedJournal(SyncedJournal):
    """A journal whose batches go through the tail; a death tears the one that is being written."""

    starts = 0
    """How many starts compared the two, on all disks."""
    torn = 0
    """How many batches were torn, on all disks."""

    def __init__(self, schedule: Schedule, random: Random) -> None:
        super().__init__(schedule, random)
        self._machine = Machine(Random(0))
        self._process = Started(self._machine)

    def load(self) -> JournalImage:
        """Start the real journal on what the disk has."""
        expected = super().load()
        self._machine.cut_at = None
        self._process = Started(self._machine)
        found = self._process.journal.load()
        assert found == expected, "the tail is not what was acknowledged"
        TailedJournal.starts += 1
        return found

    def die(self, *, synced: bool) -> None:
        """End; the batch under way is torn if it is not on the model's disk."""
        batch, commits = self._under_way, self.commits
        super().die(synced=synced)
        if batch is not None and self.commits == commits:
            self._tear(batch)

    def _finish(self) -> None:
        batch = self._under_way
        super()._finish()
        if batch is not None:
            self._process.journal.commit(batch)
            if self._machine.random.random() < 0.3:
                self._process.helper.run()

    def _tear(self, batch: JournalBatch) -> None:
        self._machine.tears = True
        self._machine.cut_at = self._machine.steps + self._machine.random.randint(1, 2)
        try:
            self._process.journal.commit(batch)
        except PowerCut:
            TailedJournal.torn += 1
        self._machine.tears = False
