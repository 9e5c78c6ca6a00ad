"""S21: a flip in the last batch of the journal's tail makes it look torn, as if never acknowledged.

The disk of one node is the real journal over a model of its files, so what the flip does is what
the product makes of it. The mark beside the tail tells at once; if a power cut took that as well,
the peers' memory must tell before the node votes. The same for a whole transaction of LMDB is in
test_forgetful_disk.py.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from harness.cluster import HEARTBEAT, Cluster
from harness.teeth import Switches, first_harm, guards
from holdfast.raft.core.context import Switch
from holdfast.raft.core.log import QUIET_SECONDS
from holdfast.storage.errors import JournalDamaged
from holdfast.storage.journal.journal import JournalBatch
from storage.tail_power import Machine, Started

if TYPE_CHECKING:
    from holdfast.storage.journal.journal import JournalImage


class TailOnModel:
    """Implements `Journal`: each start of the node opens a new journal on the same files."""

    def __init__(self, image: JournalImage) -> None:
        """Hold at first what another journal held."""
        self.machine = Machine(Random(0))
        self.load()
        everything = JournalBatch(
            append=image.entries,
            hard_state=image.hard_state,
            commit_index=image.commit_index,
            identity=image.identity,
        )
        self.commit(everything)

    def load(self) -> JournalImage:
        self._journal = Started(self.machine).journal
        return self._journal.load()

    def commit(self, batch: JournalBatch) -> None:
        self._journal.commit(batch)

    def close(self) -> None:
        self._journal.close()

    def flip_last(self, *, marked: bool) -> None:
        """Flip a bit in the last batch; `marked`: the mark beside the tail is left."""
        name, begin, _end = self.machine.last_batch
        self.machine.durable[name][begin + 24] ^= 4  # the first byte of its body
        if not marked:
            self.machine.mark = 0


def with_tail(c: Cluster, node: str) -> TailOnModel:
    """Give a node of a cluster the real journal, with what it has."""
    tail = TailOnModel(c.disks[node].journal.load())
    c.disks[node].journal = tail  # type: ignore[assignment]  # the harness asks for no more
    c.restart(node)
    c.connect_all()
    return tail


def x_is_on_a_and_b_only(c: Cluster) -> TailOnModel:
    """C is cut off; A committed X with B, whose last batch is that of X."""
    tail = with_tail(c, "B")
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.network.cut("A", "C")
    proposal = c.put("A", "X")
    c.pump("AB", rounds=3, seconds=HEARTBEAT)
    assert proposal in c.consumer("A").acknowledged
    c.crash("B")
    return tail


def x_is_lost(c: Cluster) -> str:
    """C, which never saw X, asks B for its vote after all silences."""
    c.clock.advance(3)
    return first_harm(x_is_lost=c.campaign("C", "B"))


@guards(Switch.S21_COMPARE, harm="x_is_lost")
def test_s21_a_node_whose_last_batch_was_flipped_does_not_vote_as_if_it_had_it(
    switches: Switches,
) -> str:
    """B acked X, and a flip hides it; A, which heard the ack, is met for a moment and dies."""
    c = Cluster(switches=switches)
    tail = x_is_on_a_and_b_only(c)
    tail.flip_last(marked=False)
    c.start("B")
    assert c.engine("B").status().last_index < c.engine("A").status().last_index
    c.network.connect("B", "C")
    c.network.connect("A", "B")
    c.exchange("A", "B")
    c.crash("A")
    return x_is_lost(c)


def test_s21_such_a_node_becomes_a_new_disk_and_has_everything_again() -> None:
    """S19: no vote and no count of its acks until a barrier; X is never lost."""
    c = Cluster()
    tail = x_is_on_a_and_b_only(c)
    tail.flip_last(marked=False)
    c.start("B")
    c.connect_all()
    c.pump(rounds=2)
    assert c.engine("B").status().stage == "rebuilding"
    c.pump(rounds=20, seconds=HEARTBEAT)
    assert c.engine("B").status().stage == "member"
    assert {tuple(c.consumer(node).values) for node in "ABC"} == {("X",)}


def test_s21_with_its_mark_the_node_does_not_even_start() -> None:
    """The check at the start says so first, and the node rebuilds into an empty directory."""
    c = Cluster()
    tail = x_is_on_a_and_b_only(c)
    tail.flip_last(marked=True)

    with pytest.raises(JournalDamaged, match="was durable, and the last one found"):
        c.start("B")


@guards(Switch.S21_TWICE, harm="x_is_lost")
def test_s21_after_a_quiet_second_the_last_batch_holds_nothing_alone(switches: Switches) -> str:
    """Nobody is left who could tell B: the batch behind that of X acknowledges nothing."""
    c = Cluster(switches=switches)
    tail = with_tail(c, "B")
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.network.cut("A", "C")
    c.put("A", "X")
    c.pump("AB", rounds=int(2 * QUIET_SECONDS / HEARTBEAT), seconds=HEARTBEAT)
    c.crash("A")
    c.crash("B")
    tail.flip_last(marked=False)
    c.start("B")
    c.network.connect("B", "C")
    return x_is_lost(c)
