"""The cluster's own commands: topics, settings, and forming it (S23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.coordinator.cluster import topics
from holdfast.coordinator.model.commands import (
    AlterSettings,
    Caller,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    FormCluster,
    SealSegment,
)
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    ClusterFormed,
    Event,
    LevelRaised,
    MemberUpdated,
    PartitionsAdded,
    RebalanceStarted,
    SegmentSealed,
    SettingChange,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.member_profile import MemberProfile, Protocol
from holdfast.coordinator.model.rejections import (
    InvalidConfig,
    InvalidGroupId,
    InvalidPartitions,
    InvalidRequest,
    InvalidTopic,
    TopicExists,
    TopicInUse,
    UnknownTopic,
)
from holdfast.coordinator.model.replies import NamedReply
from holdfast.coordinator.model.subscriptions import Survey
from unit.coordinator.desk import Desk, member

CALLER = Caller(1)
SIZE = SettingChange("group.max_size", "5")


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.prove()


def errors(answer: NamedReply) -> list[object]:
    return [result.error for result in answer.results]


def create(desk: Desk, *sizes: tuple[str, int]) -> tuple[list[object], tuple[Event, ...]]:
    command = CreateTopics(CALLER, tuple(TopicSize(*size) for size in sizes))
    answer, events = desk.decide(topics.create_topics, command)
    return errors(answer), events


def grow(desk: Desk, *sizes: tuple[str, int]) -> tuple[list[object], tuple[Event, ...]]:
    command = CreatePartitions(CALLER, tuple(TopicSize(*size) for size in sizes))
    answer, events = desk.decide(topics.create_partitions, command)
    return errors(answer), events


def alter(
    desk: Desk, *changes: SettingChange, group_id: str = ""
) -> tuple[list[object], tuple[Event, ...]]:
    answer, events = desk.decide(topics.alter_settings, AlterSettings(CALLER, group_id, changes))
    return errors(answer), events


# --- topics ---


def test_topics_are_created_and_each_has_its_own_result(desk: Desk) -> None:
    desk.topics(old=1)
    found, events = create(desk, ("new", 3), ("old", 3), ("zero", 0))
    assert found == [
        None,
        TopicExists("old"),
        InvalidPartitions("zero", "0 asked for, 1 to 100000 allowed"),
    ]
    assert events == (TopicsCreated((TopicSize("new", 3),)),)
    assert desk.state.topics["new"].num_partitions == 3


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "a" * 250, "a\n"])
def test_names_that_kafka_refuses(desk: Desk, name: str) -> None:
    found, events = create(desk, (name, 1))
    assert [type(error) for error in found] == [InvalidTopic]
    assert events == ()


def test_names_that_kafka_allows(desk: Desk) -> None:
    assert create(desk, ("A.b_c-9", 1), ("a" * 249, 1))[0] == [None, None]


def test_a_name_that_stands_twice_is_refused_and_the_others_are_not(desk: Desk) -> None:
    found, events = create(desk, ("t", 1), ("t", 2), ("u", 1))
    twice = InvalidRequest("name", "'t' stands 2 times in the call")
    assert found == [twice, twice, None]
    assert events == (TopicsCreated((TopicSize("u", 1),)),)


def test_partitions_only_grow(desk: Desk) -> None:
    desk.topics(t=2, u=2, v=2)
    found, events = grow(desk, ("t", 3), ("u", 2), ("v", 1), ("nosuch", 5), ("t2", 1))
    assert found[0] is None
    assert [type(error) for error in found[1:]] == [
        InvalidPartitions,
        InvalidPartitions,
        UnknownTopic,
        UnknownTopic,
    ]
    assert events == (PartitionsAdded((TopicSize("t", 3),)),)
    assert desk.state.topics["t"].num_partitions == 3


def test_partitions_have_a_limit(desk: Desk) -> None:
    desk.topics(t=2)
    alter(desk, SettingChange("topic.partitions_max", "10"))
    assert grow(desk, ("t", 11))[1] == ()
    assert grow(desk, ("t", 10))[0] == [None]


def test_topics_are_deleted(desk: Desk) -> None:
    desk.topics(t=2)
    answer, events = desk.decide(
        topics.delete_topics, DeleteTopics(CALLER, ("t", "nosuch", "x", "x"))
    )
    assert errors(answer)[:2] == [None, UnknownTopic("nosuch")]
    assert [type(error) for error in errors(answer)[2:]] == [InvalidRequest, InvalidRequest]
    assert events == (TopicsDeleted(("t",)),)
    assert "t" not in desk.state.topics


def delete_topics(desk: Desk, command: DeleteTopics) -> tuple[list[object], tuple[Event, ...]]:
    answer, events = desk.decide(topics.delete_topics, command)
    return errors(answer), events


def test_a_topic_that_members_subscribe_to_is_kept_and_the_others_of_the_call_go(
    desk: Desk,
) -> None:
    """GROUP_SUBSCRIBED_TO_TOPIC, as for its offsets (K-J24): whoever owns it would not be told."""
    desk.topics(t=2, u=2, v=1)
    desk.stable_group("g", member("m1", "t"), member("m2", "u"))
    found, events = delete_topics(desk, DeleteTopics(CALLER, ("t", "u", "v")))
    assert found == [TopicInUse("t", ("g",), 1), TopicInUse("u", ("g",), 1), None]
    assert events == (TopicsDeleted(("v",)),)


def test_force_deletes_a_topic_that_members_subscribe_to(desk: Desk) -> None:
    desk.topics(t=2)
    desk.stable_group("g", member("m1", "t"))
    assert delete_topics(desk, DeleteTopics(CALLER, ("t",), force=True))[0] == [None]
    assert "t" not in desk.state.topics


def test_a_join_phase_counts_as_well_and_only_the_topics_that_are_named(desk: Desk) -> None:
    """K-J25 is for offsets: there a doubt keeps everything, here it would keep every topic."""
    desk.topics(t=2, u=2)
    desk.rebalancing_group("g", member("m1", "t"))
    found, _ = delete_topics(desk, DeleteTopics(CALLER, ("t", "u")))
    assert found == [TopicInUse("t", ("g",), 1), None]


@pytest.mark.parametrize("kind", ["connect", "consumer"])
def test_what_cannot_be_read_keeps_no_topic(desk: Desk, kind: str) -> None:
    desk.topics(t=2)
    seen = member("m1", kind=kind)
    profile = seen.profile._replace(protocols=(Protocol("p", b"?", None),))
    desk.stable_group("g", replace(seen, profile=profile))
    assert delete_topics(desk, DeleteTopics(CALLER, ("t",)))[0] == [None]


def test_a_few_of_many_groups_are_named_and_the_others_counted(desk: Desk) -> None:
    desk.topics(t=2)
    for number in range(7):
        desk.stable_group(f"g{number}", member(f"m{number}", "t"))
    (found,), _ = delete_topics(desk, DeleteTopics(CALLER, ("t",)))
    assert found == TopicInUse("t", ("g0", "g1", "g2", "g3", "g4"), 7)


OTHER = MemberProfile("client", "host", 10_000, 60_000, (Protocol("p", b"", ("u",)),))
UPDATED = MemberUpdated("m1", OTHER, "")


def test_a_group_that_came_or_went_since_the_survey_is_seen_when_it_is_decided(
    desk: Desk,
) -> None:
    """The look at all groups takes many turns of the loop, in which members join and leave."""
    desk.topics(t=2)
    desk.stable_group("went", member("m1", "t"))
    survey = Survey(desk.state.groups, frozenset({"went"}))
    desk.happened(
        "went", RebalanceStarted("other topics", "m1", initial=False, timeout_ms=1), UPDATED
    )
    desk.stable_group("came", member("m2", "t"))
    (found,), _ = delete_topics(desk, DeleteTopics(CALLER, ("t",), survey=survey))
    assert found == TopicInUse("t", ("came",), 1)


# --- settings ---


def test_s23_settings_change_on_the_log(desk: Desk) -> None:
    assert alter(desk, SIZE) == ([None], (SettingsChanged("", (SIZE,)),))
    assert desk.state.settings.cluster["group.max_size"] == "5"


def test_s23_settings_of_a_group_that_does_not_exist_yet(desk: Desk) -> None:
    assert alter(desk, SIZE, group_id="g")[0] == [None]
    assert desk.state.settings.groups["g"]["group.max_size"] == "5"


def test_s23_all_or_none(desk: Desk) -> None:
    found, events = alter(desk, SIZE, SettingChange("nosuch", "1"))
    assert found[0] is None
    assert isinstance(found[1], InvalidConfig)
    assert events == ()


def test_a_setting_that_stands_twice_or_a_bad_group(desk: Desk) -> None:
    found, events = alter(desk, SIZE, SIZE)
    assert [type(error) for error in found] == [InvalidRequest, InvalidRequest]
    assert events == ()
    assert isinstance(alter(desk, SIZE, group_id="a\0b")[0][0], InvalidGroupId)


def test_s23_a_cluster_is_formed_once_with_its_first_settings(desk: Desk) -> None:
    _, events = desk.decide(topics.form, FormCluster("c1", (SIZE,)))
    assert events == (ClusterFormed("c1", (SIZE,)),)
    assert desk.state.cluster_id == "c1"
    assert dict(desk.state.settings.cluster) == {SIZE.key: "5"}
    assert desk.decide(topics.form, FormCluster("c2", ()))[1] == ()


def test_s19_a_cluster_begins_at_the_level_that_all_who_form_it_can_run_at(desk: Desk) -> None:
    """A log of the first level has no event that an older version could not read (S3)."""
    _, events = desk.decide(topics.form, FormCluster("c1", (), level=2))
    assert events == (ClusterFormed("c1", ()), LevelRaised(2))
    assert desk.state.level == 2


def test_s23_a_cluster_is_not_formed_with_settings_that_cannot_be(desk: Desk) -> None:
    with pytest.raises(InvariantBroken, match=r"group\.max_size"):
        desk.decide(topics.form, FormCluster("c1", (SettingChange("group.max_size", "0"),)))


@pytest.mark.parametrize(("level", "created"), [(1, [0, 0]), (2, [3, 5])])
def test_s3_a_topic_tells_from_level_2_on_when_it_was_created(
    level: int, created: list[int], desk: Desk
) -> None:
    """K-M27: one that was deleted and made again is another one; to grow does not change it."""
    desk.topics(other=1)
    if level > 1:
        desk.happened("", LevelRaised(level))
    else:
        desk.topics(another=1)
    desk.topics(t=2)
    first = desk.state.topics["t"]
    desk.happened("", PartitionsAdded((TopicSize("t", 3),)), TopicsDeleted(("t",)))
    desk.topics(t=3)

    assert [first.created_index, desk.state.topics["t"].created_index] == created
    desk.happened("", PartitionsAdded((TopicSize("t", 4),)))
    assert desk.state.topics["t"] == TopicSize("t", 4, created[1])


def test_s22_of_two_boundaries_that_were_chosen_at_once_one_is_set(desk: Desk) -> None:
    """S22: the segment of the other would not hold the record that tells where it begins."""
    desk.topics(a=1)
    desk.topics(b=1)
    nowhere, applied = Position(0, 0), desk.state.applied_index
    first = SealSegment(Position(applied - 1, 0), nowhere)
    second = SealSegment(Position(applied, 0), nowhere)

    assert desk.decide(topics.seal, first)[1] == (SegmentSealed(first.last),)
    assert desk.decide(topics.seal, second)[1] == ()
    assert desk.state.sealed == first.last


@pytest.mark.parametrize("ahead", [0, 1])
def test_s22_no_boundary_is_set_again_nor_beyond_what_is_applied(ahead: int, desk: Desk) -> None:
    desk.topics(a=1)
    sealed = Position(desk.state.applied_index, 0)
    desk.decide(topics.seal, SealSegment(sealed, Position(0, 0)))
    further = Position(desk.state.applied_index + 1, 0) if ahead else sealed

    assert desk.decide(topics.seal, SealSegment(further, sealed))[1] == ()
