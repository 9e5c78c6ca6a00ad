"""Offsets: commit, delete, expire (K-J1 to K-J34, K-C8 to K-C11, K-F12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from holdfast.coordinator.kernel.decide import new_draft
from holdfast.coordinator.model.commands import Caller, CommitOffsets, DeleteOffsets, ExpireOffsets
from holdfast.coordinator.model.effects import Renew
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    GroupCreated,
    GroupDeleted,
    GroupEmptied,
    InstanceReleased,
    MembersLeft,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    Part,
    Proposed,
    RebalanceStarted,
    SettingChange,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    Rejection,
    UnknownMemberId,
    UnknownTopic,
)
from holdfast.coordinator.offsets import commits
from holdfast.storage.codec.event_codec import encode_part
from unit.coordinator.desk import Desk, member

WEEK_MS = 7 * 24 * 3_600_000
T0 = TopicPartition("t", 0)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.topics(t=2, u=1)
    yield made
    made.prove()


def place(topic: str, partition: int = 0, metadata: str = "") -> OffsetCommitted:
    return OffsetCommitted(topic, partition, 5, -1, metadata)


def commit(
    desk: Desk,
    *places: OffsetCommitted,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    group_id: str = "g",
) -> tuple[list[Rejection | None], tuple[Event, ...]]:
    command = CommitOffsets(
        Caller(1), group_id, generation, member_id, instance_id, places or (place("t"),)
    )
    reply, events = desk.decide(commits.commit, command, group_id)
    assert reply.error is None
    return [result.error for result in reply.partitions], events


def delete(desk: Desk, *places: TopicPartition) -> tuple[object, tuple[Event, ...]]:
    reply, events = desk.decide(commits.delete, DeleteOffsets(Caller(1), "g", places or (T0,)), "g")
    return reply.error or [result.error for result in reply.partitions], events


def sweep(desk: Desk, at_ms: int) -> tuple[Event, ...]:
    return desk.decide(commits.expire, ExpireOffsets("g", at_ms), "g")[1]


def open_join_phase(desk: Desk) -> None:
    desk.happened("g", RebalanceStarted("again", "", initial=False, timeout_ms=60_000))


def everybody_leaves(desk: Desk, *member_ids: str) -> None:
    open_join_phase(desk)
    desk.happened("g", MembersLeft(member_ids, "done"), GroupEmptied(2))


# --- commit ---


def test_j1_commit_from_outside_makes_a_simple_group(desk: Desk) -> None:
    errors, events = commit(desk, place("t", 0), place("t", 1, "note"))
    assert errors == [None, None]
    assert events == (GroupCreated(), OffsetsCommitted((place("t", 0), place("t", 1, "note"))))
    assert desk.state.groups["g"].body.protocol_type is None
    assert desk.state.groups["g"].offsets[TopicPartition("t", 1)].metadata == "note"


def test_j2_commit_at_a_generation_to_an_absent_group(desk: Desk) -> None:
    assert commit(desk, generation=1) == ([GroupIdNotFound("g")], ())


def test_c11_j4_ids_are_not_looked_at_in_an_empty_group(desk: Desk) -> None:
    commit(desk)
    errors, events = commit(desk, member_id="anything", instance_id="any")
    assert errors == [None]
    assert events == (OffsetsCommitted((place("t"),)),)


def test_j5_commit_from_outside_to_a_group_with_members(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    assert commit(desk) == ([UnknownMemberId("")], ())


def test_j5_instance_id_alone_is_checked_as_a_member(desk: Desk) -> None:
    """Transcript commit_minus_one_to_active_group, step 5."""
    desk.stable_group("g", member("a", "t"))
    assert commit(desk, instance_id="i1") == ([UnknownMemberId("")], ())


def test_j6_a_member_without_generation_passes_as_member_and_fails_at_the_generation(
    desk: Desk,
) -> None:
    desk.stable_group("g", member("a", "t"))
    assert commit(desk, member_id="a") == ([IllegalGeneration(-1, 1)], ())


def test_j7_unknown_member(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    assert commit(desk, generation=1, member_id="ghost") == ([UnknownMemberId("ghost")], ())


@pytest.mark.parametrize("generation", [0, 2])
def test_j8_other_generation_older_or_newer(desk: Desk, generation: int) -> None:
    desk.stable_group("g", member("a", "t"))
    errors, events = commit(desk, generation=generation, member_id="a")
    assert (errors, events) == ([IllegalGeneration(generation, 1)], ())


def test_j9_j10_completing_refuses_but_wrong_member_and_generation_win(desk: Desk) -> None:
    desk.rebalancing_group("g", member("a", "t"))
    desk.completing("g")
    assert commit(desk, generation=1, member_id="a")[0] == [RebalanceInProgress()]
    assert commit(desk, generation=0, member_id="a")[0] == [IllegalGeneration(0, 1)]
    assert commit(desk, generation=1, member_id="ghost")[0] == [UnknownMemberId("ghost")]


def test_j11_work_may_be_saved_before_rejoining(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    open_join_phase(desk)
    assert commit(desk, generation=1, member_id="a")[0] == [None]


def test_j14_metadata_is_limited_in_characters_and_partition_by_partition(desk: Desk) -> None:
    desk.happened("", SettingsChanged("", (SettingChange("offset.metadata_max_bytes", "3"),)))
    errors, events = commit(desk, place("t", 0, "äöü"), place("t", 1, "four"))
    assert errors == [None, OffsetMetadataTooLarge(4, 3)]
    assert events == (GroupCreated(), OffsetsCommitted((place("t", 0, "äöü"),)))


def test_a_group_does_not_come_into_being_by_a_commit_of_nothing(desk: Desk) -> None:
    errors, events = commit(desk, place("nosuch"))
    assert (errors, events) == ([UnknownTopic("nosuch")], ())
    assert "g" not in desk.state.groups


def test_unknown_topics_and_partitions_fail_alone_and_first(desk: Desk) -> None:
    """Transcript commit_and_fetch_several_topics, step 4; Kafka looks before it asks the group."""
    places = (place("nosuch"), place("t", 2), place("t", -1), place("t", 1))
    errors, _ = commit(desk, *places)
    assert errors == [UnknownTopic("nosuch"), UnknownTopic("t-2"), UnknownTopic("t--1"), None]
    errors, _ = commit(desk, *places, generation=7)
    assert errors[-1] == UnknownMemberId("")
    assert errors[0] == UnknownTopic("nosuch")


def test_c8_wrong_member_of_an_instance_is_fenced_also_at_a_wrong_generation(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t", instance_id="i1"))
    errors, events = commit(desk, generation=9, member_id="b", instance_id="i1")
    assert (errors, events) == ([FencedInstanceId("i1", "a", "client", 0)], ())


def test_c9_unknown_instance(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t", instance_id="i1"))
    errors, _ = commit(desk, generation=1, member_id="a", instance_id="i2")
    assert errors == [UnknownMemberId("a")]


def test_s12_a_released_id_commits_no_more(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t", instance_id="i1"))
    desk.happened("g", InstanceReleased("i1", "a"))
    fenced = FencedInstanceId("i1", "a", "client", 0)
    assert commit(desk, generation=1, member_id="a", instance_id="i1") == ([fenced], ())
    assert commit(desk, generation=1, member_id="a") == ([UnknownMemberId("a")], ())


def renewed(desk: Desk, generation: int, *places: OffsetCommitted) -> bool:
    draft = new_draft(desk.state, desk.volatile, "g")
    commits.commit(draft, CommitOffsets(Caller(1), "g", generation, "a", None, places))
    return any(isinstance(effect, Renew) for effect in draft.effects)


def test_f12_a_valid_commit_is_a_sign_of_life_in_stable_and_preparing(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    assert renewed(desk, 1, place("t"))
    assert not renewed(desk, 0, place("t"))
    open_join_phase(desk)
    assert renewed(desk, 1, place("t"))


def test_f12_completing_does_not_renew(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    open_join_phase(desk)
    desk.completing("g")
    assert not renewed(desk, 2, place("t"))


def heard_again(desk: Desk, member_id: str, instance_id: str | None) -> bool:
    """Whether the repeat of a commit of generation 1 renews a session."""
    draft = new_draft(desk.state, desk.volatile, "g")
    command = CommitOffsets(Caller(1), "g", 1, member_id, instance_id, (place("t"),))
    commits.heard_again(draft, command)
    return any(isinstance(effect, Renew) for effect in draft.effects)


def test_f12_a_repeat_of_a_fenced_identity_renews_nobody(desk: Desk) -> None:
    """K-C9: the instance has another member now, whose sign of life this is not."""
    desk.stable_group("g", member("a", "t", instance_id="i1"), member("b", "t"))
    assert heard_again(desk, "a", "i1")
    assert not heard_again(desk, "old", "i1")
    assert not heard_again(desk, "b", "i1")


def test_f12_a_repeat_of_a_released_identity_renews_nobody(desk: Desk) -> None:
    """S12: what was given up ends with its session, however often its last commit is repeated."""
    desk.stable_group("g", member("a", "t", instance_id="i1"))
    assert heard_again(desk, "a", "i1")
    desk.happened("g", InstanceReleased("i1", "a"))
    assert not heard_again(desk, "a", "i1")
    assert not heard_again(desk, "a", None)


def test_the_empty_group_id_names_the_cluster_and_takes_no_offsets(desk: Desk) -> None:
    command = CommitOffsets(Caller(1), "", -1, "", None, (place("t"),))
    reply, events = desk.decide(commits.commit, command)
    assert isinstance(reply.error, InvalidGroupId)
    assert events == ()


# --- delete ---


def test_j22_delete_in_an_absent_group(desk: Desk) -> None:
    assert delete(desk) == (GroupIdNotFound("g"), ())


def test_j23_delete_in_a_group_of_another_type_with_members(desk: Desk) -> None:
    desk.stable_group("g", member("a", kind="app"), member("b", kind="app"))
    assert delete(desk) == (NonEmptyGroup(2), ())


def test_j23_delete_in_an_empty_group(desk: Desk) -> None:
    commit(desk)
    assert delete(desk, T0, TopicPartition("u", 0)) == ([None, None], (OffsetsDeleted((T0,)),))
    assert not desk.state.groups["g"].offsets


def test_j24_subscribed_topics_are_kept_others_go(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, place("t"), place("u"), generation=1, member_id="a")
    u0 = TopicPartition("u", 0)
    assert delete(desk, T0, u0) == ([GroupSubscribedToTopic("t"), None], (OffsetsDeleted((u0,)),))


def test_j25_every_topic_counts_as_subscribed_while_nobody_knows(desk: Desk) -> None:
    """Before the first protocol is chosen, and for a member whose topics are not known."""
    desk.rebalancing_group("g", member("a", "u"))
    assert delete(desk)[0] == [GroupSubscribedToTopic("t")]


def test_delete_of_an_unknown_topic_and_of_nothing(desk: Desk) -> None:
    commit(desk)
    unknown, empty = TopicPartition("nosuch", 0), TopicPartition("t", 1)
    assert delete(desk, unknown, empty) == ([UnknownTopic("nosuch"), None], ())


# --- expire ---


def test_j27_offsets_age_from_when_the_group_became_empty(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, generation=1, member_id="a")
    left_ms = desk.later(5_000)
    everybody_leaves(desk, "a")
    assert sweep(desk, left_ms + WEEK_MS - 1) == ()
    assert sweep(desk, left_ms + WEEK_MS) == (OffsetsDeleted((T0,)), GroupDeleted())


def test_j27_bettered_a_later_commit_from_outside_is_kept_in_full(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, generation=1, member_id="a")
    everybody_leaves(desk, "a")
    reset_ms = desk.later(1_000)
    commit(desk, place("u"))
    assert sweep(desk, reset_ms + WEEK_MS - 1) == (OffsetsDeleted((T0,)),)


def test_j28_stable_consumer_group_loses_only_what_nobody_subscribes_to(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, place("t"), place("u"), generation=1, member_id="a")
    assert sweep(desk, WEEK_MS) == (OffsetsDeleted((TopicPartition("u", 0),)),)


def test_j29_nothing_expires_while_rebalancing(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, place("u"), generation=1, member_id="a")
    open_join_phase(desk)
    assert sweep(desk, 2 * WEEK_MS) == ()
    desk.completing("g")
    assert sweep(desk, 2 * WEEK_MS) == ()


def test_j29_nothing_expires_in_a_stable_group_of_another_type(desk: Desk) -> None:
    desk.stable_group("g", member("a", kind="app"))
    commit(desk, generation=1, member_id="a")
    assert sweep(desk, 2 * WEEK_MS) == ()


def test_j30_simple_group_ages_offset_by_offset(desk: Desk) -> None:
    commit(desk, place("t"))
    second_ms = desk.later(60_000)
    commit(desk, place("u"))
    assert sweep(desk, WEEK_MS) == (OffsetsDeleted((T0,)),)
    expected = (OffsetsDeleted((TopicPartition("u", 0),)), GroupDeleted())
    assert sweep(desk, second_ms + WEEK_MS) == expected


def test_j32_bettered_an_empty_group_without_offsets_is_kept_for_the_retention(desk: Desk) -> None:
    """Kafka would delete it at the next sweep, and generations would start over."""
    desk.stable_group("g", member("a", "t"))
    everybody_leaves(desk, "a")
    assert sweep(desk, WEEK_MS - 1) == ()
    assert sweep(desk, WEEK_MS) == (GroupDeleted(),)


def test_j34_offsets_of_a_deleted_topic_go_at_once_in_any_state(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    commit(desk, place("t"), place("u"), generation=1, member_id="a")
    open_join_phase(desk)
    desk.happened("", TopicsDeleted(("t",)))
    assert sweep(desk, 0) == (OffsetsDeleted((T0,)),)


def test_s23_retention_of_one_group(desk: Desk) -> None:
    own = SettingsChanged("g", (SettingChange("offsets.retention_minutes", "1"),))
    desk.happened("", own)
    commit(desk)
    assert sweep(desk, 59_999) == ()
    assert sweep(desk, 60_000) == (OffsetsDeleted((T0,)), GroupDeleted())


@pytest.mark.source("it lowers a constant of the rules")
def test_s7_one_sweep_lists_a_bounded_number(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "EXPIRED_AT_ONCE_MAX", 2)
    commit(desk, place("t", 0), place("t", 1), place("u", 0))
    (first,) = sweep(desk, WEEK_MS)
    assert isinstance(first, OffsetsDeleted)
    assert len(first.partitions) == 2
    rest, gone = sweep(desk, WEEK_MS)
    assert isinstance(rest, OffsetsDeleted)
    assert len(rest.partitions) == 1
    assert gone == GroupDeleted()


def test_s7_one_sweep_lists_what_an_entry_holds(desk: Desk) -> None:
    """With the smallest entries and long names: of both rules together, and all in the end."""
    names = {"log.entry_bytes_max": 64 * 1024, "group.max_size": 10}
    small = SettingsChanged("", tuple(SettingChange(key, str(n)) for key, n in names.items()))
    desk.happened("", TopicsCreated((TopicSize("t" * 249, 500), TopicSize("u" * 249, 500))))
    for name in ("t", "u"):
        commit(desk, *(place(name * 249, number) for number in range(300)))
    desk.happened("", TopicsDeleted(("t" * 249,)), small)
    sizes = []
    while "g" in desk.state.groups:
        made = sweep(desk, WEEK_MS)
        part = Part("g", 1, 1, tuple(Proposed(event, Cause("J26", "sweep")) for event in made))
        sizes.append(len(encode_part(part)))
        assert len(sizes) < 600, "it ends"

    assert max(sizes) <= 64 * 1024
    assert len(sizes) > 2
    assert sizes[0] > 32 * 1024, "an entry is made use of"


def test_sweep_of_an_absent_group_does_nothing(desk: Desk) -> None:
    assert sweep(desk, WEEK_MS) == ()


def test_a_member_that_cannot_be_read_subscribes_to_everything(desk: Desk) -> None:
    """K-J25: None in place of topics, for the type `consumer`."""
    joined = member("a")
    unread = joined.profile.protocols[0]._replace(topics=None)
    profile = joined.profile._replace(protocols=(unread,))
    desk.stable_group("g", replace(joined, profile=profile))
    assert delete(desk)[0] == [GroupSubscribedToTopic("t")]


def test_s7_a_commit_that_no_entry_could_hold_is_refused_before_it_is_proposed(desk: Desk) -> None:
    """Else it would take with it what shares its batch; Kafka's code for it is 28."""
    small = (
        SettingChange("group.max_size", "10"),
        SettingChange("log.entry_bytes_max", "65536"),
    )
    desk.happened("", SettingsChanged("", small))
    fits = [place("t", 0, "x" * 4_000) for _ in range(13)]
    assert commit(desk, *fits)[0] == [None] * 13
    command = CommitOffsets(Caller(1), "g", -1, "", None, (*fits, *fits))
    reply, events = desk.decide(commits.commit, command, "g")
    assert isinstance(reply.error, InvalidCommitOffsetSize)
    assert reply.error.size > reply.error.most
    assert events == ()
