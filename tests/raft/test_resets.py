"""E-1: what a leader sends after a refusal is bounded, whatever the follower's disk has forgotten.

A follower refuses each message of a window whose beginning it lacks. A leader that answered each
refusal with the whole window again would multiply its messages with every exchange.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.chaos import Violation
from harness.cluster import HEARTBEAT, SETTINGS, Cluster
from harness.forgetting import Forgetting
from harness.network import Network
from holdfast.raft.core.context import ALL, Switch
from holdfast.raft.core.log import LogForked
from holdfast.raft.messages import Append

if TYPE_CHECKING:
    import pytest

SMALL = replace(SETTINGS, batch_bytes=100, chunk_bytes=100)
"""Two entries of a test make a message."""
WINDOW = 5
"""Messages that carry the ten entries which B lacks."""
EXCHANGES = 30
NOBODY_COMPARES = ALL - {Switch.S21_COMPARE, Switch.S21_TWICE}
HARMFUL = 14
"""A schedule in which a leader meets a disk that has forgotten what it acknowledged."""
QUEUE_MAX = 200
"""Far more messages than a link has under way while nothing multiplies them."""


def ten_entries(c: Cluster) -> None:
    term = c.engine("A").status().term
    for number in range(10):
        c.engine("A").propose(f"v{number}".encode() + b"x" * 40, term)
    c.tick("A")


def with_entries(c: Cluster) -> int:
    """How many of the messages under way from A to B carry entries."""
    return sum(isinstance(m, Append) and bool(m.entries) for m in c.network.waiting("A", "B"))


def sent_without_time_passing(c: Cluster) -> int:
    """How many messages with entries A sends to B until both are silent, but no more rounds."""
    sent = 0
    for _ in range(EXCHANGES):
        sent += with_entries(c)
        if sent > EXCHANGES * WINDOW:
            break
        c.exchange("A", "B")
    return sent


def b_forgot_what_a_counts() -> Cluster:
    """B acknowledged to A what its disk has lost, and has to be sent more: it refuses all of it."""
    c = Cluster(switches=NOBODY_COMPARES, settings=SMALL)
    c.elect("A")
    c.pump(rounds=3, seconds=HEARTBEAT)
    old = c.disks["B"].journal.load()
    ten_entries(c)
    c.pump(rounds=3, seconds=HEARTBEAT)
    c.crash("B")
    c.disks["B"].journal.repair()
    c.disks["B"].journal.restore(old)
    c.start("B")
    ten_entries(c)
    c.network.connect("A", "B")
    return c


def b_lacks_ten_entries() -> Cluster:
    """They are under way to it, and nothing else is."""
    c = Cluster(settings=SMALL)
    c.elect("A")
    c.exchange("A", "B")
    ten_entries(c)
    assert with_entries(c) == len(c.network.waiting("A", "B")) == WINDOW
    return c


def test_a_disk_that_forgot_is_sent_the_window_once_more_at_each_heartbeat() -> None:
    """The leader cannot help it: below what was acknowledged it never goes (E-1)."""
    c = b_forgot_what_a_counts()
    for _ in range(4):
        assert sent_without_time_passing(c) <= 2 * WINDOW, "a window, and one after a refusal"
        c.clock.advance(HEARTBEAT)
        c.calm()
        c.tick("A")


def test_a_lost_message_is_sent_again_without_waiting_for_a_heartbeat() -> None:
    """A rightful follower is not slowed down; nor is it sent the window for each refusal."""
    c = b_lacks_ten_entries()
    c.network.lose("A", "B", count=1)

    sent = sent_without_time_passing(c)

    assert c.engine("B").status().last_index == c.engine("A").status().last_index
    assert sent == 2 * WINDOW - 1, "all but the lost one, and the window once more"


def test_a_message_that_is_lost_twice_is_sent_again_after_a_heartbeat() -> None:
    """What the leader leaves unanswered is not forgotten."""
    c = b_lacks_ten_entries()
    for _ in range(2):
        c.network.lose("A", "B", count=1)
        c.exchange("A", "B")
    sent_without_time_passing(c)
    for _ in range(2):
        c.clock.advance(HEARTBEAT)
        c.calm()
        c.tick("A")
        sent_without_time_passing(c)

    assert c.engine("B").status().last_index == c.engine("A").status().last_index


def test_messages_stay_bounded_when_nobody_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """S21 left out, a disk that forgot harms the log, and must not fill the memory as well."""
    longest, post = 0, Network.post

    def counted(network: Network, source: str, target: str, frame: bytes) -> bool:
        nonlocal longest
        is_sent = post(network, source, target, frame)
        longest = max(longest, len(network.waiting(source, target)))
        if longest > QUEUE_MAX:
            raise LogForked("the schedule ends here, before the memory is full")
        return is_sent

    monkeypatch.setattr(Network, "post", counted)
    schedule = Forgetting(HARMFUL, switches=NOBODY_COMPARES)
    with suppress(Violation, LogForked):
        schedule.run(4000)

    assert schedule.counts["rolled back"] > 0
    assert 0 < longest <= QUEUE_MAX
