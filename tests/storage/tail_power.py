"""A disk under the journal's tail whose power can fail at every operation, as a model in memory.

What a disk promises and no more: a sector of 512 bytes is written whole or not at all; until its
sync returns, any of a write's sectors may be on the disk, in any order; a rename and a removal that
are synced happen whole or not at all; a transaction of the environment as well (LMDB's own writes
are cut one by one in test_power_cut.py). The helper has no thread here: its jobs run when the test
says so, or when the journal waits for them.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.storage.journal.journal import Entry, JournalBatch
from holdfast.storage.journal.memory_journal import MemoryDisk, MemoryJournal
from holdfast.storage.journal.tailed_journal import TailedJournal

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.storage.disk.folder import File
    from holdfast.storage.journal.journal import JournalImage
    from holdfast.storage.journal.net_effect import NetEffect
    from holdfast.storage.journal.tail_recovery import Checkpoint

SECTOR = 512
FILE_BYTES = 8 * SECTOR
"""So small that every history goes through many files."""


class PowerCut(BaseException):
    """The machine died in the middle of an operation. No code may go on after it."""


class Killed(BaseException):
    """The process died; the machine goes on, and has what was written."""


class Machine:
    """One node's disk: what is durable, what is only written, and when the power fails."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.durable: dict[str, bytearray] = {}
        self._unsynced: dict[str, list[tuple[int, bytes]]] = {}
        self.environment = MemoryDisk()
        self.checkpoint: Checkpoint | None = None
        self.mark = 0
        self.steps = 0
        self.cut_at: int | None = None
        self.kill_at: int | None = None
        self.tears = False
        """Whether each write that was not synced loses a sector."""
        self.last_batch = ("", 0, 0)
        """File, first byte and end of the batch that was written last."""

    def step(self) -> bool:
        """Begin an operation; true if the power fails within it."""
        self.steps += 1
        if self.steps == self.kill_at:
            raise Killed
        return self.steps == self.cut_at

    def die(self) -> None:
        """Keep of what was not synced some sectors, and of the mark any older value."""
        for name, writes in self._unsynced.items():
            for offset, data in writes:
                places = range(0, len(data), SECTOR)
                lost = self.random.choice(places) if self.tears else None
                for at in places:
                    if at != lost and self.random.random() < 0.5:
                        self._put(name, offset + at, data[at : at + SECTOR])
        self._unsynced = {}
        self.mark = self.random.choice([self.mark, 0, self.random.randint(0, self.mark)])
        raise PowerCut

    def write(self, name: str, offset: int, data: bytes) -> None:
        if offset:  # not the head of a file
            self.last_batch = (name, offset, offset + len(data))
        self._unsynced.setdefault(name, []).append((offset, data))

    def sync(self, name: str) -> None:
        for offset, data in self._unsynced.pop(name, []):
            self._put(name, offset, data)

    def rename(self, name: str, new: str) -> None:
        self.durable[new] = self.durable.pop(name)
        if name in self._unsynced:
            self._unsynced[new] = self._unsynced.pop(name)

    def remove(self, name: str) -> None:
        del self.durable[name]
        self._unsynced.pop(name, None)

    def _put(self, name: str, offset: int, data: bytes) -> None:
        content = self.durable[name]
        content.extend(bytes(max(0, offset + len(data) - len(content))))
        content[offset : offset + len(data)] = data

    def content(self, name: str) -> bytes:
        """What a process reads: the kernel's cache, synced or not."""
        kept = bytearray(self.durable[name])
        for offset, data in self._unsynced.get(name, []):
            kept.extend(bytes(max(0, offset + len(data) - len(kept))))
            kept[offset : offset + len(data)] = data
        return bytes(kept)


class ModelFile:
    """Implements `File`."""

    def __init__(self, machine: Machine, files: ModelFiles, name: str) -> None:
        self._machine, self._files, self.name = machine, files, name
        files.opened.append(self)

    def write(self, offset: int, data: bytes) -> None:
        failed = self._machine.step()
        self._machine.write(self.name, offset, data)
        if failed:
            self._machine.die()

    def sync(self) -> None:
        if self._machine.step():
            self._machine.die()
        self._machine.sync(self.name)

    def close(self) -> None:
        self._files.opened.remove(self)


