"""Defects of what is on disk: the journal's, the state's, and what a start makes of them."""

# ruff: noqa: ANN401 (a patch passes on whatever the function in whose place it stands takes)

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.raft.pysyncobj.journal_adapter import EngineJournal
from holdfast.runtime.replica import image, snapshots
from holdfast.runtime.replica.snapshots import StateSnapshots
from holdfast.storage.codec.state_image import changes
from holdfast.storage.disk import records
from holdfast.storage.disk.environment import open_environment
from holdfast.storage.journal import lmdb_image, lmdb_journal, tail_file, tail_recovery
from holdfast.storage.journal.journal import Entry, HardState
from holdfast.storage.journal.tail_file import pack_batch
from holdfast.storage.journal.tail_files import TailFile, TailFiles
from holdfast.storage.journal.tail_recovery import Checkpoint, Recovered
from holdfast.storage.journal.tailed_journal import TailedJournal
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import StateStore
from simulation.disk import SyncedJournal
from teeth.catalogue import Scenario, Simulated, seeded
from teeth.patching import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.storage.journal.journal import JournalBatch
    from holdfast.storage.journal.net_effect import NetEffect

OFFSET = b"o"
"""Begins the keys of offsets in a state's directory."""


@seeded(
    "D5",
    Scenario(
        "tests/storage/test_journals.py::test_both_environments_sync_data_and_meta_page_at_each_commit"
    ),
)
def journal_without_sync() -> Iterator[None]:
    """A commit returns when the kernel has it, and the power may still fail."""
    unsynced = partial(open_environment, sync=False)
    with replaced(lmdb_journal, "open_environment", unsynced):
        yield


CUT = "tests/storage/test_tail_power_cut.py::test_s"
"""Begins the names of the tests that take the power away under the journal's tail."""


@seeded("S18", Scenario(f"{CUT}18_whatever_the_power_leaves_each_acknowledged_batch_is_there"))
def answer_before_the_tail_is_synced() -> Iterator[None]:
    """A batch is written to the tail and answered for: its sync is left to the kernel."""

    def append(self: TailFile, sequence: int, pieces: Sequence[bytes]) -> None:
        packed = pack_batch(self._mark, sequence, pieces)
        self._file.write(self._at, packed)
        self._at += len(packed)

    with replaced(TailFile, "append", append):
        yield


@seeded("S18", Scenario(f"{CUT}18_what_a_start_has_read_outlives_a_power_cut"))
def unsynced_tail_believed() -> Iterator[None]:
    """A start believes what it reads in the tail, and goes on behind it, but syncs nothing."""

    def go_on(self: TailedJournal, _checkpoint: Checkpoint, recovered: Recovered) -> int:
        serial = recovered.used + 1
        if serial > recovered.newest:
            self._tail.prepare(serial).close()
        return serial

    def keep_all(_self: TailFiles, _first: int, _last: int) -> None:
        pass

    with (
        replaced(TailedJournal, "_end_used", go_on),
        replaced(TailFiles, "keep_only", keep_all),
    ):
        yield


@seeded("S18", Scenario(f"{CUT}18_whatever_the_power_leaves_each_acknowledged_batch_is_there"))
def file_used_again_before_its_checkpoint() -> Iterator[None]:
    """A full file is made ready for the next batches before the environment has what it holds."""

    def write_behind(self: TailedJournal, full: TailFile, net: NetEffect, sequence: int) -> Any:
        full.close()
        file = self._tail.use_again(full, full.serial + 2)
        self._environment.checkpoint(net, Checkpoint(self._journal_id, sequence, full.serial))
        return file

    with replaced(TailedJournal, "_write_behind", write_behind):
        yield


@seeded("S21", Scenario(f"{CUT}21_a_flipped_bit_is_damage_or_harmless_or_in_the_last_batch"))
def tail_ends_at_the_first_broken_batch() -> Iterator[None]:
    """A batch that cannot be read ends the tail, whatever whole ones stand behind it."""
    read: Any = tail_file.read_file

    def end(content: bytes, mark: bytes) -> Any:
        return read(content, mark)._replace(stranded=None)

    with replaced(tail_recovery, "read_file", end):
        yield


@seeded("I2", Simulated(("I2", "I6", "I3", "alarm"), "crashes", seeds=6))
def commit_before_the_disk_has_it() -> Iterator[None]:
    """The disk acknowledges a batch that it has only in its cache: a death loses the last ten."""
    commit: Any = SyncedJournal.commit
    die: Any = SyncedJournal.die
    images: dict[int, list[Any]] = {}

    def note(self: SyncedJournal, batch: JournalBatch) -> None:
        kept = images.setdefault(id(self), [])
        kept.append(self.load())
        del kept[:-10]
        commit(self, batch)

    def forget(self: SyncedJournal, *, synced: bool) -> None:
        die(self, synced=synced)
        kept = images.pop(id(self), [])
        if kept and kept[0].identity == self.identity:
            self.restore(kept[0])

    with replaced(SyncedJournal, "commit", note), replaced(SyncedJournal, "die", forget):
        yield


