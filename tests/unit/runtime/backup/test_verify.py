"""A backup of a history that was cut off is verified, and restored, with its checkpoint (S24)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest

from harness.plain_child import run_plain_child
from holdfast.coordinator.model.events import HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.structures.pmap import PMap
from holdfast.runtime.backup import restore as restoring
from holdfast.runtime.backup import seed
from holdfast.runtime.backup.folder import RESTORED, sum_file
from holdfast.runtime.backup.manifest import (
    CHECKPOINT_PREFIX,
    FORMAT_VERSION,
    BackupFlawed,
    BackupManifest,
    StoredFile,
)
from holdfast.runtime.backup.recovery_numbers import Wanted
from holdfast.runtime.backup.restore import restore
from holdfast.runtime.backup.source import (
    BackupCopy,
    BackupPlace,
    BackupSource,
    BadOffset,
    CopyGone,
    HistoryMoved,
    Piece,
)
from holdfast.runtime.backup.verify import verify_backup
from holdfast.runtime.event_log.history import History
from holdfast.runtime.event_log.tail import Tail
from holdfast.runtime.replica.image import Image, image_changes
from holdfast.storage.directory.data_directory import UNFINISHED
from holdfast.storage.directory.recovery_mark import read_mark
from holdfast.storage.segments.checkpoint import checkpoint_name, checkpoints_in
from holdfast.storage.segments.cut import make_checkpoint, remove_cut
from holdfast.storage.segments.segments import read_manifest, segments_in
from holdfast.storage.state.rules import StateMeta
from holdfast.storage.state.state_store import EventRecord, StateStore
from unit.storage.segments.sealed_history import History as Sealed
from unit.storage.segments.sealed_history import history


@pytest.fixture(autouse=True)
def plain_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.backup.source.run_child", run_plain_child)


class Node:
    """A node whose history is cut off at its second boundary, on the log and on the disk."""

    def __init__(self, path: Path) -> None:
        self.disk: Sealed = history(path)
        last = self.disk.boundaries[1]
        self.cut = HistoryCut(last, 5, self.disk.digest_at(last))
        StateStore.create(path / "live")
        self.store = StateStore(path / "live", map_bytes=64 << 20)
        log = self.disk.log
        state = log.state._replace(
            raised_to=2, history_cut=self.cut, sealed=self.disk.boundaries[-1]
        )
        events = [
            EventRecord(*row.position, row.content)
            for row in self.disk.rows_behind(self.disk.boundaries[-1])
        ]
        self.store.write_snapshot(
            image_changes(Image(), Image(state, PMap(log.heads))),
            events,
            StateMeta(log.index, 1, log.now_ms, log.heads[""]),
        )
        place = BackupPlace(path / "live", self.disk.segments, path / "copy", 0)
        tail = Tail()
        tail.begin_at(log.index)
        past = History(tail, self.store, self.disk.segments, lambda: log.index, lambda: self.cut)
        self.copies = BackupSource(
            place, self._nothing, self.store.release_dead_readers, past, cut=lambda: self.cut
        )

    async def _nothing(self) -> None:
        """The state is durable already."""

    def carry_out(self) -> None:
        make_checkpoint(self.disk.segments, self.cut.last, self.cut.digest, iter(()))
        remove_cut(self.disk.segments, self.cut.last)

    async def begin(self) -> BackupCopy:
        return await self.copies.begin("")

    async def content(self, copy: BackupCopy, file: str) -> bytes:
        return b"".join([c async for c in self.copies.read(Piece(copy.copy_id, "", file, 0))])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "n1")


class Taken(NamedTuple):
    """A backup."""

    folder: Path
    manifest: BackupManifest


def taken(node: Node, folder: Path) -> Taken:
    """Take a backup as `holdfast backup create` does."""
    folder.mkdir()

    async def story() -> BackupCopy:
        copy = await node.begin()
        (folder / "state-x").write_bytes(await node.content(copy, ""))
        assert copy.checkpoint is not None
        name, size = copy.checkpoint
        path = folder / f"{CHECKPOINT_PREFIX}{name}"
        path.write_bytes(await node.content(copy, name))
        assert path.stat().st_size == size
        return copy

    copy = asyncio.run(story())
    for segment in copy.segments:
        copytree(node.disk.segments / segment.name, folder / "segments-0" / segment.name)
    state = copy.state
    assert copy.first is not None
    assert copy.checkpoint is not None
    return Taken(
        folder,
        BackupManifest(
            *(FORMAT_VERSION, state.cluster_id, "n1", "1", state.index, state.term, state.digest),
            *(state.chain, state.log_time_ms, 4, state.recovery_number),
            (copy.first.index, copy.first.ordinal),
            stored(folder, "state-x"),
            tuple(f"segments-0/{segment.name}" for segment in copy.segments),
            tuple(
                stored(folder, f"segments-0/{segment.name}/{name}")
                for segment in copy.segments
                for name, _ in segment.files
            ),
            stored(folder, f"{CHECKPOINT_PREFIX}{copy.checkpoint[0]}"),
        ),
    )


def stored(folder: Path, name: str) -> StoredFile:
    return StoredFile(name, *sum_file(folder / name))


def test_s24_a_backup_of_a_cut_history_is_verified_from_its_checkpoint(
    node: Node, tmp_path: Path
) -> None:
    node.carry_out()

    found = verify_backup(*taken(node, tmp_path / "backup"))

    assert found.flaws == ()
    assert found.whole
    assert found.cut == node.cut.last
    assert found.records == len(node.disk.rows_behind(node.cut.last))


def test_s24_a_backup_without_its_checkpoint_or_with_another_is_not_as_it_was_written(
    node: Node, tmp_path: Path
) -> None:
    node.carry_out()
    folder, manifest = taken(node, tmp_path / "backup")

    flaws = verify_backup(folder, replace(manifest, checkpoint=None)).flaws
    assert "the checkpoint of the cut history is missing" in flaws

    other = Node(tmp_path / "n2")
    last = other.disk.boundaries[0]
    made = make_checkpoint(other.disk.segments, last, other.disk.digest_at(last), iter(()))
    name = f"{CHECKPOINT_PREFIX}{checkpoint_name(made.last)}"
    (folder / name).write_bytes(checkpoints_in(other.disk.segments)[0][1].read_bytes())
    flaws = verify_backup(folder, replace(manifest, checkpoint=stored(folder, name))).flaws
    assert any("and the state tells" in flaw for flaw in flaws)


def test_s24_a_restored_node_has_the_checkpoint_and_what_lies_behind_it(
    node: Node, tmp_path: Path
) -> None:
    node.carry_out()
    folder, manifest = taken(node, tmp_path / "backup")

    restore(folder, manifest, {"a": tmp_path / "a", "b": tmp_path / "b"}, Wanted(1))

    for name in ("a", "b"):
        segments = tmp_path / name / "segments"
        assert [place for place, _ in checkpoints_in(segments)] == [node.cut.last]
        firsts = [Position(*read_manifest(path).first) for path in segments_in(segments)]
        assert min(firsts) > node.cut.last


def test_a_log_time_that_the_state_does_not_tell_is_a_flaw(node: Node, tmp_path: Path) -> None:
    node.carry_out()
    folder, manifest = taken(node, tmp_path / "backup")
    told = verify_backup(folder, replace(manifest, log_time_ms=manifest.log_time_ms + 1)).flaws
    assert any("its log time in ms is" in flaw for flaw in told)


def test_no_file_is_read_from_behind_its_end(node: Node) -> None:
    """An offset that no file has is wrong usage, and leaves no file open."""
    node.carry_out()

    async def story() -> None:
        copy = await node.begin()
        for offset in (1 << 20, (1 << 63) - 1, (1 << 64) - 1):
            with pytest.raises(BadOffset, match=f"it is {offset}"):
                await anext(node.copies.read(Piece(copy.copy_id, "", "", offset)))

    asyncio.run(story())


def test_s13_a_restore_makes_nothing_until_its_number_is_said(node: Node, tmp_path: Path) -> None:
    """Monday's backup after Tuesday's: neither knows of the other's restore (ADR 45)."""
    node.carry_out()
    tuesday, manifest = taken(node, tmp_path / "tuesday")
    monday = copytree(tuesday, tmp_path / "monday")
    assert restore(tuesday, manifest, {"a": tmp_path / "a"}, Wanted(1)).recovery_number == 1

    with pytest.raises(BackupFlawed, match=r"has 0, and was never restored.*--recovery-number 1"):
        restore(monday, manifest, {"a": tmp_path / "b"}, Wanted())
    with pytest.raises(BackupFlawed, match=r"restored from there as 1.*--recovery-number 2"):
        restore(tuesday, manifest, {"a": tmp_path / "b"}, Wanted())
    with pytest.raises(BackupFlawed, match="used before"):
        restore(tuesday, manifest, {"a": tmp_path / "b"}, Wanted(1))
    assert not (tmp_path / "b").exists()

    token = (1 << 48) + 362
    done = restore(monday, manifest, {"a": tmp_path / "b"}, Wanted(above_token=token))
    assert (done.recovery_number, done.noted) == (2, True)
    assert read_mark(tmp_path / "b").number == 2


