"""What a user of either shell can rely on: one suite, run against asyncio and against threads."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.poll import until
from holdfast.client import (
    CooperativeAssignor,
    Fenced,
    Offset,
    OwnershipLost,
    Partition,
    TopicPartition,
    aio,
    sync,
)
from holdfast.v1 import extras_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from unit.client.both_shells import Shell, cluster
from unit.client.fake_cluster import LOG_TIME_MS, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

both = pytest.mark.parametrize("shell", list(Shell), ids=lambda shell: shell.value)
QUICK: dict[str, Any] = {
    "group": "g",
    "topics": ["t"],
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 20,
}


def first(owned: Iterator[Partition], count: int) -> list[Partition]:
    return [next(owned) for _ in range(count)]


@both
def test_a_member_owns_checks_commits_and_restarts(shell: Shell) -> None:
    revoked: list[int] = []
    with cluster() as (group, node):
        with shell.member(
            node.address,
            instance_id="i-1",
            on_revoked=lambda gone: revoked.extend(p.number for p in gone),
            **QUICK,
        ) as member:
            partitions = first(member.owned(), 4)
            assert [partition.number for partition in partitions] == [0, 1, 2, 3]
            partitions[0].check()
            assert len(member.assignment) == 4
            member.commit({("t", 0): Offset(5, "half")})
            assert member.committed() == {TopicPartition("t", 0): Offset(5, "half")}
        assert revoked == [0, 1, 2, 3]
        with pytest.raises(OwnershipLost):
            partitions[0].check()
        (release,) = group.requests["Heartbeat"]
        assert release.holdfast.release  # S12: leaving the block is a planned restart


@both
def test_kip345_a_static_member_that_closes_leaves_only_if_told_to(shell: Shell) -> None:
    with cluster() as (group, node):
        with shell.member(node.address, instance_id="i-1", **QUICK) as member:
            first(member.owned(), 4)
        assert group.requests["LeaveGroup"] == []
        with shell.member(node.address, instance_id="i-1", **QUICK) as member:
            first(member.owned(), 4)
            member.leave()
        (leave,) = group.requests["LeaveGroup"]
        assert [one.group_instance_id for one in leave.members] == ["i-1"]


@both
def test_owned_ends_when_the_member_leaves(shell: Shell) -> None:
    with cluster() as (group, node), shell.member(node.address, **QUICK) as member:
        numbers = []
        for partition in member.owned():
            numbers.append(partition.number)
            if partition.number == 3:
                member.leave()
        assert numbers == [0, 1, 2, 3]
        assert len(group.requests["LeaveGroup"]) == 1


@both
def test_t5_fenced_is_final_and_visible_in_the_exception_the_probe_and_the_log(
    shell: Shell, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-345: who holds the identity, and for how long; nothing comes back by itself.

    The cluster's log time is not this machine's wall time, so only the age says anything (S8).
    """
    since_ms = LOG_TIME_MS - 90_000
    began = datetime.now(UTC)
    with cluster() as (group, node), caplog.at_level(logging.ERROR, "holdfast.client"):
        member = shell.member(node.address, instance_id="i-1", **QUICK)
        member.start()
        first(member.owned(), 4)
        assert member.health().live
        assert member.health().fenced is None
        group.heartbeat_extras = extras_pb2.ResponseExtras(
            holder="i-1-other", holder_since_ms=since_ms
        )
        group.heartbeat_code = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
        with pytest.raises(Fenced) as caught:
            member.next_owned()
        health = member.health()
        with pytest.raises(Fenced):
            member.restart()  # what the end of a `with` block calls
        joins = len(group.requests["JoinGroup"])
    fenced = caught.value
    assert fenced.holder == "i-1-other"
    assert fenced.age_ms is not None
    assert 90_000 <= fenced.age_ms < 150_000  # and what the test took
    assert fenced.since is not None
    assert began <= fenced.since + timedelta(milliseconds=fenced.age_ms) <= datetime.now(UTC)
    assert "2023-" not in str(fenced)
    assert health.fenced is fenced
    assert (health.live, health.ready, health.owned) == (False, False, 0)
    assert health.phase == "stopped"
    (line,) = said(caplog)
    assert "held by 'i-1-other' for " in line.getMessage()
    assert joins == 1


