"""S21, S19: a node starts on files with a flipped bit; then all three hold the same, and all of it.

What each of 1,200 flips comes to in one directory is tested in tests/storage, and those in the
journal's tail in test_tail_power_cut.py; here real nodes heal from their peers. Replay: the seed
below chooses the bits; what lies there depends on the run.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cluster.kept import behind, fetched, missing
from cluster.left import Left, read_left
from cluster.load import PARTITIONS, TOPIC, Acked, Load, Place
from cluster.processes import INSECURE, RunningCluster, poll, running
from holdfast.storage.journal.tail_file import BLOCK
from storage.power import META_PAGES, PAGE

if TYPE_CHECKING:
    from pathlib import Path

SEED = 2_121
MORE = 40
"""Commits that the two others acknowledge while the third is down, and again when it is back."""
PAUSE_S = 0.2
"""Commits come all the time, also while a node stops and starts, and leave it the processor."""


class Flip(NamedTuple):
    """A file of a stopped node, and the pages, or the tail's sectors, where a bit is flipped."""

    file: str
    pages: str

    def chosen(self, content: bytes, source: Random) -> list[int]:
        """Bytes: one in a meta page, one of those that hold data, or one in each such page.

        Of the journal's tail: one in a sector that was written, or one in each.
        """
        if self.file == TAIL:
            used = range(BLOCK, len(content.rstrip(b"\0")), BLOCK)
            return [source.choice(used)] if self.pages == ONE else [at + 24 for at in used]
        if self.pages == META:
            return [source.randrange(META_PAGES * PAGE)]
        filled = range(META_PAGES * PAGE, len(content), PAGE)
        bytes_ = [at + source.randrange(PAGE) for at in filled if any(content[at : at + PAGE])]
        return bytes_ if self.pages == EACH else [source.choice(bytes_)]


EACH, META, ONE = "each", "meta", "one"
RAFT, STATE, TAIL = "raft/data.mdb", "state/data.mdb", "raft/tail-*"
FLIPS = (
    *(Flip(TAIL, pages) for pages in (EACH, ONE)),
    *(Flip(file, pages) for pages in (EACH, META, ONE) for file in (RAFT, STATE)),
)


class Aftermath(NamedTuple):
    """What was acknowledged meanwhile, and what the nodes have in the end."""

    witness: tuple[Acked, ...]
    offsets: dict[Place, int]
    left: dict[str, Left]
    aside: list[str]
    words: str


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Aftermath:
    """One flip after the other, each at another node than the last, under load."""
    directory = tmp_path_factory.mktemp("flips") / "c"
    source = Random(SEED)
    with running(directory, 3, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Load(cluster.addresses, cluster.tls, PAUSE_S) as load:
            load.await_crew()
            for number, flip in enumerate(FLIPS):
                name = cluster.names[number % 3]
                cluster.stop_gracefully(name)
                load.await_more(MORE)
                damage(newest(cluster.data(name), flip.file), flip, source)
                come_back(cluster, name)
                load.await_more(MORE)
        offsets = fetched(cluster)
        cluster.stop_at_one_index()
        data = {name: cluster.data(name) for name in cluster.names}
        return Aftermath(
            witness=tuple(load.witness),
            offsets=offsets,
            left={name: read_left(path) for name, path in data.items()},
            aside=[found.name for path in data.values() for found in path.glob("*.damaged-*")],
            words="".join(cluster.words(name) for name in cluster.names),
        )


def newest(data: Path, pattern: str) -> Path:
    """The file; of the journal's tail, the last one that holds batches."""
    files = sorted(data.glob(pattern))
    return next(file for file in reversed(files) if any(file.read_bytes()[BLOCK:]))


def damage(file: Path, flip: Flip, source: Random) -> None:
    """Flip the chosen bits."""
    content = bytearray(file.read_bytes())
    for at in flip.chosen(bytes(content), source):
        content[at] ^= 1 << source.randrange(8)
    file.write_bytes(content)


def come_back(cluster: RunningCluster, name: str) -> None:
    """Start the node and wait until its vote counts again, and it has what was committed."""
    before = cluster.describe(cluster.leader())
    assert before is not None
    cluster.bring_back(name)

    def follows() -> bool:
        seen, own = cluster.describe(cluster.leader()), cluster.describe(name)
        if seen is None or own is None or own.applied_index < before.commit_index:
            return False
        role = next(node.role for node in seen.nodes if node.name == name)
        return role in {"follower", "leader"}

    poll(follows, f"{name} is healed")


def test_no_acknowledged_commit_is_lost(aftermath: Aftermath) -> None:
    """S19: a node that forgot never helps a majority to forget."""
    assert len(aftermath.witness) >= 2 * MORE * len(FLIPS)
    assert behind(aftermath.offsets, aftermath.witness) == set()


def test_the_damaged_nodes_hold_every_acknowledged_change(aftermath: Aftermath) -> None:
    """S21: correct, or healed from the peers: under its request id, in the entry that was told."""
    assert {n: missing(left, aftermath.witness) for n, left in aftermath.left.items()} == {
        name: [] for name in aftermath.left
    }


def test_three_nodes_end_with_equal_digests(aftermath: Aftermath) -> None:
    """S3: equal chain, equal state and the same records, at one index."""
    assert len(aftermath.left) == 3
    assert len({(left.last, left.chain, left.digest) for left in aftermath.left.values()}) == 1
    assert len({left.records for left in aftermath.left.values()}) == 1


def test_damage_is_told_and_kept_aside(aftermath: Aftermath) -> None:
    """S21: the flips in all pages cannot be missed; each is a sentence, never a traceback."""
    print(*aftermath.aside, sep="\n")

    assert [words[:2_000] for words in aftermath.words.split("Traceback")[1:]] == []
    assert len([name for name in aftermath.aside if name.startswith("raft.")]) >= 2
    assert "damaged" in aftermath.words
