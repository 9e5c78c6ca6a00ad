"""S3: a draft never emits an event that the level in force does not hold."""

import pytest

from holdfast.coordinator.groups import draft as draft_module
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.kernel.decide import new_draft
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import LevelRaised, TopicsDeleted
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.volatile import Volatile

pytestmark = pytest.mark.source("it replaces the table of levels")


def of_the_cluster(state: State) -> Draft:
    return new_draft(state, Volatile(), "")


@pytest.fixture(autouse=True)
def deletions_are_of_level_2(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this release had brought them."""
    levels = {LevelRaised: 2, TopicsDeleted: 2}
    monkeypatch.setattr(draft_module, "VARYING", levels)
    monkeypatch.setattr(draft_module, "level_of", lambda event: levels[type(event)])


def test_an_event_above_the_level_in_force_is_a_defect() -> None:
    draft = of_the_cluster(State())
    with pytest.raises(InvariantBroken, match="TopicsDeleted needs level 2, but level 1"):
        draft.emit(TopicsDeleted(()), "J34")
    assert draft.proposed == []


def test_it_may_follow_the_raise_of_the_same_batch() -> None:
    draft = of_the_cluster(State())
    draft.emit(LevelRaised(2), "S19")
    draft.emit(TopicsDeleted(()), "J34")
    assert [type(each.event) for each in draft.proposed] == [LevelRaised, TopicsDeleted]


def test_a_level_is_never_lowered_nor_raised_twice() -> None:
    draft = of_the_cluster(State(raised_to=3))
    for level in (2, 3):
        with pytest.raises(InvariantBroken, match="level 3"):
            draft.emit(LevelRaised(level), "S3")
