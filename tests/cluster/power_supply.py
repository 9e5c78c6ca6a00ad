"""The power of all nodes of a real cluster, to be cut at once.

Two ways. `FusePower` puts every data directory on a file system of its own that forgets what was
not synced: any file, any write. Where that cannot be mounted, `PrefixPower` cuts each node's next
batch short: any of its sectors reach the journal's tail, or none.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol

from cluster.power_disk import mount, unmount
from cluster.power_files import WAYS
from harness.children import environment
from holdfast.storage.journal.commit_mark import TAIL_MARK_FILE
from holdfast.storage.journal.journal import HardState, JournalBatch, JournalImage
from holdfast.storage.journal.journal_reader import read_journal
from holdfast.storage.journal.tail_file import BLOCK
from holdfast.storage.journal.tailed_journal import open_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.processes import RunningCluster


class Power(Protocol):
    """What a test cuts; every cut leaves all nodes dead and their directories as it left them."""

    def cut(self, cluster: RunningCluster, seed: int) -> list[str]:
        """Tell for each node what the cut kept."""
        ...


def why_no_fuse(scratch: Path) -> str:
    """Why no file system can be mounted here; empty if one can."""
    try:
        descriptor = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        return f"/dev/fuse: {error.strerror}"
    try:
        mount(descriptor, scratch)
    except OSError as error:
        return f"mount: {error.strerror}"
    finally:
        os.close(descriptor)
    unmount(scratch)
    return ""


class Disk:
    """One directory on a file system with a power supply; its process ends with the tests'."""

    def __init__(self, directory: Path, backing: Path) -> None:
        """What is in the directory now counts as synced."""
        self.directory, self.backing = directory, backing
        shutil.move(directory, backing)
        directory.mkdir()

    def power_on(self) -> None:
        """Mount it."""
        places = [str(self.backing), str(self.directory)]
        command = [sys.executable, "-m", "cluster.power_disk", *places]
        self._server: subprocess.Popen[str] = subprocess.Popen(
            command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "mounted"

    def begin_cut(self, syncs: int = 0) -> None:
        """Nothing works any more from now on, or in the middle of one of the next syncs."""
        self._say(f"cut {syncs}")

    def await_cut(self) -> None:
        """Wait until nothing works; whoever waits for the disk now waits until `end_cut`."""
        assert self._line() == "cut"

    def end_cut(self, way: str, seed: str = "0") -> str:
        """Leave in the backing directory what a cut leaves (ways: power_files), and tell it.

        Whoever still runs sees the disk fail, so everybody must have been killed.
        """
        self._say(f"keep {way} {seed}")
        kept = self._line()
        assert kept.startswith(way), "the file system itself died"
        self.power_off()
        return kept

    def power_off(self) -> None:
        """Unmount, whatever state it is in."""
        self._server.communicate()
        unmount(self.directory)

    def _say(self, words: str) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{words}\n")
        self._server.stdin.flush()

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()


class FusePower:
    """A `Disk` under each node."""

    def __init__(self, cluster: RunningCluster, scratch: Path) -> None:
        """The nodes must be dead; they find their directories as they left them."""
        self._disks = {name: Disk(cluster.data(name), scratch / name) for name in cluster.names}
        self._on()

    def cut(self, cluster: RunningCluster, seed: int) -> list[str]:
        """Each node loses power in the middle of a commit, at one of its next three syncs."""
        source = Random(seed)
        for disk in self._disks.values():
            disk.begin_cut(source.randint(1, 3))
        for disk in self._disks.values():
            disk.await_cut()
        signal_all(cluster, signal.SIGKILL)
        ways = [WAYS[(seed + number) % len(WAYS)] for number in range(len(self._disks))]
        disks = zip(self._disks.items(), ways, strict=True)
        kept = [f"{name}: {disk.end_cut(way, f'{seed}-{name}')}" for (name, disk), way in disks]
        cluster.kill(*cluster.names)
        self._on()
        return kept

    def off(self) -> None:
        for disk in self._disks.values():
            disk.power_off()

    def _on(self) -> None:
        for disk in self._disks.values():
            disk.power_on()


class PrefixPower:
    """The journals' next commits, cut short."""

    def cut(self, cluster: RunningCluster, seed: int) -> list[str]:
        signal_all(cluster, signal.SIGSTOP)
        cluster.kill(*cluster.names)
        folders = {name: cluster.data(name) / "raft" for name in cluster.names}
        images = {name: read_journal(folder) for name, folder in folders.items()}
        longest = max(images.values(), key=last_of)
        return [
            f"{name}: {cut_short(folders[name], next_batch(name, image, longest), source)}"
            for name, image in images.items()
            for source in [Random(f"{seed} {name}")]
        ]


def signal_all(cluster: RunningCluster, which: signal.Signals) -> None:
    """To all nodes, one right after the other."""
    for pid in [int(cluster.node(name)["pid"]) for name in cluster.names]:
        os.kill(pid, which)


def last_of(image: JournalImage) -> tuple[int, int]:
    """Term and index of the last entry."""
    if image.entries:
        return image.entries[-1].term, image.entries[-1].index
    return image.anchor[1], image.anchor[0]


def next_batch(name: str, image: JournalImage, longest: JournalImage) -> JournalBatch:
    """What this node would have written next: the leader's next entry, or else its own vote."""
    term, index = last_of(image)
    follows = [e for e in longest.entries if e.index in {index, index + 1}]
    if len(follows) == 2 and follows[0].term == term:
        return JournalBatch(append=[follows[1]])
    return JournalBatch(hard_state=HardState(image.hard_state.term + 1, name))


def differs(one: bytes, other: bytearray, at: int) -> bool:
    """Whether a sector is not the same."""
    return one[at : at + BLOCK] != other[at : at + BLOCK]


def cut_short(folder: Path, batch: JournalBatch, source: Random) -> str:
    """Commit, and leave in the tail any of the sectors that the batch wrote, or all or none.

    The mark beside the journal is never synced: it may have any older value, here none at all.
    """
    journal = open_journal(folder)
    journal.load()
    before = {file: file.read_bytes() for file in folder.glob("tail-*")}
    mark = (folder / TAIL_MARK_FILE).read_bytes()
    journal.commit(batch)
    journal.close()
    file = next(file for file, content in before.items() if file.read_bytes() != content)
    written, torn = file.read_bytes(), bytearray(before[file])
    changed = [at for at in range(0, len(torn), BLOCK) if differs(written, torn, at)]
    kept = source.sample(changed, source.randint(0, len(changed)))
    for at in kept:
        torn[at : at + BLOCK] = written[at : at + BLOCK]
    file.write_bytes(torn)
    (folder / TAIL_MARK_FILE).write_bytes(source.choice([mark, b""]))
    (folder / "lock.mdb").unlink(missing_ok=True)
    return f"{len(kept)} of {len(changed)} sectors of a batch"


@contextmanager
def powered(cluster: RunningCluster, scratch: Path) -> Iterator[Power]:
    """The best power supply that this machine has; which one is printed. Nodes are restarted."""
    scratch.mkdir()
    reason = why_no_fuse(scratch)
    if reason:
        print(f"no FUSE ({reason}): recorded write prefixes instead")
        yield PrefixPower()
        return
    cluster.kill(*cluster.names)
    power = FusePower(cluster, scratch)
    try:
        cluster.bring_back(*cluster.names)
        yield power
    finally:
        power.off()
