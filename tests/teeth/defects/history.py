"""Defects of what seals history, and of what deletes it.

What ends a segment; what may go, when, and what has to be there before it goes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from holdfast.coordinator.cluster import retention
from holdfast.runtime.background import unsealed
from holdfast.runtime.background.history_retention import HistoryRetention
from holdfast.runtime.event_log.seal import Sealing
from holdfast.storage.codec.event_codec import told_boundary
from holdfast.storage.disk.files import remove_tree
from holdfast.storage.segments import checkpoint, cut, seal
from holdfast.storage.segments.fold import fold
from holdfast.storage.segments.segments import segments_in
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.coordinator.model.ids import Position
    from holdfast.coordinator.model.state import State
    from holdfast.storage.segments.checkpoint import Checkpoint
    from holdfast.storage.segments.seal import EventLog
    from holdfast.storage.segments.segments import Row

SEAL = "tests/unit/storage/segments/test_seal.py::test_s22_"
NODE = "tests/unit/runtime/event_log/test_seal.py::"
UNSEALED = "tests/unit/runtime/background/test_unsealed.py::test_s24_"
RULES = "tests/unit/coordinator/cluster/test_retention.py::test_s24_"
LEADER = "tests/unit/runtime/background/test_history_retention.py::test_s24_"
POWER = "tests/storage/test_cut_power.py::test_s24_"


@seeded("S22", Simulated(("segments",), "boundaries"))
def boundaries_of_one_turn_made_one_segment() -> Iterator[None]:
    """A node that finds two boundaries makes one segment of them; the others have two."""

    def last_alone(_log: EventLog, _done: Position, last: Position) -> list[Position]:
        return [last]

    with replaced(seal, "_boundaries", last_alone):
        yield


@seeded("S22", Scenario(f"{SEAL}segments_are_the_same_however_many_boundaries_a_node_finds"))
def segment_ends_where_its_boundary_is_told() -> Iterator[None]:
    """A node ends a segment at the record that tells a boundary, where it finds one on its way."""

    def at_its_record(log: EventLog, done: Position, last: Position) -> list[Position]:
        rows = seal.rows_through(log, last, done)
        return [*(row.position for row in rows if told_boundary(row.content)), last]

    with replaced(seal, "_boundaries", at_its_record):
        yield


@seeded("S22", Scenario(f"{NODE}test_a_disk_that_refuses_keeps_the_records_where_they_are"))
def records_dropped_though_the_child_failed() -> Iterator[None]:
    """Records go from LMDB though the child that was to seal them failed, and are nowhere then."""
    seal_and_drop = Sealing._seal

    async def anyway(self: Sealing, last: Position) -> None:
        generation = self._store.generation
        try:
            await seal_and_drop(self, last)
        except OSError:
            self._drop(last, generation)
            raise

    with replaced(Sealing, "_seal", anyway):
        yield


@seeded(
    "S24", Scenario(f"{UNSEALED}a_cut_of_the_history_is_nothing_to_seal_however_many_there_are")
)
def cut_of_the_history_sealed() -> Iterator[None]:
    """The record of a cut is something to seal: a log that only cuts itself off never rests."""

    class Nothing:
        """No record tells of it."""

    with replaced(unsealed, "HistoryCut", Nothing):
        yield


@seeded(
    "S24",
    Scenario(f"{RULES}nothing_is_cut_off_that_is_in_no_verified_backup_if_one_is_required"),
)
def cut_past_the_verified_backup() -> Iterator[None]:
    """A backup is required, and what lies behind the last verified one is deleted all the same."""

    def allowed(state: State) -> Position:
        return state.sealed

    with replaced(retention, "last_allowed", allowed):
        yield


@seeded("S24", Scenario(f"{LEADER}what_is_not_due_is_not_prepared"))
def cut_by_the_local_clock() -> Iterator[None]:
    """The leader's own clock tells the age of a record, and one that is wrong deletes history."""

    async def look(self: HistoryRetention) -> None:
        parts = await self._cuts.sealed()
        last = retention.due(self._replica.state, parts, time.time_ns() // 1_000_000)
        if last is not None:
            self._actors.submit(await self._cuts.prepare(last))

    with replaced(HistoryRetention, "look", look):
        yield


@seeded("S24", Scenario(f"{POWER}a_node_whose_records_lead_elsewhere_keeps_them_all"))
def digest_on_the_log_ignored() -> Iterator[None]:
    """A node deletes its records although they lead elsewhere than those of the leader."""

    def make(
        segments: Path, last: Position, _digest: bytes | None, _behind: Iterator[Row]
    ) -> Checkpoint:
        made = _folded(segments, last)
        checkpoint.write_checkpoint(segments, made)
        return made

    with replaced(cut, "make_checkpoint", make):
        yield


def _folded(segments: Path, last: Position) -> Checkpoint:
    base, _ = checkpoint.newest_sound(checkpoint.checkpoints_in(segments), last)
    return fold(base, cut._between(segments, base.last, last), last)


@seeded("S24", Scenario(f"{POWER}a_checkpoint_with_another_digest_is_not_taken_over_from_a_peer"))
def peers_checkpoint_taken_unread() -> Iterator[None]:
    """A checkpoint that a peer sent stands for deleted records, whatever is in it."""

    def publish(beginning: Path, path: Path, _digest: bytes) -> Path:
        return beginning.replace(path)

    with replaced(cut, "publish_checkpoint", publish):
        yield


@seeded(
    "S24",
    Scenario(f"{POWER}the_power_may_fail_at_each_step_of_a_cut_and_again_in_the_next_attempt"),
)
def checkpoint_not_synced() -> Iterator[None]:
    """Segments go while the checkpoint that stands for them is in the kernel's memory only."""
    with replaced(checkpoint, "sync_path", _nothing):
        yield


@seeded(
    "S24",
    Scenario(f"{POWER}the_power_may_fail_at_each_step_of_a_cut_and_again_in_the_next_attempt"),
)
def segments_gone_before_the_checkpoint() -> Iterator[None]:
    """The segments are deleted first, and the checkpoint is made of what is in memory."""
    make = cut.make_checkpoint

    def too_early(
        segments: Path, last: Position, digest: bytes | None, behind: Iterator[Row]
    ) -> Checkpoint:
        base, _ = checkpoint.newest_sound(checkpoint.checkpoints_in(segments), last)
        if base.last == last:
            return make(segments, last, digest, behind)
        made = _folded(segments, last)
        for path in cut._between(segments, base.last, last):
            remove_tree(path)
        checkpoint.write_checkpoint(segments, made)
        return made

    with replaced(cut, "make_checkpoint", too_early):
        yield


@seeded(
    "S24",
    Scenario(f"{POWER}the_power_may_fail_at_each_step_of_a_cut_and_again_in_the_next_attempt"),
)
def newest_segment_deleted_first() -> Iterator[None]:
    """A cut that breaks off leaves a hole in the middle of the history instead of a shorter one."""

    def newest_first(folder: Path) -> list[Path]:
        return segments_in(folder)[::-1]

    remove = cut.remove_cut

    def backwards(segments: Path, last: Position) -> int:
        with replaced(cut, "segments_in", newest_first):
            return remove(segments, last)

    with replaced(cut, "remove_cut", backwards):
        yield


def _nothing(*_: Any) -> None:  # noqa: ANN401 - in the place of any function
    pass
