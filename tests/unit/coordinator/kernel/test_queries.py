"""Reads: describe, list and fetch (K-K1 to K-K8, K-J16, K-J34, S23)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.coordinator.cluster.settings import InForce
from holdfast.coordinator.cluster.settings_catalogue import REGISTRY
from holdfast.coordinator.kernel import queries
from holdfast.coordinator.kernel.queries import FetchedOffset, ListedGroup
from holdfast.coordinator.model.events import (
    Assigned,
    AssignmentStored,
    GroupCreated,
    OffsetCommitted,
    OffsetsCommitted,
    RebalanceStarted,
    SettingChange,
    SettingsChanged,
    TopicsDeleted,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import GroupIdNotFound, InvalidConfig
from unit.coordinator.desk import Desk, member

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
AGAIN = RebalanceStarted("again", "", initial=False, timeout_ms=60_000)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    made.topics(t=2, u=1)
    yield made
    made.prove()


def shown(desk: Desk) -> list[tuple[str, bytes, bytes]]:
    described = queries.describe_group(desk.state, "g")
    return [(m.member_id, m.metadata, m.assignment) for m in described.members]


def test_k3_unknown_group_is_dead(desk: Desk) -> None:
    described = queries.describe_group(desk.state, "g")
    assert (described.error, described.state) == (GroupIdNotFound("g"), "Dead")
    assert (described.protocol_type, described.protocol_data, described.members) == ("", "", ())


def test_k1_stable_group(desk: Desk) -> None:
    desk.stable_group("g", member("b", "t"), member("a", "t", instance_id="i"))
    described = queries.describe_group(desk.state, "g")
    assert (described.error, described.state) == (None, "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "p")
    assert (described.generation, described.leader) == (1, "a")
    assert shown(desk) == [("b", b"meta-b", b"work"), ("a", b"meta-a", b"work")]
    assert [m.instance_id for m in described.members] == [None, "i"]
    granted = desk.records[-1].position.index
    assert {m.fencing_token for m in described.members} == {granted}


def test_k2_the_last_assignment_is_shown_also_while_not_stable(desk: Desk) -> None:
    """K-K2 and transcript describe_in_every_state: no metadata, and nothing for new members."""
    desk.stable_group("g", member("a", "t"))
    desk.happened("g", AGAIN, member("b", "t"))
    assert queries.describe_group(desk.state, "g").protocol_data == ""
    assert shown(desk) == [("a", b"", b"work"), ("b", b"", b"")]
    desk.completing("g")
    assert shown(desk) == [("a", b"", b"work"), ("b", b"", b"")]
    newest = queries.describe_group(desk.state, "g").members[1]
    assert newest.fencing_token is None


def test_k2_d10_an_abandoned_completing_round_takes_the_assignments_with_it(desk: Desk) -> None:
    desk.stable_group("g", member("a", "t"))
    desk.happened("g", AGAIN)
    desk.completing("g")
    desk.happened("g", AGAIN)
    assert shown(desk) == [("a", b"", b"")]


def test_e5_who_was_left_out_is_shown_with_nothing(desk: Desk) -> None:
    desk.rebalancing_group("g", member("a", "t"), member("b", "t"))
    desk.completing("g")
    desk.happened("g", AssignmentStored(1, (Assigned("a", b"all"),)))
    assert [assignment for _, _, assignment in shown(desk)] == [b"all", b""]


# --- list ---


@pytest.fixture
def three(desk: Desk) -> Desk:
    """As transcript list_with_filters: Stable, Empty after a commit, Empty with a pending id."""
    desk.stable_group("g", member("a", kind="app"))
    desk.happened("j", GroupCreated())
    desk.happened("i", GroupCreated(), OffsetsCommitted((OffsetCommitted("t", 0, 3, -1, ""),)))
    return desk


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], "gij"),
        (["Stable"], [], "g"),
        (["stable", "EMPTY"], [], "gij"),
        (["Dead"], [], ""),
        (["NoSuchState"], [], ""),
        ([], ["Classic"], "gij"),
        ([], ["consumer"], ""),
        (["Empty"], ["classic"], "ij"),
        (["Stable"], ["consumer"], ""),
    ],
)
def test_k8_filters_do_not_mind_case(
    three: Desk, states: list[str], types: list[str], expected: str
) -> None:
    listed = queries.list_groups(three.state, states, types)
    assert "".join(group.group_id for group in listed) == expected


def test_a_group_that_never_had_members_is_listed_without_protocol_type(three: Desk) -> None:
    assert queries.list_groups(three.state)[:2] == (
        ListedGroup("g", "app", "Stable", "classic"),
        ListedGroup("i", "", "Empty", "classic"),
    )


# --- offsets ---


def test_j16_unknown_group(desk: Desk) -> None:
    assert queries.fetch_offsets(desk.state, "g", (T0,)) == (FetchedOffset(T0, -1, -1, ""),)
    assert queries.fetch_offsets(desk.state, "g") == ()


def test_fetch_some_and_all(desk: Desk) -> None:
    made = (OffsetCommitted("u", 0, 3, 1, "note"), OffsetCommitted("t", 1, 4, -1, ""))
    desk.happened("g", GroupCreated(), OffsetsCommitted(made))
    at_u0, at_t1 = FetchedOffset(U0, 3, 1, "note", 0), FetchedOffset(T1, 4, committed_ms=0)
    assert queries.fetch_offsets(desk.state, "g") == (at_t1, at_u0)
    assert queries.fetch_offsets(desk.state, "g", (U0, T0)) == (at_u0, FetchedOffset(T0))


def test_j34_offsets_of_a_deleted_topic_are_not_shown(desk: Desk) -> None:
    desk.happened("g", GroupCreated(), OffsetsCommitted((OffsetCommitted("u", 0, 3, -1, ""),)))
    desk.happened("", TopicsDeleted(("u",)))
    assert queries.fetch_offsets(desk.state, "g") == ()
    assert queries.fetch_offsets(desk.state, "g", (U0,)) == (FetchedOffset(U0),)


# --- topics and settings ---


def test_topics_by_name(desk: Desk) -> None:
    assert queries.list_topics(desk.state) == (TopicSize("t", 2), TopicSize("u", 1))
    assert queries.list_topics(desk.state, ["u", "nosuch"]) == (TopicSize("u", 1),)


def test_s23_settings_tell_where_their_value_comes_from(desk: Desk) -> None:
    size = "group.max_size"
    desk.happened("", SettingsChanged("g", (SettingChange(size, "5"),)))
    (own,) = described(desk, "g", size)
    (common,) = described(desk, "", size)
    assert own == (REGISTRY[size], 5, "group")
    assert common == (REGISTRY[size], 10_000, "default")


def test_s23_all_settings_by_name_and_for_a_group_its_own(desk: Desk) -> None:
    names = [each.setting.name for each in described(desk, "")]
    assert names == sorted(REGISTRY)
    of_group = {each.setting.name for each in described(desk, "g")}
    assert of_group == {name for name in REGISTRY if REGISTRY[name].scope == "group"}


def test_s23_an_unknown_setting_is_told(desk: Desk) -> None:
    found = queries.describe_settings(desk.state, "", ["group.max_sizes"])
    assert isinstance(found, InvalidConfig)
    assert "did you mean group.max_size?" in found.problem


def described(desk: Desk, group_id: str, *names: str) -> tuple[InForce, ...]:
    found = queries.describe_settings(desk.state, group_id, names)
    assert not isinstance(found, InvalidConfig)
    return found