class ModelFiles:
    """Implements `Files`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.opened: list[ModelFile] = []

    def names(self) -> list[str]:
        return sorted(self._machine.durable)

    def read(self, name: str) -> bytes:
        return self._machine.content(name)

    def create(self, name: str, size: int) -> None:
        failed = self._machine.step()
        if not failed or self._machine.random.random() < 0.5:
            kept = self._machine.random.randrange(size) if failed else size
            self._machine.durable[name] = bytearray(kept)
        if failed:
            self._machine.die()

    def open(self, name: str) -> File:
        assert name in self._machine.durable
        return ModelFile(self._machine, self, name)

    def rename(self, name: str, new: str) -> None:
        self._whole_or_not(lambda: self._rename(name, new))

    def remove(self, name: str) -> None:
        if name not in self._machine.durable:
            raise FileNotFoundError(name)
        self._whole_or_not(lambda: self._machine.remove(name))

    def _rename(self, name: str, new: str) -> None:
        self._machine.rename(name, new)
        for file in self.opened:
            if file.name == name:
                file.name = new

    def _whole_or_not(self, act: Callable[[], object]) -> None:
        failed = self._machine.step()
        if not failed or self._machine.random.random() < 0.5:
            act()
        if failed:
            self._machine.die()


class ModelEnvironment:
    """Implements `Environment`: every journal's rules, and transactions whole or not at all."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._journal = MemoryJournal(machine.environment)

    def load_before_tail(self) -> JournalImage:
        return self._journal.load()

    def last_checkpoint(self) -> Checkpoint | None:
        return self._machine.checkpoint

    def checkpoint(self, net: NetEffect, checkpoint: Checkpoint) -> None:
        failed = self._machine.step()
        if not failed or self._machine.random.random() < 0.5:
            self._journal.commit(net.batch(self._machine.environment.outline))
            self._machine.checkpoint = checkpoint
        if failed:
            self._machine.die()

    def close(self) -> None:
        self._journal.close()


class ModelMark:
    """Implements `Mark`: a note that no sync makes durable."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def note(self, number: int) -> None:
        self._machine.mark = number

    def close(self) -> None:
        """Nothing is open."""


class LateHelper(Executor):
    """Runs its jobs in order, when it is told to or somebody waits for one of them."""

    def __init__(self) -> None:
        self._waiting: list[tuple[LateFuture, Callable[[], Any]]] = []

    def submit(self, job: Any, /, *args: Any, **more: Any) -> Future[Any]:  # noqa: ANN401 - Executor's
        future = LateFuture(self)
        self._waiting.append((future, lambda: job(*args, **more)))
        return future

    def run(self) -> None:
        """Run all jobs that wait."""
        while self._waiting:
            future, job = self._waiting.pop(0)
            try:
                future.set_result(job())
            except Exception as error:  # noqa: BLE001 - whatever a thread would have kept
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor's
        assert wait
        assert not cancel_futures
        self.run()


class LateFuture(Future[Any]):
    """A future whose job begins at the latest when somebody waits for it."""

    def __init__(self, helper: LateHelper) -> None:
        super().__init__()
        self._helper = helper

    def result(self, timeout: float | None = None) -> Any:  # noqa: ANN401 - Future's
        self._helper.run()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._helper.run()
        return super().exception(timeout)


class Started:
    """A process with a journal on the machine's disk."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.helper, self.files = machine, LateHelper(), ModelFiles(machine)
        self.journal = TailedJournal(
            Path("model"),
            ModelEnvironment(machine),
            self.files,
            ModelMark(machine),
            self.helper,
            known=machine.mark,
            file_bytes=FILE_BYTES,
        )


def loaded(machine: Machine) -> Started:
    """A process that has started on the machine's disk; its helper has nothing left to do."""
    started = Started(machine)
    started.journal.load()
    started.helper.run()
    return started


def entry(index: int, size: int = 10) -> JournalBatch:
    """A batch of one entry of so many bytes."""
    return JournalBatch(append=(Entry(index, 1, bytes(size)),))
