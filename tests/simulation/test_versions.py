"""Mixed versions in the simulator: what a seed plans, and that an end that came too early is seen.

Whole runs of mixed seeds are among those of `./dev sim --seeds N`; here a short one.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from holdfast.chaos.history.happenings import Recorded
from holdfast.coordinator.model.events import Cause, GroupDeleted, LevelRaised, Record
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.server.rpc.nodes import Nodes, Upgrade
from simulation.outcome import BUSY, planned, run_seed, shape_of
from simulation.versions import BUILDS, NEWER, OLDER, beyond, exchanges, first_builds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.coordinator.model.events import Event
    from holdfast.raft.api import Build
    from simulation.faults import Planned

SHORT = BUSY._replace(fault_s=(4.0, 16.0), mixed=True)
SEED = 3
"""All of its nodes are older at first, and two of them go up and back again."""


@contextmanager
def ended_whoever_is_older() -> Iterator[None]:
    """The end of an upgrade that asks no node what it can run."""
    with mock.patch.object(Nodes, "upgrade", return_value=Upgrade(LEVEL_MAX, "")):
        yield


@pytest.mark.parametrize("seed", range(40))
def test_until_the_last_exchange_a_node_is_older_and_then_all_are_newer(seed: int) -> None:
    """So nobody may end the upgrade before, and somebody can afterwards."""
    builds = first_builds(seed)
    *earlier, last = exchanges(seed, 4_000_000, 54_000_000, 1)
    for each in earlier:
        builds[each.target] = BUILDS[each.kind]
        assert OLDER in builds.values()
    builds[last.target] = BUILDS[last.kind]

    assert set(builds.values()) == {NEWER}


def test_some_seeds_are_mixed_and_number_their_exchanges_behind_the_faults() -> None:
    mixed = [seed for seed in range(1, 31) if shape_of(seed).mixed]
    faults = planned(mixed[0], shape_of(mixed[0]))

    assert 5 <= len(mixed) <= 15
    assert [fault.number for fault in faults] == list(range(1, len(faults) + 1))
    assert faults[-1].kind == "upgrade"


def exchanges_alone() -> list[Planned]:
    return [fault for fault in planned(SEED, SHORT) if fault.kind in BUILDS]


@pytest.mark.slow
def test_s3_the_upgrade_ends_once_all_nodes_are_newer_and_not_before() -> None:
    """An operator asks for it all the time."""
    outcome = run_seed(SEED, faults=exchanges_alone(), shape=SHORT)
    records = [each for each in outcome.history if isinstance(each, Recorded)]
    raises = [each for each in records if each.kind == "LevelRaised"]
    last = max(fault.at_us for fault in outcome.faults)

    assert outcome.violations == ()
    assert len(raises) == 1
    assert raises[0].at_us > last


@pytest.mark.slow
def test_s3_an_end_that_came_too_early_is_seen() -> None:
    patches = (ended_whoever_is_older,)

    outcome = run_seed(SEED, patches=patches, faults=exchanges_alone(), shape=SHORT)

    assert "level" in {broken.invariant for broken in outcome.violations}


@pytest.mark.parametrize(
    ("build", "event", "found"),
    [
        (OLDER, LevelRaised(LEVEL_MAX), True),
        (OLDER, GroupDeleted(), False),
        (NEWER, LevelRaised(LEVEL_MAX), False),
        (None, LevelRaised(LEVEL_MAX), False),
    ],
)
def test_s3_what_a_node_could_not_read_is_an_event_above_its_newest_level(
    build: Build | None, event: Event, *, found: bool
) -> None:
    record = Record(Position(1, 0), "", 1, 0, 0, Cause("", ""), "", "", event)

    assert bool(beyond(build, OLDER.newest, [record])) is found
    assert bool(beyond(build, NEWER.newest)) is (build == OLDER)
