"""E-5, S4: what is done first, what after it, and what is not done when something fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.journal import ModelJournal
from holdfast.raft.api import (
    Applied,
    EngineInvariantBroken,
    ProbeFailed,
    ProposalId,
    Refused,
    RoleChanged,
)
from holdfast.raft.core.apply_queue import ApplyQueue
from holdfast.raft.core.completion import Completion
from holdfast.raft.core.context import ALL
from holdfast.raft.core.log import StoredLog
from holdfast.raft.core.ready import Ready
from holdfast.raft.messages import Append, TermNotice

if TYPE_CHECKING:
    from holdfast.raft.api import Item
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.watch import Watch
    from holdfast.raft.messages import Message
    from holdfast.storage.journal.journal import JournalBatch

DATA = Append(1, 1, 0, 0, 0, "", ())
NOTICE = TermNotice(1)
REFUSED = Refused(ProposalId(1, 1), "this node does not lead", None)


class World:
    """A completion whose every effect is written down, in the order in which they came."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.disk = ModelJournal()
        self.disk.before_commit = self.persist
        self.log = StoredLog(self.disk)
        self.ready = Ready(self.log.changes)
        self.queue = ApplyQueue(9, 99)
        self.queue.on_items = lambda: self.done.append("applied")
        self.fails = ""
        ctx = SimpleNamespace(ready=self.ready, log=self.log, on=ALL.__contains__)
        parts: tuple[Any, ...] = (self.log, self, self.queue, cast("Watch", self), self.shown)
        self.completion = Completion(cast("Context", ctx), *parts)

    def fill(self) -> None:
        """What a tick might bring, in an order that is none of safety."""
        self.ready.apply.append(Applied(1, 1, b""))
        self.ready.send.append(("B", NOTICE))
        self.log.append(b"x", 1)
        self.ready.at_once.append(("B", DATA))

    def persist(self, batch: JournalBatch) -> None:
        if self.fails == "disk":
            raise OSError("input/output error")
        self.done.append(f"persisted {len(batch.append)}")

    def look(self, *, leaving: bool) -> None:
        if self.fails == "invariant":
            raise EngineInvariantBroken("commit_within_log", "E-2", "a defect")
        self.done.append(f"looked, leaving {leaving}")

    def send(self, peer: str, message: Message) -> bool:
        self.done.append(f"sent {type(message).__name__} to {peer}")
        return True

    def shown(self, peer: str, message: Message) -> None:
        self.done.append(f"noted {type(message).__name__} to {peer}")


def test_e5_persists_before_it_sends_and_sends_before_it_hands_over() -> None:
    """E-5. A leader's data is the exception, by name: it travels while the disk writes."""
    world = World()
    world.fill()
    world.completion.run()

    assert world.done == [
        "sent Append to B",
        "persisted 1",
        "looked, leaving True",
        "noted TermNotice to B",
        "sent TermNotice to B",
        "applied",
    ]


def test_s4_what_tells_nothing_of_the_disk_does_not_wait_for_it() -> None:
    """S4, S5: that a lead, a probe or a proposal ended. The stored term is not what ends it."""
    world = World()
    ends: list[Item] = [RoleChanged("follower", 2, None), ProbeFailed(1, None), REFUSED]
    world.ready.apply += ends
    world.log.set_term(2, None)
    world.completion.run()

    assert world.done == ["applied", "persisted 0"]
    assert world.queue.take(9) == ends


def test_s4_nothing_overtakes_an_item_that_waits_for_the_disk() -> None:
    """S4: the order is that of `Ready.apply`, whatever each item waits for."""
    world = World()
    items: list[Item] = [
        REFUSED,
        Applied(1, 1, b""),
        RoleChanged("follower", 2, None),
        ProbeFailed(1, None),
    ]
    world.ready.apply += items
    world.log.append(b"x", 1)
    told = list[int]()
    world.disk.before_commit = lambda _batch: told.append(len(world.queue))
    world.completion.run()

    assert told == [1]
    assert world.queue.take(9) == items


def test_what_was_done_is_not_done_again() -> None:
    """E-5: nor does a completion of nothing ask the disk."""
    world = World()
    world.fill()
    world.completion.run()
    world.done.clear()
    world.completion.run()

    assert world.done == []


@pytest.mark.parametrize(
    ("fails", "done"),
    [("disk", ["sent Append to B"]), ("invariant", ["sent Append to B", "persisted 1"])],
)
def test_e5_what_fails_keeps_back_all_that_follows(fails: str, done: list[str]) -> None:
    """E-5, S4: no answer leaves, and the consumer hears of nothing."""
    world = World()
    world.fill()
    world.fails = fails
    with pytest.raises((OSError, EngineInvariantBroken)):
        world.completion.run()

    assert world.done == done
    assert len(world.queue) == 0


def test_several_answers_share_one_transaction() -> None:
    """E-4, E-5: whatever changed, term, vote, entries and identity, becomes durable whole."""
    world = World()
    world.log.set_term(2, "B")
    for _ in range(3):
        world.log.append(b"x", 2)
        world.ready.send.append(("B", NOTICE))
    world.completion.run()

    assert world.disk.commits == 1
    assert world.done.count("sent TermNotice to B") == 3
