"""A failing schedule is cut down to the faults that the failure needs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from simulation.disk import SyncedJournal
from simulation.faults import Planned, plan
from simulation.outcome import BUSY, run_seed
from simulation.schedule import US
from simulation.shrink import shrink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHAPE = BUSY._replace(fault_s=(4.0, 9.0))


def numbered(count: int) -> list[Planned]:
    return [Planned(number, number, "crash", "leader", 0) for number in range(1, count + 1)]


def test_two_faults_that_are_needed_together_are_left() -> None:
    """Whatever else is in the list goes, in far fewer runs than there are subsets."""
    runs: list[Sequence[Planned]] = []

    def fails(faults: Sequence[Planned]) -> bool:
        runs.append(faults)
        return {3, 17} <= {fault.number for fault in faults}

    left = shrink(numbered(24), fails)

    assert [fault.number for fault in left] == [3, 17]
    assert len(runs) <= 60


def test_what_fails_without_any_fault_needs_none() -> None:
    assert shrink(numbered(5), lambda _faults: True) == []


def test_the_number_of_runs_is_bounded() -> None:
    runs: list[int] = []

    def fails(faults: Sequence[Planned]) -> bool:
        runs.append(len(faults))
        return len(faults) == 40

    assert len(shrink(numbered(40), fails, runs_max=7)) == 40
    assert len(runs) <= 8


@contextmanager
def forgetful_disks() -> Iterator[None]:
    """A planted defect: a commit returns before it is on disk, and a death loses it all."""
    after: Any = SyncedJournal.die

    def die(self: SyncedJournal, *, synced: bool) -> None:
        after(self, synced=synced)
        image = self.load()
        self.restore(replace(image, entries=(), commit_index=image.anchor[0]))

    with mock.patch.object(SyncedJournal, "die", die):
        yield


def test_a_planted_defect_is_found_and_shrunk() -> None:
    """Disks that forget what they acknowledged: found by a checker, with less than all faults."""
    faults = plan(2, 4 * US, 9 * US)
    power_cut = Planned(99, 6 * US, "power-cut", "all", US)

    def broken(chosen: Sequence[Planned]) -> set[str]:
        outcome = run_seed(2, patches=(forgetful_disks,), faults=chosen, shape=SHAPE)
        return {violation.invariant for violation in outcome.violations}

    found = broken([*faults, power_cut])
    left = shrink([*faults, power_cut], lambda chosen: bool(found & broken(chosen)), runs_max=5)

    assert found
    assert len(left) < len(faults)
