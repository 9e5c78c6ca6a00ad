"""A group of the heartbeat protocol in the store: what it costs, and what is never stored (S18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.consumer.state import Member
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.state import Group, State
from holdfast.storage.codec.event_codec import CodecError, decode_state, encode_state
from holdfast.storage.codec.schema_versions import of_state
from holdfast.storage.codec.state_image import changes, digest_of, restore
from unit.coordinator.consumer.talk import Talk, parts

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def talk() -> Talk:
    """`a` and `b` share t, each by an expression, and have to agree on it yet."""
    made = Talk(t=4)
    made.send(made.joins("a", "t", regex="fo+"))
    made.send(made.joins("b", "t", instance_id="i"))
    made.core.advance(1)
    return made


def kept(before: State, after: State) -> list[str]:
    """The kinds of the records that a step from one state to the next writes or removes."""
    found = [each.content for each in changes(before, after)]
    return sorted(
        "removed" if each is None else type(decode_state(each).value).__name__ for each in found
    )


def stored(state: State) -> Sequence[bytes]:
    return [each.content for each in changes(State(), state) if each.content is not None]


def test_s18_a_step_of_a_member_dirties_its_own_record(talk: Talk) -> None:
    """And the counters of the group and of the cluster; no other member's, and no target."""
    before = talk.core.state
    talk.send(talk.says("a", 2))
    assert kept(before, talk.core.state) == ["Group", "Member", "State"]

    before = talk.core.state
    talk.send(talk.says("a", 2, owned=parts("t0", "t1")))
    assert kept(before, talk.core.state) == ["Group", "Member", "State"]


def test_s18_a_departure_removes_its_records_alone(talk: Talk) -> None:
    before = talk.core.state
    talk.send(talk.says("a", -1))

    assert kept(before, talk.core.state) == ["Group", "State", *["removed"] * 3]


def test_what_follows_from_the_members_is_restored(talk: Talk) -> None:
    """Owners, instances, counts, who is settled; and the group's state, which is not stored."""
    state = talk.core.state
    again = restore(stored(state))

    assert again == state
    assert digest_of(again) == digest_of(state)
    assert again.groups["g"].state == "Reconciling"
    assert not any(b"Reconciling" in each for each in stored(state))


def test_a_record_of_another_type_of_group_is_refused(talk: Talk) -> None:
    """As a member of one type in a group of another."""
    orphan = [each for each in stored(talk.core.state) if _kind(each) is MemberTarget]
    classic = [each for each in stored(talk.core.state) if _kind(each) is State]

    with pytest.raises(CodecError, match="groups that are not there"):
        restore([*classic, *orphan])


def test_s3_its_records_are_of_the_level_that_knows_it(talk: Talk) -> None:
    """An older version must refuse them, rather than read a group in part."""
    kinds = {Group, Member, MemberTarget, ResolvedRegex, TopicSize}
    values = [decode_state(each).value for each in stored(talk.core.state)]

    assert {of_state(each) for each in values if type(each) in kinds} == {3}


def test_s3_a_topic_of_level_1_has_the_bytes_that_it_always_had() -> None:
    talk = Talk(level=1, t=4)
    (topic,) = [each for each in stored(talk.core.state) if _kind(each) is TopicSize]

    assert decode_state(topic).value == TopicSize("t", 4)
    assert topic[:2] == encode_state(decode_state(topic))[:2] == bytes((8, 2))


def _kind(content: bytes) -> type:
    return type(decode_state(content).value)
