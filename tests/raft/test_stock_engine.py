"""The stock engine's other defects, each shown on it: what the overlay closes is real.

Those that lose acknowledged data (E-1 to E-5) are in test_stock_losses, each beside the same
schedule on ours; for these the overlay's tests are in test_log, test_proposals and
test_votes_and_lease. Should one of these tests fail after an upgrade, a defect was repaired
upstream: look before you pin.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import TYPE_CHECKING, Any

import pysyncobj.syncobj
import pytest

from harness.stock import StockWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

SUCCESS = 0
stock_journal: Any = importlib.import_module("pysyncobj.journal")
stock_serializer: Any = importlib.import_module("pysyncobj.serializer")


@pytest.fixture(autouse=True)
def _quiet_engine_and_own_clock() -> Iterator[None]:
    """The engine logs what it does wrong; and it keeps its clock in a module global."""
    before = pysyncobj.syncobj.monotonicTime
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    pysyncobj.syncobj.monotonicTime = before


def test_d6_a_command_that_raises_is_tried_for_ever() -> None:
    """The replica is stuck: what comes after it is never applied."""
    w = StockWorld("A")
    w.elect("A", "A")
    w.nodes["A"].fail()
    w.nodes["A"].put("after")
    for _ in range(6):
        try:
            w.pump("A", seconds=0.11)
        except ValueError:
            continue
    assert w.nodes["A"].tries > 1
    assert w.nodes["A"].items == []


def test_r6_a_long_command_raises_in_the_followers_handler() -> None:
    """The last chunk is announced too early: by the raw length, while the pickled one is cut."""
    w = StockWorld("AB")
    w.connect("AB")
    w.elect("A", "AB")
    w.nodes["A"].put(os.urandom(200_000))
    w.tick("A")
    w.clock.advance(0.11)
    w.tick("A")
    failures = 0
    while w.queues["A", "B"]:
        try:
            w.deliver("A", "B", 1)
        except Exception:  # noqa: BLE001 - whatever it is, it must not happen
            failures += 1
    assert failures > 0


def test_r7_a_divergent_tail_is_repaired_one_index_a_round() -> None:
    """50 divergent entries need 50 rounds of heartbeats."""
    w = StockWorld("ABC")
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    w.cut("AB", "AC")
    for i in range(50):
        w.nodes["A"].put(f"lost{i}")
    w.tick("A")
    w.elect("B", "BC")
    for i in range(60):
        w.nodes["B"].put(f"n{i}")
    w.pump("BC", rounds=6, seconds=0.11)
    w.elect("C", "BC")
    w.connect("AC")
    w.pump("ABC", rounds=40, seconds=0.11)
    assert w.nodes["A"].items == []


def test_r8_membership_changes_overlap() -> None:
    """With no commit possible the leader accepts two additions; the guard is dead code."""
    w = StockWorld("ABC", dynamicMembershipChange=True)
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    w.cut("AB", "AC")
    for new in "DE":
        w.nodes["A"].addNodeToCluster(new)
        w.tick("A")
    assert len(w.nodes["A"].otherNodes) == 4


def test_r9_a_forwarded_command_is_lost_without_a_word() -> None:
    """The link blips while the leader stays: the callback never runs."""
    w = StockWorld("ABC")
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    told: list[int] = []
    w.nodes["B"].put("lost", callback=lambda _result, error: told.append(error))
    w.tick("B")
    w.cut("AB")
    w.connect("AB")
    w.pump("ABC", rounds=100, seconds=0.1)
    assert told == []
    assert w.nodes["A"]._isLeader()


def test_votes_are_counted_by_message() -> None:
    """E-11: one vote that arrives twice elects a leader of five."""
    w = StockWorld("ABCDE")
    w.connect("AB")
    w.nodes["A"]._SyncObj__raftElectionDeadline = 0
    w.tick("A")
    vote = {"type": "response_vote", "term": w.nodes["A"].raftCurrentTerm}
    for _ in range(2):
        w.wires["A"]._onMessageReceived(pysyncobj.node.Node("B"), vote)
    assert w.nodes["A"]._isLeader()


def test_a_follower_that_was_away_deposes_the_leader() -> None:
    """E-13: no pre-vote; its timer is looked at before its messages are."""
    w = StockWorld("ABC")
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    w.clock.advance(3)
    w.calm()
    w.tick("A")
    w.nodes["C"]._SyncObj__raftElectionDeadline = 0
    w.tick("C")
    w.deliver("C", "A")
    assert not w.nodes["A"]._isLeader()


def test_a_real_vote_is_given_while_the_leader_is_heard() -> None:
    """S10 a: the voter has just acknowledged a heartbeat of its leader."""
    w = StockWorld("ABC")
    w.connect("AB", "AC", "BC")
    w.elect("A", "ABC")
    w.pump("ABC", rounds=2, seconds=0.11)
    w.cut("AC")
    w.nodes["C"]._SyncObj__raftElectionDeadline = 0
    w.tick("C")
    w.deliver("C", "B")
    w.deliver("B", "C")
    assert w.nodes["C"]._isLeader()
    assert w.nodes["A"]._isLeader()
