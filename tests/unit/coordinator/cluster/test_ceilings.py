"""S7, S23: ceilings on what all groups and topics may take up together.

One caller can make up names as fast as it can ask. Refused is what makes the cluster larger than a
setting allows, before anything is recorded; what makes nothing larger is never refused.
"""

from __future__ import annotations

import pytest

from harness.calls import Calls, P
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups import usage
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CommitOffsets,
    CreatePartitions,
    CreateTopics,
    DeleteGroup,
    DeleteOffsets,
    DeleteTopics,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from holdfast.coordinator.model.events import (
    Assigned,
    OffsetCommitted,
    SettingChange,
    TopicSize,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.member_profile import Protocol
from holdfast.coordinator.model.rejections import MemberIdRequired, PolicyViolation, Rejection
from holdfast.coordinator.model.replies import JoinReply, NamedReply, OffsetsReply, SyncReply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import Usage

LARGE = (Protocol("p", bytes(4_000_000)),)


class Cluster(Calls):
    """Calls of several groups and of an operator; each gives how it was refused, or None."""

    def error(self) -> Rejection | None:
        """How the last call was refused."""
        reply = self.core.answers[self.last]
        if isinstance(reply, NamedReply):
            return reply.results[0].error
        if isinstance(reply, OffsetsReply) and reply.error is None:
            return reply.partitions[0].error
        assert isinstance(reply, JoinReply | SyncReply | OffsetsReply)
        return reply.error

    def sets(self, group_id: str = "", **values: int) -> Rejection | None:
        changes = (SettingChange(_name(key), str(value)) for key, value in values.items())
        self.submit(AlterSettings(self.caller(), group_id, tuple(changes)))
        return self.error()

    def joins(self, group_id: str, protocols: tuple[Protocol, ...] = P) -> Rejection | None:
        """A dynamic member's first call."""
        fresh = f"m-{self.last + 1}"
        command = JoinGroup(
            self.caller(), group_id, "", None, 10_000, 15_000, "app", protocols, fresh
        )
        self.submit(command)
        return self.error()

    def commits(
        self, group_id: str, *offsets: OffsetCommitted, request_id: str = ""
    ) -> Rejection | None:
        places = offsets or (OffsetCommitted("t", 0, self.last, -1, ""),)
        caller = self.caller(request_id)
        self.submit(CommitOffsets(caller, group_id, -1, "", None, places))
        return self.error()

    def creates(self, *topics: tuple[str, int]) -> Rejection | None:
        self.submit(CreateTopics(self.caller(), tuple(TopicSize(*each) for each in topics)))
        return self.error()

    def grows(self, topic: str, count: int) -> Rejection | None:
        self.submit(CreatePartitions(self.caller(), (TopicSize(topic, count),)))
        return self.error()

    @property
    def used(self) -> Usage:
        return self.core.used()

    def fill(self, beyond: int = 0) -> None:
        """Lower the ceiling on bytes to what is taken up, and `beyond` less."""
        assert self.sets(state_bytes_max=self.used.state_bytes - beyond) is None


def _name(key: str) -> str:
    return f"cluster.{key}" if key.endswith("_max") else key.replace("__", ".")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.creates(("t", 4))
    return made


def padded(cluster: Cluster) -> None:
    """Make the state large enough for a ceiling on its bytes (64 KiB at least)."""
    filler = (Protocol("p", bytes(300_000)),)
    command = JoinGroup(
        cluster.caller(), "filler", "", "f", 1_800_000, 15_000, "app", filler, "f-1"
    )
    cluster.submit(command)
    cluster.core.advance(0)
    give = (Assigned("f-1", b""),)
    cluster.submit(SyncGroup(cluster.caller(), "filler", 1, "f-1", "f", "app", "p", give))
    assert cluster.error() is None


# --- groups ---


def test_s7_a_group_above_the_ceiling_is_refused_and_nothing_is_recorded(cluster: Cluster) -> None:
    cluster.sets(groups_max=2)
    assert isinstance(cluster.joins("g"), MemberIdRequired)
    assert cluster.commits("h") is None
    before = cluster.core.state
    refused = PolicyViolation("cluster.groups_max", 2, "groups", 2, 1)

    assert cluster.joins("made-up") == refused
    assert cluster.commits("made-up") == refused
    cluster.join("i1")
    assert "i1" in cluster.group.body.instances, "a group that is there takes members"
    assert cluster.core.state.topics is before.topics
    assert set(cluster.core.state.groups) == {"g", "h"}
    assert "made-up" not in {applied.entry.parts[0].group_id for applied in cluster.core.log}


def test_s7_a_static_member_makes_no_group_above_the_ceiling(cluster: Cluster) -> None:
    cluster.sets(groups_max=1)
    cluster.commits("h")
    cluster.join("i1")

    assert cluster.joined().error == PolicyViolation("cluster.groups_max", 1, "groups", 1, 1)
    assert cluster.volatile.armed == {}, "no deadline stays of what was refused"


def test_s7_a_full_cluster_can_be_emptied(cluster: Cluster) -> None:
    cluster.sets(groups_max=1)
    cluster.commits("h")
    assert cluster.commits("g") is not None
    cluster.submit(DeleteGroup(cluster.caller(), "h"))
    assert cluster.error() is None

    assert cluster.commits("g") is None


# --- members ---


def test_s7_a_member_above_the_ceiling_is_refused_and_who_is_one_comes_back(
    cluster: Cluster,
) -> None:
    cluster.stable("i1", "i2")
    cluster.sets(members_max=2)
    refused = PolicyViolation("cluster.members_max", 2, "members", 2, 1)
    cluster.join("i3")
    assert cluster.joined().error == refused
    assert cluster.joins("g") == refused
    assert cluster.joins("elsewhere") == refused

    cluster.join("i2", fresh="i2-9")
    assert cluster.joined().error is None, "a static replacement is not new"
    cluster.join("i1", "i1-1")
    cluster.join("i2", "i2-9")
    cluster.core.advance(0)
    assert cluster.group.generation == 2, "members that are there rebalance"
    cluster.leave(LeavingMember("i2-9", "i2"))
    cluster.join("i3")
    assert "i3" in cluster.group.body.instances


def test_s7_a_member_id_that_was_handed_out_counts_until_it_is_used_or_forgotten(
    cluster: Cluster,
) -> None:
    cluster.sets(members_max=1)
    assert isinstance(cluster.joins("g"), MemberIdRequired)
    assert isinstance(cluster.joins("g"), PolicyViolation)
    assert isinstance(cluster.joins("h"), PolicyViolation)
    (member_id,) = cluster.volatile.pending
    cluster.join(None, member_id)
    cluster.core.advance(0)
    assert cluster.group.body.members.keys() == {member_id}, "its bearer is not counted twice"
    cluster.leave(LeavingMember(member_id, None))
    assert isinstance(cluster.joins("h"), MemberIdRequired)
    cluster.core.advance(10_000)

    assert isinstance(cluster.joins("g"), MemberIdRequired), "its time is over"


def test_s7_a_ceiling_below_what_is_there_stops_only_growth(cluster: Cluster) -> None:
    cluster.stable("i1", "i2")
    cluster.sets(members_max=1, groups_max=1, topics_max=1, partitions_max=1)
    cluster.heartbeat("i1-1", instance_id="i1")
    cluster.join("i2", fresh="i2-9")
    assert cluster.joined().error is None
    assert cluster.commits("g") is not None, "i2 is there, so an outsider may not"
    cluster.leave(LeavingMember("i1-1", "i1"), LeavingMember("i2-9", "i2"))
    assert cluster.group.state == "Empty"

    assert cluster.commits("g") is None


# --- topics and partitions ---


def test_s7_topics_and_their_partitions_have_ceilings(cluster: Cluster) -> None:
    cluster.sets(topics_max=2, partitions_max=9)
    assert cluster.creates(("u", 6)) == PolicyViolation(
        "cluster.partitions_max", 9, "partitions", 4, 6
    )
    assert cluster.creates(("u", 2), ("v", 1)) == PolicyViolation(
        "cluster.topics_max", 2, "topics", 1, 2
    )
    assert set(cluster.core.state.topics) == {"t"}, "a call is refused whole"
    assert cluster.creates(("u", 5)) is None
    assert cluster.grows("u", 6) == PolicyViolation("cluster.partitions_max", 9, "partitions", 9, 1)
    cluster.submit(DeleteTopics(cluster.caller(), ("t",)))

    assert cluster.grows("u", 9) is None


# --- bytes ---


def test_s7_newcomers_stop_at_the_ceiling_on_bytes(cluster: Cluster) -> None:
    padded(cluster)
    cluster.fill()
    for refused in (
        cluster.joins("g"),
        cluster.joins("filler"),
        cluster.commits("g"),
        cluster.creates(("u", 1)),
        cluster.sets("made-up", group__max_size=7),
    ):
        assert isinstance(refused, PolicyViolation)
        assert refused.setting == "cluster.state_bytes_max"
    assert cluster.core.state.settings.groups == {}
    used = cluster.used.state_bytes
    assert cluster.sets(state_bytes_max=used + 100_000) is None, "it can always be raised"

    assert cluster.commits("g") is None


def test_s7_offsets_are_overwritten_in_a_full_cluster_and_do_not_grow(cluster: Cluster) -> None:
    padded(cluster)
    cluster.commits("g", OffsetCommitted("t", 0, 1, -1, "note"))
    cluster.fill(beyond=20_000)

    assert cluster.commits("g", OffsetCommitted("t", 0, 2, -1, "ette")) is None
    assert isinstance(
        cluster.commits("g", OffsetCommitted("t", 0, 3, -1, "longer")), PolicyViolation
    )
    assert isinstance(cluster.commits("g", OffsetCommitted("t", 1, 3, -1, "")), PolicyViolation)
    gone = (TopicPartition("t", 0),)
    cluster.submit(DeleteOffsets(cluster.caller(), "g", gone))
    assert cluster.error() is None


def test_s7_members_that_are_there_go_on_in_a_full_cluster(cluster: Cluster) -> None:
    """A rejoin with more metadata and a larger assignment have the reserve of a quarter."""
    cluster.stable("i1")
    padded(cluster)
    cluster.fill()
    more = (Protocol("p", bytes(1_000)),)
    cluster.join("i1", "i1-1", protocols=more)
    assert cluster.joined().error is None
    cluster.sync("i1-1", {"i1-1": bytes(5_000)}, instance_id="i1")

    assert cluster.error() is None


def test_s7_the_reserve_has_an_end_and_a_restart_needs_none(cluster: Cluster) -> None:
    """Else one member could take all memory by joining again with ever more metadata."""
    cluster.stable("i1")
    padded(cluster)
    cluster.fill()
    cluster.join("i1", "i1-1", protocols=LARGE)
    assert isinstance(cluster.joined().error, PolicyViolation)
    cluster.fill(beyond=cluster.used.state_bytes // 4)

    cluster.join("i1", fresh="i1-9")
    assert cluster.joined().error is None, "a process that took its place with no more bytes"
    cluster.join("i1", "i1-9")
    assert cluster.joined().error is None, "and asks for a rebalance"
    cluster.sync("i1-9", {"i1-9": b""}, instance_id="i1")
    assert cluster.error() is None
    cluster.leave(LeavingMember("i1-9", "i1"))
    assert not cluster.group.body.members


def test_s15_stored_answers_count_and_do_not_fill_the_node(cluster: Cluster) -> None:
    """A commit over many partitions leaves its whole answer in the table of requests."""
    padded(cluster)
    places = [OffsetCommitted("t", number % 4, 1, -1, "") for number in range(2_000)]
    cluster.commits("g", *places)
    cluster.fill()
    refused, served = None, 0
    while refused is None:
        served += 1
        refused = cluster.commits("g", *places, request_id=_request_id(served, 1))
        assert served < 100, "it ends"

    assert isinstance(refused, PolicyViolation)
    most = cluster.core.used().state_bytes
    limit = refused.most
    assert limit < most <= limit + limit // 8, "what overwrites has an eighth of the ceiling more"
    cluster.core.advance(3 * 600_000)
    after = _request_id(served, cluster.core.now_ms)
    assert cluster.commits("g", *places[:1], request_id=after) is None, "the table forgets"


def _request_id(number: int, at_ms: int) -> str:
    digits = f"{at_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}"


# --- the sum ---


def test_s23_the_defaults_are_far_above_the_goals() -> None:
    """10,000 members in one group, 19,000 groups, a topic of 100,000 partitions."""
    most = settings.of_cluster(State()).ceilings

    assert most.groups >= 5 * 19_000
    assert most.members >= 10 * 10_000
    assert most.partitions >= 10 * 100_000
    assert most.state_bytes >= 5 * (10_000 * usage.MEMBER_BYTES + 19_000 * usage.GROUP_BYTES)


def test_s7_a_group_goes_on_however_far_a_ceiling_was_lowered(cluster: Cluster) -> None:
    """An assignment that is no larger is never refused."""
    cluster.stable("i1", "i2")
    padded(cluster)
    cluster.sets(state_bytes_max=65_536)
    assert cluster.used.state_bytes > 3 * 65_536

    cluster.join("i1", "i1-1")
    cluster.join("i2", "i2-1")
    generation = cluster.group.generation
    cluster.sync("i1-1", {"i1-1": b"i2-1", "i2-1": b"i1-1"}, instance_id="i1")

    assert cluster.synced().error is None
    assert cluster.group.generation == generation


def test_s7_a_call_that_removes_somebody_is_never_refused(cluster: Cluster) -> None:
    """Its stored answer names everybody who was asked for: it may be long, and goes with time."""
    cluster.stable("i1")
    padded(cluster)
    cluster.sets(state_bytes_max=65_536)
    strangers = [LeavingMember("x" * 200 + str(number), None) for number in range(60)]
    everybody = (LeavingMember("i1-1", "i1"), *strangers)
    command = LeaveGroup(cluster.caller(_request_id(1, 1)), "g", everybody, operator=True)
    cluster.submit(command)

    assert not cluster.group.body.members
