"""S21: an older copy of a node's directory that was put back is found out, and rebuilds.

Journal, identity and state are older together, so each is sound in itself and fits the others:
only the peers know what this node held meanwhile. S13: else indexes are counted again, and with
them fencing tokens.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.cluster import HEARTBEAT, Cluster
from holdfast.raft.messages import Hello, Recall, Recalled, Witness

if TYPE_CHECKING:
    from harness.journal import Snapshot
    from holdfast.storage.journal.journal import JournalImage


class Copy:
    """A copy of a node's whole directory, as `cp -a` of a stopped node makes it."""

    def __init__(self, c: Cluster, node: str) -> None:
        self._c, self._node = c, node
        disk = c.disks[node]
        self.journal: JournalImage = disk.journal.load()
        self._snapshot: Snapshot = disk.snapshot
        self._notes = disk.notes.content

    def put_back(self) -> None:
        """Stop the node if it runs, and start it on the copy; its links are down."""
        if self._node in self._c.nodes:
            self._c.crash(self._node)
        disk = self._c.disks[self._node]
        disk.journal.repair()
        disk.journal.restore(self.journal)
        disk.snapshot, disk.notes.content = self._snapshot, self._notes
        self._c.start(self._node)


def formed() -> Cluster:
    """Three members, A leads."""
    c = Cluster()
    c.elect("A")
    c.put("A", "before")
    c.pump(rounds=12, seconds=HEARTBEAT)
    return c


def changed(c: Cluster, leader: str = "A") -> None:
    """More is committed and on all disks, and every node has told what it has."""
    for number in range(3):
        c.put(leader, f"after {number}")
    c.pump(rounds=12, seconds=HEARTBEAT)


def incarnation(c: Cluster, node: str) -> str:
    return c.engine(node).overlay.identity.incarnation


def rebuilds(c: Cluster, node: str) -> bool:
    """Whether the node gives up its vote when it hears all its peers, before anything else.

    It asks those again who speak of another disk of it than this one.
    """
    before = incarnation(c, node)
    for peer in c.ids:
        if peer != node and peer in c.nodes:
            c.network.connect(peer, node)
            c.exchange(peer, node)
            c.exchange(peer, node)
    return c.engine(node).status().stage == "rebuilding" and incarnation(c, node) != before


def converges(c: Cluster, leader: str, node: str) -> bool:
    """Whether it becomes a member with the leader's log again."""
    c.connect_all()
    c.pump(rounds=30, seconds=HEARTBEAT)
    same = c.consumer(node).values == c.consumer(leader).values
    return same and c.engine(node).status().stage == "member"


