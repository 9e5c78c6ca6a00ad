"""The copy that a backup is read from: one at a time, of one moment, and nothing beside it."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING

import pytest

from harness.core import Core
from harness.plain_child import run_plain_child
from harness.poll import until_async
from holdfast.coordinator.model.commands import FormCluster
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.backup import source as module
from holdfast.runtime.backup.source import (
    BUSY_SECONDS,
    BYTES_A_SECOND,
    BackupCopy,
    BackupPlace,
    BackupSource,
    CopyBusy,
    CopyGone,
    NothingToCopy,
    Piece,
)
from holdfast.runtime.backup.stored_state import stored_state
from holdfast.runtime.event_log.history import Page
from holdfast.storage.disk.files import remove_tree
from unit.runtime.replica.snapshot_nodes import Node

if TYPE_CHECKING:
    from pathlib import Path

NEVER_SEALED = Position(2, 0)
SLOW_S = 2.0
"""A copy that is removed slowly: until the next one is made, or for so long."""


class History:
    """A history that begins somewhere."""

    async def read(self, start: Position | None, limit: int) -> Page:
        del start, limit
        return Page([], NEVER_SEALED, end=True, first=NEVER_SEALED)


class Source:
    """A node's source of copies, with a clock that stands still unless told otherwise."""

    def __init__(self, path: Path, *, formed: bool = True, reserve: int = 0) -> None:
        self.node = Node(path / "n")
        if formed:
            core = Core()
            core.submit(FormCluster("c", ()))
            self.node.follow(core)
        else:
            self.node.evolve(1, 2)
        self.now = 0.0
        self.paused: list[float] = []
        self.place = BackupPlace(
            self.node.store.path, path / "n" / "segments", path / "n" / "state.copy-b", reserve
        )
        self.copies = BackupSource(
            self.place,
            self._make_durable,
            self.node.store.release_dead_readers,
            History(),
            lambda: self.now,
            self._pause,
        )

    async def _make_durable(self) -> None:
        self.node.take()

    async def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    async def read(self, copy: BackupCopy, offset: int = 0) -> bytes:
        piece = Piece(copy.copy_id, "", "", offset)
        return b"".join([chunk async for chunk in self.copies.read(piece)])


@pytest.fixture(autouse=True)
def plain_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.runtime.backup.source.run_child", run_plain_child)


def test_s3_the_copy_has_the_digest_of_the_node_that_it_is_of(tmp_path: Path) -> None:
    async def story() -> None:
        source = Source(tmp_path)
        copy = await source.copies.begin("")
        content = await source.read(copy)
        machine = source.node.machine

        assert copy.state.digest == machine.digest().hex()
        assert copy.state.index == machine.state.applied_index
        assert len(content) == copy.state.size
        found = stored_state([content])
        assert found.image.state == machine.state
        assert found.digest == machine.digest()

    asyncio.run(story())


def test_a_copy_is_of_one_moment_however_far_the_node_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        source = Source(tmp_path)
        copy = await source.copies.begin("")
        before = await source.read(copy)
        at = source.node.machine.state.applied_index
        source.node.evolve(at + 1, at + 5)
        source.node.take()

        assert await source.copies.begin(copy.copy_id) == copy
        assert await source.read(copy, 10) == before[10:]

    asyncio.run(story())


def test_a_transfer_keeps_to_its_pace(tmp_path: Path) -> None:
    """Callers come first: each chunk is followed by the pause that the pace asks for."""

    async def story() -> None:
        source = Source(tmp_path)
        content = await source.read(await source.copies.begin(""))
        assert sum(source.paused) == pytest.approx(len(content) / BYTES_A_SECOND)

    asyncio.run(story())


def test_a_second_backup_waits_until_the_first_is_idle(tmp_path: Path) -> None:
    async def story() -> None:
        source = Source(tmp_path)
        first = await source.copies.begin("")
        with pytest.raises(CopyBusy, match="another node"):
            await source.copies.begin("")
        source.now = BUSY_SECONDS + 1
        second = await source.copies.begin("")

        assert second.copy_id != first.copy_id
        with pytest.raises(CopyGone):
            await source.read(first)

    asyncio.run(story())


def test_an_ended_copy_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    async def story() -> None:
        source = Source(tmp_path)
        copy = await source.copies.begin("")
        assert source.place.copy.exists()
        await source.copies.end("another")
        assert source.place.copy.exists()
        await source.copies.end(copy.copy_id)
        assert not source.place.copy.exists()
        await source.copies.begin("")
        source.copies.forget()
        source.copies.remove()
        assert not source.place.copy.exists()

    asyncio.run(story())


def test_a_copy_that_is_dropped_slowly_does_not_take_the_next_one_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lie in one folder, and the file of a large copy takes a while to remove."""
    begun, made = Event(), Event()

    def remove(path: Path) -> None:
        if not begun.is_set():
            begun.set()
            made.wait(SLOW_S)
        remove_tree(path)

    async def story() -> None:
        source = Source(tmp_path)
        first = await source.copies.begin("")
        monkeypatch.setattr(module, "remove_tree", remove)
        ending = asyncio.create_task(source.copies.end(first.copy_id))
        await until_async(begun.is_set, "the first copy is being removed")
        second = await source.copies.begin("")
        made.set()
        await ending
        assert await source.read(second)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("segment", "file"),
    [("..", "lock"), ("../raft", "data.mdb"), ("00000000000000000001-00000000000000000002", "x")],
)
def test_only_files_that_were_told_are_served(tmp_path: Path, segment: str, file: str) -> None:
    async def story() -> None:
        source = Source(tmp_path)
        copy = await source.copies.begin("")
        with pytest.raises(CopyGone):
            async for _ in source.copies.read(Piece(copy.copy_id, segment, file, 0)):
                pass

    asyncio.run(story())


def test_what_cannot_be_copied_is_refused_and_may_be_tried_again(tmp_path: Path) -> None:
    """S20: a copy never takes the disk below its reserve; nor is there one of no cluster."""

    async def story() -> None:
        full = Source(tmp_path, reserve=1 << 60)
        with pytest.raises(CopyBusy, match="free space"):
            await full.copies.begin("")
        (tmp_path / "x").mkdir()
        with pytest.raises(NothingToCopy):
            await Source(tmp_path / "x", formed=False).copies.begin("")
        with pytest.raises(CopyBusy, match="free space"):
            await full.copies.begin("")

    asyncio.run(story())
