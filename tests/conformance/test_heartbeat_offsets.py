"""Rules of consumer groups that no transcript shows: offsets, reads, removals, failover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.talk import AWAY, Member, Shown, Told, refused

if TYPE_CHECKING:
    from conformance.conftest import Start

Json = Any


def test_j35_a_commit_from_outside_to_an_empty_group(start: Start) -> None:
    talk = start()
    talk.join("a")
    assert talk.commit("", -1, "t0") == ["UNKNOWN_MEMBER_ID"]
    talk.leave("a")

    assert talk.commit("", -1, "t0") == ["NONE"]
    assert talk.commit("anybody", -1, "t0") == ["NONE"]


def test_j36_j38_a_commit_of_an_unknown_member_or_of_a_newer_epoch(start: Start) -> None:
    talk = start()
    talk.join("a")

    assert talk.commit("b", 2, "t0") == ["UNKNOWN_MEMBER_ID"]
    assert talk.commit("a", 3, "t0") == ["STALE_MEMBER_EPOCH"]
    assert talk.commit("a", 2, "t0") == ["NONE"]


def test_j39_j40_a_commit_of_an_older_epoch_is_judged_by_each_partition(start: Start) -> None:
    """One partition that the member has had for a shorter time fails the whole commit."""
    talk = start({"t": 2, "u": 1})
    talk.join("a", "t")
    talk.beat("a", 2, subscribed_topic_names=["t", "u"])

    assert talk.commit("a", 2, "t0") == ["NONE"]
    assert talk.commit("a", 1, "t0") == ["STALE_MEMBER_EPOCH"]
    assert talk.commit("a", 2, "t0 u0") == ["STALE_MEMBER_EPOCH"] * 2


def test_j39_what_was_asked_back_may_still_be_committed(start: Start) -> None:
    talk = start({"t": 2})
    talk.join("a")
    talk.join("b")
    talk.beat("a", 2)

    assert talk.commit("a", 2, "t0 t1") == ["NONE", "NONE"]
    talk.beat("a", 2, "t0")
    assert talk.commit("a", 2, "t1") == ["STALE_MEMBER_EPOCH"]


def test_j41_an_instance_that_came_back_commits(start: Start) -> None:
    talk = start({"t": 1})
    talk.join("a", instance_id="i1")
    talk.go_away("a", "i1")
    talk.join("b", instance_id="i1")

    assert talk.commit("b", 2, "t0") == ["NONE"]
    assert talk.commit("a", 2, "t0") == ["UNKNOWN_MEMBER_ID"]


def test_j42_a_member_reads_offsets_at_its_epoch(start: Start) -> None:
    """With an id the epoch must be the member's; without id and epoch nothing is checked."""
    talk = start()
    assert talk.fetch("a", 2) == "NONE"  # of a group that is not there
    talk.join("a")

    assert talk.fetch("a", 2) == "NONE"
    assert talk.fetch("a", 1) == "STALE_MEMBER_EPOCH"
    assert talk.fetch("a", -1) == "STALE_MEMBER_EPOCH"
    assert talk.fetch("b", 2) == "UNKNOWN_MEMBER_ID"
    assert talk.fetch(None, -1) == "NONE"


def test_g27_an_operator_removes_members_in_one_step(start: Start) -> None:
    talk = start()
    talk.join("a", instance_id="i1")
    talk.join("b")
    talk.join("c")

    told = talk.remove(("", "i1"), ("b", None), ("d", None), ("d", "i1"))

    assert told == ["NONE", "NONE", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"]
    assert talk.group() == Shown("Assigning", 5, 4)
    assert talk.beat("c", 4) == Told(5, "t0 t1 t2 t3")


def test_g28_a_removal_of_nobody_changes_nothing(start: Start) -> None:
    talk = start()
    talk.join("a")

    assert talk.remove(("b", None), ("", "i1")) == ["UNKNOWN_MEMBER_ID"] * 2
    assert talk.remove() == []
    assert talk.group() == Shown("Stable", 2, 2)


def test_k15_who_is_away_keeps_the_group_from_being_deleted(start: Start) -> None:
    talk = start()
    talk.join("a", instance_id="i1")
    talk.go_away("a", "i1")

    answer = talk.call("op", "DeleteGroups", {"groups_names": ["g"]})

    assert answer == {"results": [{"group_id": "g", "error_code": "NON_EMPTY_GROUP"}]}


def test_l8_after_a_failover_every_member_has_a_full_session(start: Start) -> None:
    talk = start(config={"group.consumer.session.timeout.ms": "6000"})
    talk.join("a")
    talk.wait(4_000)
    talk.admin(restart=True)
    talk.wait(4_000)

    assert talk.beat("a", 2) == Told(2)
    talk.wait(6_000)
    assert talk.beat("a", 2) == refused("UNKNOWN_MEMBER_ID")


def test_l8_after_a_failover_who_must_give_up_has_its_time_again(start: Start) -> None:
    talk = start()
    talk.join("a", rebalance_timeout_ms=4_000)
    talk.join("b")
    talk.beat("a", 2)
    talk.wait(3_000)
    talk.admin(restart=True)
    talk.wait(3_000)
    assert set(talk.members()) == {"a", "b"}
    talk.wait(1_000)

    assert set(talk.members()) == {"b"}


def test_l9_after_a_failover_who_is_away_has_a_full_session(start: Start) -> None:
    talk = start({"t": 1}, {"group.consumer.session.timeout.ms": "6000"})
    talk.join("a", instance_id="i1")
    talk.go_away("a", "i1")
    talk.wait(4_000)
    talk.admin(restart=True)
    talk.wait(4_000)
    assert talk.members() == {"a": Member(AWAY, "t0", "t0")}
    talk.wait(2_000)

    assert talk.members() == {}


def test_l10_topics_are_compared_after_a_failover_too(start: Start) -> None:
    talk = start({"t": 1})
    talk.join("a")
    talk.admin(restart=True)
    assert talk.beat("a", 2) == Told(2)
    talk.admin(add_partitions="t", partitions=2)
    talk.admin(restart=True)

    assert talk.beat("a", 2) == Told(3, "t0 t1")


def test_l14_q1_offsets_came_before_the_group_of_another_type(start: Start) -> None:
    """What was committed from outside stays when a member of the heartbeat protocol joins."""
    talk = start()
    talk.commit("", -1, "t0")

    assert talk.join("a") == Told(2, "t0 t1 t2 t3")
    asked = {"group_id": "g", "member_id": None, "member_epoch": -1, "topics": None}
    answer = talk.call("op", "OffsetFetch", {"groups": [asked], "require_stable": False})
    ((topic,),) = (each["topics"] for each in answer["groups"])
    assert [line["committed_offset"] for line in topic["partitions"]] == [7]


def test_q14_a_classic_join_takes_the_place_of_an_empty_group(start: Start) -> None:
    """Its generations go on above the epochs (S13; Kafka: from 1); what was committed stays."""
    talk = start()
    talk.join("a")
    talk.leave("a")
    epoch = talk.described()["group_epoch"]
    talk.commit("", -1, "t0")
    join = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "group_instance_id": "i1",
        "protocol_type": "app",
        "protocols": [{"name": "p", "metadata": "m"}],
    }

    answer = talk.call("x", "JoinGroup", join)

    assert (answer["error_code"], answer["generation_id"]) == ("NONE", epoch + 1)
    assert talk.described()["error_code"] == "GROUP_ID_NOT_FOUND"
    assert talk.fetch(None, -1) == "NONE"