def test_s21_a_followers_older_copy_says_so_rebuilds_and_converges(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The sentence has what the directory ends with, what a peer knows, and what happens."""
    c = formed()
    copy = Copy(c, "B")
    changed(c)
    last = c.engine("A").status().last_index
    with caplog.at_level(logging.CRITICAL):
        copy.put_back()
        assert rebuilds(c, "B")

    ends = copy.journal.entries[-1]
    (told,) = [r.getMessage() for r in caplog.records if r.levelno == logging.CRITICAL]
    assert "an older copy of this node's disk" in told
    assert f"ends with entry {ends.index} of term {ends.term}" in told
    assert f"entry {last} in term" in told
    assert "rebuilds from its peers" in told
    assert converges(c, "A", "B")


def test_s21_the_older_copy_of_the_node_that_led_rebuilds_too() -> None:
    """Its followers know what it told to be committed."""
    c = formed()
    copy = Copy(c, "A")
    changed(c)
    copy.put_back()
    assert rebuilds(c, "A")
    c.connect_all()
    c.elect("B", "BC")
    assert converges(c, "B", "A")


def test_s21_an_older_copy_from_before_an_election_rebuilds() -> None:
    """The copy knows an older term; B acked in the term that it does not know."""
    c = formed()
    copy = Copy(c, "B")
    c.elect("C")
    changed(c, "C")
    copy.put_back()
    assert rebuilds(c, "B")
    assert converges(c, "C", "B")


def test_s21_a_copy_that_lacks_nothing_is_no_older_one() -> None:
    """Nothing was acknowledged since, so nothing can be lost by it."""
    c = formed()
    c.pump(rounds=20, seconds=HEARTBEAT)
    copy = Copy(c, "B")
    copy.put_back()
    assert not rebuilds(c, "B")
    assert converges(c, "A", "B")


def rebuilt(c: Cluster, node: str) -> None:
    """The node's disk was lost, and it rebuilt: another incarnation, which is a member."""
    c.restart(node, wiped=True)
    c.connect_all()
    c.pump(rounds=30, seconds=HEARTBEAT)
    assert c.engine(node).status().stage == "member"


@pytest.mark.parametrize("rebuilds_before", [0, 1])
def test_s21_a_copy_from_before_a_rebuild_is_an_older_copy(rebuilds_before: int) -> None:
    """S19: its incarnation is one that the node had earlier; what counts is what the node held."""
    c = formed()
    for _ in range(rebuilds_before):
        rebuilt(c, "B")
    copy = Copy(c, "B")
    rebuilt(c, "B")
    changed(c)
    copy.put_back()
    assert rebuilds(c, "B")
    assert converges(c, "A", "B")


def test_s21_a_question_that_a_broken_connection_took_away_is_asked_again() -> None:
    """Each peer first speaks of the disk that is there now; what it knows of this one is asked."""
    c = formed()
    rebuilt(c, "B")
    copy = Copy(c, "B")
    rebuilt(c, "B")
    changed(c)
    copy.put_back()
    for peer in "AC":
        c.network.connect(peer, "B")
        c.engine(peer).overlay.completion.run()
        c.network.deliver(peer, "B")
        c.engine("B").overlay.completion.run()
        assert [type(message) for message in c.network.waiting("B", peer)][-1] is Recall
        c.network.cut("B", peer)
    assert rebuilds(c, "B")


def test_s21_a_copy_from_the_bootstrap_is_old_for_who_never_saw_that_disk() -> None:
    """A and C forgot all; a disk of the bootstrap came before any other of this node (S19)."""
    c = formed()
    copy = Copy(c, "B")
    rebuilt(c, "B")
    for node in "AC":
        c.disks[node].notes.content = b""
        c.restart(node)
    c.connect_all()
    c.elect("A")
    changed(c)
    copy.put_back()
    assert rebuilds(c, "B")


def test_s21_a_copy_from_while_the_cluster_formed_does_not_join_without_its_log() -> None:
    """S19: all peers have its incarnation in their lists, as that of a member."""
    c = Cluster(formed=False)
    copy = Copy(c, "B")
    c.connect_all()
    c.pump(rounds=6, seconds=HEARTBEAT)
    c.elect("A")
    changed(c)
    assert copy.journal.identity is not None
    assert copy.journal.identity.stage == "forming"
    copy.put_back()
    assert rebuilds(c, "B")
    assert converges(c, "A", "B")


def test_s21_an_older_copy_is_found_out_after_all_nodes_were_stopped() -> None:
    """What a process remembered lies beside its journal, so a copy made for a repair is seen."""
    c = formed()
    copy = Copy(c, "B")
    changed(c)
    for node in "ABC":
        c.engine(node).close()
        c.crash(node)
    for node in "AC":
        c.start(node)
    copy.put_back()
    assert rebuilds(c, "B")
    c.connect_all()
    c.elect("A")
    assert converges(c, "A", "B")


def test_s21_what_is_remembered_is_kept_once_a_second_for_who_is_killed() -> None:
    c = formed()
    copy = Copy(c, "B")
    changed(c)
    c.pump(rounds=12, seconds=HEARTBEAT)
    for node in "AC":
        c.restart(node)
    copy.put_back()
    assert rebuilds(c, "B")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"B": 7}', b'{"B": {"held": "x"}}'])
def test_s21_notes_that_cannot_be_read_say_nothing(content: bytes) -> None:
    """They are a second opinion: without them the process remembers what it hears."""
    c = formed()
    c.disks["A"].notes.content = content
    c.restart("A")
    c.network.connect("A", "B")
    c.tick("A")
    assert c.network.waiting("A", "B")[1] == Recalled("", 0, 0, 0)


def test_s21_a_late_word_of_a_replaced_disk_is_not_taken_for_the_present_one() -> None:
    """C, which led before, tells A of B's earlier disk after A has heard the present one."""
    c = formed()
    earlier = incarnation(c, "B")
    rebuilt(c, "B")
    changed(c)
    held = c.engine("A").status()
    c.engine("A").on_message("C", Witness("B", earlier, held.term, held.last_index + 50))
    c.network.cut("A", "B")
    c.network.connect("A", "B")
    c.tick("A")
    told = c.network.waiting("A", "B")[1]
    assert isinstance(told, Recalled)
    assert (told.incarnation, told.index) == (incarnation(c, "B"), held.last_index)


def test_s21_before_it_is_told_the_old_copy_acknowledges_nothing() -> None:
    """A peer's word comes right behind whose disk it has, so no entry comes before it."""
    c = formed()
    copy = Copy(c, "B")
    changed(c)
    copy.put_back()
    c.network.connect("A", "B")
    c.tick("A")
    kinds = [type(message) for message in c.network.waiting("A", "B")]
    assert kinds[:2] == [Hello, Recalled]
    assert replace(copy.journal) == c.disks["B"].journal.load()
