"""The power of all three nodes is cut under load, five times: nothing acknowledged is lost.

S19, S21, FAULT-14, FAULT-15. Where a file system can be mounted, everything is lost that was not
synced, or a part of it; where not, each node's next commit is cut short (cluster/power_supply.py).
The second way needs nothing, so it is tried everywhere, twice more.
"""

from __future__ import annotations

import mmap
import os
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cluster.kept import behind, fetched, missing
from cluster.left import Left, read_left
from cluster.load import COMMITTERS, PARTITIONS, TOPIC, Acked, Load, Place
from cluster.power_files import NONE
from cluster.power_supply import Disk, PrefixPower, powered, why_no_fuse
from cluster.processes import INSECURE, poll, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CUTS = 5
PREFIX_CUTS = 2
MORE = 60
"""Commits, begun after a cut, that must be acknowledged before the next one."""


class Aftermath(NamedTuple):
    """What was acknowledged during five cuts, and what the nodes have in the end."""

    witness: tuple[Acked, ...]
    offsets: dict[Place, int]
    left: dict[str, Left]
    aside: list[str]
    words: str
    kept: list[str]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """Run the workload through all cuts, once."""
    directory = tmp_path_factory.mktemp("power")
    kept: list[str] = []
    with running(directory / "c", 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with powered(cluster, directory / "disks") as power:
            with Load(cluster.addresses, cluster.tls) as load:
                load.await_crew()
                load.await_more(MORE)
                for number, one in enumerate([power] * CUTS + [PrefixPower()] * PREFIX_CUTS):
                    kept += one.cut(cluster, number)
                    cluster.bring_back(*cluster.names)
                    await_everybody(load)
            offsets = fetched(cluster)
            cluster.stop_at_one_index()
            data = {name: cluster.data(name) for name in cluster.names}
            return Aftermath(
                witness=tuple(load.witness),
                offsets=offsets,
                left={name: read_left(path) for name, path in data.items()},
                aside=[str(found) for path in data.values() for found in path.glob("*.damaged-*")],
                words="".join(cluster.words(name) for name in cluster.names),
                kept=kept,
            )


def await_everybody(load: Load) -> None:
    """Wait until each caller was served again, and many commits are acknowledged."""
    since = time.monotonic()
    load.await_more(MORE)
    served = partial(places_served, load, since)
    poll(lambda: len(served()) == COMMITTERS, "every caller is served")


def places_served(load: Load, since: float) -> set[Place]:
    """Where a commit was acknowledged since a moment."""
    return {acked.place for acked in list(load.witness) if acked.ended > since}


def test_no_acknowledged_commit_is_lost(aftermath: Aftermath) -> None:
    """S19: what a majority had synced is there, whatever else the disks forgot."""
    print(*aftermath.kept, f"{len(aftermath.witness)} commits acknowledged", sep="\n")

    assert len(aftermath.witness) >= CUTS * MORE
    assert behind(aftermath.offsets, aftermath.witness) == set()


def test_every_acknowledged_change_is_in_every_nodes_log(aftermath: Aftermath) -> None:
    """S3, S5: under its request id, in the entry that the answer told."""
    assert {n: missing(left, aftermath.witness) for n, left in aftermath.left.items()} == {
        name: [] for name in aftermath.left
    }


def test_three_nodes_end_with_equal_digests(aftermath: Aftermath) -> None:
    """S3: equal chain, equal state and the same records, at one index."""
    assert len(aftermath.left) == 3
    assert len({(left.last, left.chain, left.digest) for left in aftermath.left.values()}) == 1
    assert len({left.records for left in aftermath.left.values()}) == 1


def test_no_node_takes_a_power_cut_for_damage(aftermath: Aftermath) -> None:
    """S21: the mark beside the journal is never synced, and never ahead of what was."""
    assert aftermath.aside == []
    assert "the data directory is damaged" not in aftermath.words
    assert "Traceback" not in aftermath.words


def test_the_cuts_were_cuts(aftermath: Aftermath) -> None:
    """Every disk of every cut, and not all of them kept the same part of what was not synced."""
    assert len(aftermath.kept) == (CUTS + PREFIX_CUTS) * 3
    assert len({tuple(line.split()[1:3]) for line in aftermath.kept}) > 2


# --- the file system itself ---


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    reason = why_no_fuse(tmp_path / "disk")
    if reason:
        pytest.skip(f"no FUSE: {reason}")
    (tmp_path / "disk" / "old").write_bytes(b"before")
    made = Disk(tmp_path / "disk", tmp_path / "backing")
    made.power_on()
    yield made
    made.power_off()


def cut(disk: Disk) -> dict[str, bytes]:
    """What is in the files after the power is back, and nothing unsynced was kept."""
    disk.begin_cut()
    disk.await_cut()
    disk.end_cut(NONE)
    disk.power_on()
    return {path.name: path.read_bytes() for path in disk.directory.iterdir()}


def sync(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def test_the_file_system_forgets_what_was_not_synced(disk: Disk) -> None:
    """Else the cuts above would show nothing: bytes, a new name, a rename."""
    for name in ("old", "new", "named"):
        (disk.directory / name).write_bytes(b"after")
    sync(disk.directory / "named")
    (disk.directory / "old").rename(disk.directory / "other")

    assert cut(disk) == {"old": b"before"}


def test_the_file_system_keeps_what_was_synced(disk: Disk) -> None:
    """As LMDB writes: through a descriptor that syncs each write, and seen through a map."""
    new = os.open(disk.directory / "new", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
    os.write(new, b"page")
    with mmap.mmap(new, 4, prot=mmap.PROT_READ) as mapped:
        os.pwrite(new, b"P", 0)
        seen = bytes(mapped)
    os.close(new)
    sync(disk.directory)
    found = cut(disk)

    assert seen == b"Page"
    assert found == {"old": b"before", "new": b"Page"}
