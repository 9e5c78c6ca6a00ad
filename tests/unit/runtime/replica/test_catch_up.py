"""S4: a node that was started has caught up when it has applied what a leader says is committed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.runtime.replica.catch_up import CatchUp
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from holdfast.raft.api import Status


class Started(FakeReplica):
    """A node whose process has just begun; `goal`: what its engine was told by a leader."""

    def __init__(self) -> None:
        super().__init__()
        self.goal: int | None = None

    def applied(self, index: int) -> None:
        """Let the state reflect this entry."""
        self.state = self.state._replace(applied_index=index)

    def status(self) -> Status:
        return replace(super().status(), catch_up_index=self.goal)


def test_s4_what_the_disk_holds_is_not_enough() -> None:
    replica = Started()
    caught_up = CatchUp(replica)
    replica.applied(7)
    assert not caught_up.is_done()


def test_s4_it_has_caught_up_when_it_has_applied_what_it_was_told_and_it_stays_so() -> None:
    replica = Started()
    caught_up = CatchUp(replica)
    replica.goal = 9
    replica.applied(8)
    assert not caught_up.is_done()
    replica.applied(9)
    assert caught_up.is_done()
    replica.goal = None
    assert caught_up.is_done()


def test_s4_a_node_that_has_led_has_caught_up_also_after_it() -> None:
    """The role comes behind its own first entry, and so behind all that was committed before."""
    replica = Started()
    caught_up = CatchUp(replica)
    replica.lead()
    replica.step_down()
    assert caught_up.is_done()
