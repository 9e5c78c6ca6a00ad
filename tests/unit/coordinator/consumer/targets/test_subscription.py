"""S7: what could never be written in one entry is refused with field and limit, or waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer import usage
from holdfast.coordinator.consumer.validation import CLASSIC_ID_MAX
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.v1 import events_pb2 as ev
from unit.coordinator.consumer.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "t" * 200


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk(**{LONG: 1})
    yield made
    made.core.check_replays()


def test_a_group_has_so_many_expressions(talk: Talk) -> None:
    """Of 32 each may have any number of users; a member may put another in the place of its own."""
    for number in range(32):
        assert talk.told(talk.joins(f"m{number}", regex=f"a{number}")).error is None

    error = talk.told(talk.joins("more", regex="b")).error
    assert isinstance(error, InvalidRequest)
    assert (error.field, "32 are allowed" in error.problem) == ("subscribed_topic_regex", True)
    assert talk.told(talk.joins("more", regex="a7")).error is None
    assert talk.told(talk.joins("m3", regex="b")).error is None


def test_names_of_all_members_together_fit_into_an_entry(talk: Talk) -> None:
    talk.set(max_size="2", metadata_bytes_max="256")
    for member_id in ("a", "b"):
        assert talk.told(talk.joins(member_id, LONG)).error is None

    error = talk.told(talk.joins("c", LONG)).error
    assert isinstance(error, InvalidRequest)
    assert error.field == "subscribed_topic_names"
    assert "609 bytes, allowed are 512" in error.problem
    assert talk.told(talk.joins("b", LONG)).error is None, "who is there may come again"
    assert talk.told(talk.joins("c", "u")).error is None


def test_a_target_for_all_members_fits_into_an_entry(talk: Talk) -> None:
    """However it is computed: each member may get some of the topic."""
    talk.set(max_size="2", assignment_bytes_max="160")
    assert talk.told(talk.joins("a", LONG)).error is None

    talk.grow(**{LONG: 2})
    error = talk.told(talk.joins("b", LONG)).error
    assert isinstance(error, InvalidRequest)
    assert "1072 bytes, allowed are 1040" in error.problem


def test_a_topic_that_grew_too_large_gives_no_target(talk: Talk) -> None:
    """Nothing loops, and members keep what they have; the group is Assigning until it shrinks."""
    talk.set(max_size="2", assignment_bytes_max="160")
    talk.send(talk.joins("a", LONG))
    talk.grow(**{LONG: 200})

    told = talk.told(talk.says("a", 2))
    assert (told.error, told.member_epoch, talk.group.state) == (None, 2, "Assigning")
    talk.set(assignment_bytes_max="1000")
    assert talk.told(talk.says("a", 2)).member_epoch == 3


def test_s7_a_member_with_the_longest_id_has_the_bytes_that_it_is_reckoned_with() -> None:
    """What was found to fit is written: else each heartbeat of the group would fail."""
    longest = "c" * CLASSIC_ID_MAX
    alone = ev.TargetStored(targets=[ev.MemberTarget(member_id=longest)])

    assert alone.ByteSize() <= usage.MEMBER_ON_LOG
