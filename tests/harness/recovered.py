"""A cluster that goes on from its only survivor, as `node recover` leaves it (ADR 29, 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.cluster import SETTINGS, Cluster
from harness.journal import SimDisk
from harness.node_changes import nodes, settle, voter
from holdfast.raft.membership import Remove
from holdfast.storage.journal.journal import JournalBatch, NotedMembership

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import Identity, JournalImage


def recovered() -> Cluster:
    """A survives of A, C and D, by a log in which D came and B was removed, and seeds another B.

    The files name A, B and C. Nobody has been elected yet. Each entry travels by itself.
    """
    c = Cluster(settings=replace(SETTINGS, batch_bytes=1))
    c.elect("A")
    settle(c)
    voter(c, "A", "D")
    c.change("A", Remove("B"))
    settle(c, rounds=20)
    assert (nodes(c, "A").voter_names, nodes(c, "A").removed) == (("A", "C", "D"), ("B",))
    for node in list(c.nodes):
        c.crash(node)
    image = c.disks["A"].journal.load()
    assert image.identity is not None
    formed = (("A", "new-a"), ("B", "new-b"))
    own = replace(image.identity, incarnation="new-a", formed=formed)
    noted = NotedMembership(image.entries[-1].index, "")
    c.disks["A"].journal.commit(JournalBatch(identity=own, membership=noted))
    c.disks["A"].notes.content = b""
    seed = replace(own, node_id="B", incarnation="new-b")
    c.ids = "ABC"
    c.disks = {"A": c.disks["A"], "B": _seeded(image, seed, noted), "C": SimDisk()}
    c.files = dict.fromkeys("ABC", "ABC")
    for node in "AB":
        c.start(node)
    c.connect_all("AB")
    c.pump("AB", rounds=4)
    return c


def _seeded(image: JournalImage, identity: Identity, noted: NotedMembership) -> SimDisk:
    disk = SimDisk()
    disk.journal.commit(
        JournalBatch(
            append=image.entries,
            hard_state=image.hard_state,
            commit_index=image.commit_index,
            identity=identity,
            membership=noted,
        )
    )
    return disk
