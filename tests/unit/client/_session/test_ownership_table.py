"""Ownership as a table: what a row is after each move, partition by partition (S11, S12, S13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._session.loss import OVER
from holdfast.client._session.ownership import Ownership
from holdfast.client._session.session_io import Assigned, Grant, Lost
from unit.client._session.driver import make_settings, partitions

if TYPE_CHECKING:
    from holdfast.client._session.session_io import Output, TopicPartition

SESSION_MS = 10_000
OLD, NEW = Grant("m-1", 1, 7, 0), Grant("m-1", 2, 9, 0)
P0, P1, P2 = partitions(0, 1, 2)


class Scene:
    """A table, and what its user was told last."""

    def __init__(self, takeover: str = "now") -> None:
        self.told: list[Output] = []
        settings = make_settings(session_timeout_ms=SESSION_MS, takeover=takeover)
        self.table = Ownership(settings, self.told)

    def assign(self, grant: Grant, *names: TopicPartition, at_ms: int = 0) -> None:
        """A sync that was sent and answered then gives these."""
        self.table.assigned(grant, names, at_ms)
        self.table.update(at_ms)

    @property
    def told_last(self) -> Output:
        """What the user was told last."""
        return self.told[-1]


def test_s13_what_is_kept_keeps_the_grant_of_its_row_and_what_is_new_has_the_new_one() -> None:
    scene = Scene()
    scene.assign(OLD, P0, P1)
    scene.assign(NEW, P0, P1, P2)
    assert scene.table.held == {P0: OLD, P1: OLD, P2: NEW}
    assert scene.told == [Assigned((P0, P1), OLD), Assigned((P2,), NEW)]


def test_what_the_next_assignment_leaves_out_is_surplus_until_it_is_released() -> None:
    """KIP-429: a member goes on with what it has until it has let go of it."""
    scene = Scene()
    scene.assign(OLD, P0, P1)
    scene.assign(NEW, P0)
    assert scene.table.surplus == {P1}
    scene.table.revoke(scene.table.surplus)
    assert (scene.table.lets_go_of(P1), scene.table.lets_go_of(P0)) == (True, False)
    assert scene.table.may_act(P1, OLD, 0), "the work in hand can be finished"
    scene.table.release()
    assert scene.table.held == {P0: OLD}
    assert scene.table.surplus == frozenset()
    assert not scene.table.lets_go_of(P1)


def test_s11_what_the_clock_took_comes_back_under_the_grant_in_force() -> None:
    """The user's object of the older grant stays lost: a new one says what is owned now."""
    scene = Scene()
    scene.assign(OLD, P0)
    scene.assign(NEW, P0, P1)
    scene.table.update(SESSION_MS)
    assert Lost((P0, P1), scene.table.loss or OVER) in scene.told
    scene.table.confirmed(SESSION_MS, NEW.generation)
    scene.table.update(SESSION_MS)
    assert scene.told_last == Assigned((P0, P1), NEW)
    assert not scene.table.may_act(P0, OLD, SESSION_MS)


def test_s11_what_is_lost_while_it_is_let_go_of_does_not_come_back() -> None:
    """The group was told nothing yet, but the user has been asked, and the assignment has gone."""
    scene = Scene()
    scene.assign(OLD, P0, P1)
    scene.table.revoke((P1,))
    scene.table.update(SESSION_MS)
    assert scene.table.lets_go_of(P1), "on_revoked still runs"
    scene.table.confirmed(SESSION_MS, OLD.generation)
    scene.table.update(SESSION_MS)
    assert scene.told_last == Assigned((P0,), OLD)
    scene.table.release()
    assert scene.table.held == {P0: OLD}
    assert not scene.table.lets_go_of(P1)


def test_what_is_given_back_while_it_is_let_go_of_is_told_anew_after_that() -> None:
    """The user has heard that it goes: only a new on_assigned says that it has it again."""
    scene = Scene()
    scene.assign(OLD, P0)
    scene.table.revoke((P0,))
    scene.assign(NEW, P0)
    assert scene.table.held == {P0: OLD}
    scene.table.release()
    assert scene.table.held == {}
    scene.table.update(0)
    assert scene.told_last == Assigned((P0,), NEW)


def test_s12_only_what_is_new_waits_for_an_old_holder() -> None:
    scene = Scene(takeover="wait")
    scene.assign(OLD, P0)
    scene.table.await_predecessor(1_000)
    scene.assign(NEW, P0, P1)
    assert scene.table.held == {P0: OLD}
    assert not scene.table.complete(999)
    assert scene.table.changes_at_ms == 1_000
    scene.table.update(1_000)
    assert scene.table.held == {P0: OLD, P1: NEW}
    assert scene.table.complete(1_000)


def test_what_was_granted_and_never_held_goes_with_the_assignment_without_a_word() -> None:
    scene = Scene(takeover="wait")
    scene.table.await_predecessor(1_000)
    scene.assign(OLD, P0)
    scene.table.forget()
    scene.table.update(1_000)
    assert (scene.told, scene.table.held, scene.table.changes_at_ms) == ([], {}, None)


def test_an_assignment_of_nothing_is_told_once() -> None:
    scene = Scene()
    scene.assign(OLD)
    scene.table.update(0)
    assert scene.told == [Assigned((), OLD)]
    assert scene.table.complete(0)
    assert not scene.table.holds(0)
