"""S3: what older nodes of the cluster could not read is kept off the log, and refused in words."""

from typing import get_args

from holdfast.coordinator.model.events import Event, LevelRaised, TopicsDeleted
from holdfast.coordinator.model.levels import LEVEL_MAX, SINCE, level_of, too_low
from holdfast.coordinator.model.rejections import UnsupportedVersion
from holdfast.coordinator.model.state import State


def test_a_cluster_is_at_the_first_level_until_one_is_raised() -> None:
    assert State().level == 1
    assert State(raised_to=2).level == 2


def test_the_table_names_events_and_levels_that_there_are() -> None:
    assert set(SINCE) <= set(get_args(Event))
    assert all(1 < level <= LEVEL_MAX for level in SINCE.values())


def test_an_event_without_a_line_is_of_the_first_level() -> None:
    assert level_of(TopicsDeleted(())) == 1


def test_a_raise_is_of_the_level_that_it_raises_to() -> None:
    """A node that knows raises, but not that level, must not read on."""
    assert level_of(LevelRaised(2)) == 2
    assert level_of(LevelRaised(7)) == 7


def test_a_command_whose_event_the_level_does_not_hold_is_refused() -> None:
    refused = too_low(State(), LevelRaised, "an access rule")
    assert refused == UnsupportedVersion("an access rule", needed=2, level=1)
    assert too_low(State(raised_to=2), LevelRaised, "an access rule") is None
    assert too_low(State(), TopicsDeleted, "a deletion") is None