@both
def test_a_probe_tells_where_a_member_stands(shell: Shell) -> None:
    with cluster() as (_, node):
        member = shell.member(node.address, instance_id="i-1", **QUICK)
        before = member.health()
        with member:
            first(member.owned(), 4)
            during = member.health()
            generation = member.generation
        after = member.health()
    assert (before.phase, before.ready, before.live, before.lease_left_ms) == (
        "new",
        False,
        True,
        None,
    )
    assert (during.phase, during.owned, during.generation) == ("stable", 4, generation)
    assert during.lease_left_ms is not None
    assert 0 < during.lease_left_ms <= 4_800  # S11: at most 0.8 of the session
    assert str(during) == "i-1 of group g: stable, owns 4"
    assert (after.phase, after.ready, after.live) == ("stopped", False, True)


@both
def test_a_callback_that_raises_stops_the_member_with_its_error(shell: Shell) -> None:
    def on_assigned(_: Sequence[Partition]) -> None:
        raise RuntimeError("no room on the disk")

    with (
        cluster() as (_, node),
        pytest.raises(RuntimeError, match="no room"),
        shell.member(node.address, on_assigned=on_assigned, **QUICK) as member,
    ):
        member.next_owned()


@both
def test_kip429_what_is_kept_over_a_rebalance_is_neither_revoked_nor_given_again(
    shell: Shell,
) -> None:
    revoked: list[int] = []
    with (
        cluster() as (group, node),
        shell.member(
            node.address,
            assignors=[CooperativeAssignor()],
            on_revoked=lambda gone: revoked.extend(p.number for p in gone),
            **QUICK,
        ) as member,
    ):
        owned = member.owned()
        kept = first(owned, 4)
        group.partitions = 6
        group.heartbeat_code = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS
        until(lambda: len(group.requests["JoinGroup"]) > 1, "the second join")
        group.heartbeat_code = ErrorCode.ERROR_CODE_NONE
        assert [partition.number for partition in first(owned, 2)] == [4, 5]
        assert revoked == []
        assert all(partition.owned for partition in kept)


@both
def test_kip345_members_of_one_process_share_a_stream_and_list_their_ids(shell: Shell) -> None:
    with cluster() as (group, node):
        with shell.members(
            node.address, count=3, instance_id="indexer-0", client_id="me", **QUICK
        ) as members:
            assert members.instance_ids == tuple(f"indexer-0-thread-{n}" for n in (1, 2, 3))
            assert len(members) == 3
            assert [member.instance_id for member in members] == list(members.instance_ids)
            for member in members:
                first(member.owned(), 4)  # the fake gives everything to everyone
            until(lambda: len(group.requests["HeartbeatStream"]) > 6, "heartbeats of all")
            assert [health.phase for health in members.health()] == ["stable"] * 3
        assert group.streams == 1
        assert group.client_ids == {"me"}
        releases = {one.group_instance_id for one in group.requests["Heartbeat"]}
        assert releases == set(members.instance_ids)


@both
def test_a_process_has_at_least_one_member(shell: Shell) -> None:
    with pytest.raises(ValueError, match="at least one"):
        shell.members("127.0.0.1:1", count=0, **QUICK)


@both
def test_members_of_several_groups_can_share_a_connection(shell: Shell) -> None:
    """client.instance_ids: what an operator removes together, while it runs."""
    with cluster() as (group, node), shell.connection(node.address) as connection:
        with (
            shell.member(connection, **(QUICK | {"group": "g1", "instance_id": "a"})) as one,
            shell.member(connection, **(QUICK | {"group": "g2"})) as other,
        ):
            first(one.owned(), 4)
            first(other.owned(), 4)
            assert connection.instance_ids == ("a",)
            assert {health.group for health in connection.health()} == {"g1", "g2"}
            until(lambda: len(group.requests["HeartbeatStream"]) > 4, "heartbeats of both")
        assert connection.instance_ids == ()
        assert group.streams == 1


@both
def test_what_describes_a_connection_cannot_be_given_to_a_member_on_one(shell: Shell) -> None:
    with (
        shell.connection("127.0.0.1:1") as connection,
        pytest.raises(ValueError, match="belong to the Connection"),
    ):
        shell.member(connection, client_id="me", **QUICK)


@pytest.mark.parametrize("name", ["Admin", "Connection", "Member", "Members"])
def test_both_shells_have_the_same_public_names(name: str) -> None:
    def names(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    # Of a connection, what members take from it is not for users, and differs.
    inner = {"caller", "heartbeats", "attach", "detach", "shared"}
    assert names(getattr(aio, name)) - inner == names(getattr(sync, name)) - inner