def test_s13_a_restore_that_broke_off_is_repeated_with_the_same_number(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could start with it; noted is it before anything can."""
    node.carry_out()
    folder, manifest = taken(node, tmp_path / "backup")
    target = {"a": tmp_path / "a"}
    with monkeypatch.context() as broken:
        broken.setattr(seed, "_copy_segment", _breaks)
        with pytest.raises(OSError, match="no space"):
            restore(folder, manifest, target, Wanted(1))
    assert not (folder / RESTORED).exists()
    begun: list[bool] = []
    noting = restoring._note

    def note(at: Path, number: int) -> bool:
        begun.append((tmp_path / "a" / UNFINISHED).exists())
        return noting(at, number)

    monkeypatch.setattr(restoring, "_note", note)
    assert restore(folder, manifest, target, Wanted(1)).noted
    assert begun == [True], "noted before a node could start"
    assert (folder / RESTORED).read_text() == "1\n"


def _breaks(*_: object, **__: object) -> None:
    raise OSError(28, "no space")


def test_s24_a_backup_waits_until_the_node_has_made_its_checkpoint(node: Node) -> None:
    """State and segments have to fit together: the state tells a cut that has no file yet."""
    with pytest.raises(HistoryMoved, match="again in some seconds"):
        asyncio.run(node.begin())


def test_s24_a_backup_whose_history_is_cut_off_meanwhile_begins_anew(
    node: Node, tmp_path: Path
) -> None:
    """Not with the same copy: that would name files that are gone for as long as it is kept."""
    node.carry_out()

    async def story() -> None:
        copy = await node.begin()
        assert copy.checkpoint is not None
        (node.disk.segments / copy.checkpoint[0]).rename(tmp_path / "later")
        with pytest.raises(CopyGone, match="begin the backup anew"):
            await node.content(copy, copy.checkpoint[0])
        (tmp_path / "later").rename(node.disk.segments / copy.checkpoint[0])
        again = await node.copies.begin(copy.copy_id)
        assert again.copy_id != copy.copy_id

    asyncio.run(story())