@seeded("D5", Scenario("tests/raft/test_log.py::test_a_restart_finds_term_vote_and_entries"))
def forgotten_vote() -> Iterator[None]:
    """The term is stored, the vote is not: after a restart the node votes a second time in it."""

    def store(self: EngineJournal, term: int, voted_for: str | None) -> None:
        self._hard = HardState(term, voted_for)
        self.changes.note(hard_state=HardState(term, None))

    with replaced(EngineJournal, "setCurrentTerm", store):
        yield


@seeded("D5", Scenario("tests/raft/test_log.py::test_a_restart_finds_term_vote_and_entries"))
def forgotten_term() -> Iterator[None]:
    """A term that was learned is not stored: after a restart the node lives in an older one."""

    def store(self: EngineJournal, term: int, voted_for: str | None) -> None:
        self._hard = HardState(term, voted_for)

    with replaced(EngineJournal, "setCurrentTerm", store):
        yield


@seeded(
    "D1", Scenario("tests/raft/test_log.py::test_d1_a_committed_entry_is_never_cut_the_node_stops")
)
def cut_below_the_commit_index() -> Iterator[None]:
    """A fork is papered over: what is committed is cut, because a leader has something else."""
    with replaced(EngineJournal, "truncate_from", EngineJournal.truncate_unchecked):
        yield


@seeded("D4", Scenario("tests/raft/test_log.py::test_d4_a_cut_is_one_batch_that_rewrites_nothing"))
def cut_rewrites_the_journal() -> Iterator[None]:
    """A cut writes what is left anew, as the stock compaction does, and can be caught half way."""

    def cut(self: EngineJournal, index: int) -> None:
        position = index - self.anchor_index
        if position <= 0:
            return
        self._log = self._log[position:]
        self.changes.note(reset_to=self._log[0][1:])
        self.changes.entries = self._log[1:]

    with replaced(EngineJournal, "cut_to", cut):
        yield


@seeded(
    "D3", Scenario("tests/raft/test_snapshots.py::test_d1_a_snapshot_keeps_the_suffix_that_matches")
)
def install_clears_the_journal() -> Iterator[None]:
    """A snapshot that is installed clears the journal: acknowledged entries behind it are gone."""
    rebase: Any = EngineJournal.rebase

    def clear(self: EngineJournal, index: int, term: int) -> None:
        with replaced(EngineJournal, "term_at", lambda _self, _index: None):
            rebase(self, index, term)

    with replaced(EngineJournal, "rebase", clear):
        yield


@seeded(
    "S21",
    Scenario(
        "tests/storage/test_power_cut.py::test_every_flipped_byte_of_the_last_three_values_is_found"
    ),
)
def checksums_not_compared() -> Iterator[None]:
    """What is read from the disk is believed, whatever its checksum says."""

    def believed(index: int, stored: bytes) -> Entry:
        _, term = records._ENTRY_HEAD.unpack_from(stored)
        return Entry(index, term, stored[records._ENTRY_HEAD.size :])

    with replaced(lmdb_image, "unpack_entry", believed):
        yield


@seeded("S18", Scenario("tests/storage/test_state_install.py::test_an_older_snapshot_is_refused"))
def install_of_an_older_state() -> Iterator[None]:
    """A state is replaced by whatever arrives, older or not."""
    with replaced(StateStore, "meta", lambda _self: None):
        yield


@seeded("S18", Simulated(("I6", "I2", "alarm"), "crashes", seeds=6))
def snapshot_index_off_by_one() -> Iterator[None]:
    """A snapshot claims one entry more than it holds; a start goes on behind what it never had."""

    def one_more(index: int, *rest: Any) -> StateMeta:
        return StateMeta(index + 1, *rest)

    with replaced(snapshots, "StateMeta", one_more):
        yield


@seeded("S18", Simulated(("I6", "I7", "alarm"), "crashes", seeds=6))
def snapshot_without_offsets() -> Iterator[None]:
    """A snapshot lacks the offsets: what was committed is gone when the journal is cut."""

    def all_but_offsets(before: Any, after: Any) -> Any:
        return (each for each in changes(before, after) if each.key[:1] != OFFSET)

    with replaced(image, "changes", all_but_offsets):
        yield


@seeded("S18", Simulated(("I10",), "crashes", seeds=6))
def tail_forgotten_too_early() -> Iterator[None]:
    """Records leave memory when a snapshot begins, before they are in the store: a watch skips."""
    begun: Any = StateSnapshots.take

    def take(self: StateSnapshots, fold: Any, term: int) -> Any:
        future = begun(self, fold, term)
        self.tail.durable(fold.state.applied_index)
        return future

    with replaced(StateSnapshots, "take", take):
        yield
