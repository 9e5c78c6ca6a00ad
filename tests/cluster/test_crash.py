"""Kill -9 of the leader, of a follower and of all three, under load: nothing acknowledged is lost.

One workload runs through all three faults; each test then holds its outcome to one rule. Who wants
to see the defects that these checks find, looks at tests/simulation, where they are planted.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cluster.kept import contents, fetched
from cluster.left import Left, read_left
from cluster.load import CREW, CREW_SIZE, PARTITIONS, TOPIC, Acked, Load, Place
from cluster.processes import RunningCluster, poll, running
from holdfast.coordinator.model.events import GenerationStarted, OffsetsCommitted, RebalanceStarted
from holdfast.v1.admin_pb2 import DescribedGroup, DescribeGroupsRequest
from holdfast.v1.admin_pb2_grpc import AdminServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator

MORE = 100
"""Commits, begun after a fault, that must be acknowledged before the next one."""


class Crew(NamedTuple):
    """The static members' group as the leader describes it."""

    generation: int
    instances: frozenset[str]
    assignments: frozenset[tuple[str, bytes]]
    stayed: frozenset[str]
    """Member ids of those that never restarted."""


class Aftermath(NamedTuple):
    """What was seen during the faults, and what the nodes left behind."""

    witness: tuple[Acked, ...]
    unknown: tuple[str, ...]
    lost: tuple[str, ...]
    offsets: dict[Place, int]
    crew_before: Crew
    crew_after: Crew
    stable_from: int
    left: dict[str, Left]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    """Run the workload through all faults, once."""
    directory = tmp_path_factory.mktemp("crash") / "c"
    with running(directory, 3, "--set", "group.initial_rebalance_delay_ms=0") as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Load(cluster.addresses, cluster.tls) as load:
            load.await_crew()
            before = stable_crew(cluster)
            stable_from = index_of(cluster)
            kill_the_leader(cluster, load)
            kill_a_follower(cluster, load)
            kill_everyone(cluster, load)
            after = stable_crew(cluster)
        offsets = fetched(cluster)
        cluster.stop_at_one_index()
        yield Aftermath(
            witness=tuple(load.witness),
            unknown=tuple(load.unknown),
            lost=tuple(load.lost),
            offsets=offsets,
            crew_before=before,
            crew_after=after,
            stable_from=stable_from,
            left={name: read_left(cluster.data(name)) for name in cluster.names},
        )


# --- the faults ---


def kill_the_leader(cluster: RunningCluster, load: Load) -> None:
    leader = cluster.leader()
    load.await_more(MORE, bounces=1)
    moment = time.monotonic()
    cluster.kill(leader)
    load.await_more(MORE, bounces=1)
    print(f"first accepted change after the leader died: {load.first_after(moment):.2f} s")
    come_back(cluster, leader)


def kill_a_follower(cluster: RunningCluster, load: Load) -> None:
    follower = cluster.follower()
    cluster.kill(follower)
    load.await_more(MORE, bounces=1)
    come_back(cluster, follower)


def kill_everyone(cluster: RunningCluster, load: Load) -> None:
    moment = time.monotonic()
    cluster.kill(*cluster.names)
    cluster.bring_back(*cluster.names)
    load.await_more(MORE, bounces=1)
    print(f"first accepted change after all three died: {load.first_after(moment):.2f} s")


def come_back(cluster: RunningCluster, name: str) -> None:
    """Bring a node back and wait until it has caught up with what was committed then."""
    wanted = index_of(cluster)
    cluster.bring_back(name)

    def follows() -> bool:
        seen = cluster.describe(name)
        return seen is not None and seen.applied_index >= wanted

    poll(follows, f"{name} has caught up to entry {wanted}")


# --- looking ---


def index_of(cluster: RunningCluster) -> int:
    """The last entry that the leader knows to be committed."""
    seen = cluster.describe(cluster.leader())
    assert seen is not None
    return seen.commit_index


def stable_crew(cluster: RunningCluster) -> Crew:
    """The crew, once it is stable and complete."""
    found: list[DescribedGroup] = []

    def stable() -> bool:
        stub = AdminServiceStub(cluster.channel(cluster.leader()))
        answer = stub.DescribeGroups(DescribeGroupsRequest(groups=[CREW]), timeout=10.0)
        found[:] = answer.groups
        group = answer.groups[0]
        return group.group_state == "Stable" and len(group.members) == CREW_SIZE

    poll(stable, "the crew is stable")
    group = found[0]
    bouncer = f"{CREW}-{CREW_SIZE - 1}"
    return Crew(
        generation=group.holdfast.generation_id,
        instances=frozenset(m.group_instance_id for m in group.members),
        assignments=frozenset((m.group_instance_id, m.member_assignment) for m in group.members),
        stayed=frozenset(m.member_id for m in group.members if m.group_instance_id != bouncer),
    )


# --- the rules ---


def test_no_acknowledged_commit_is_lost(aftermath: Aftermath) -> None:
    """An OffsetFetch after the faults tells at least what was acknowledged last."""
    last = {acked.place: acked.offset for acked in aftermath.witness}

    assert len(last) == 20
    behind = {place for place, offset in last.items() if aftermath.offsets[place] < offset}
    assert behind == set()


def test_every_acknowledged_change_is_in_every_nodes_log(aftermath: Aftermath) -> None:
    """S3, S5: under its request id, in the entry that the answer told, on all three nodes.

    The entry is not compared for calls that were repeated: their answers do not tell it.
    """
    assert len(aftermath.left) == 3
    for left in aftermath.left.values():
        places = {(record.position, record.group_id) for record in left.records}
        found = {r.request_id: r for r in left.records if isinstance(r.event, OffsetsCommitted)}
        for acked in aftermath.witness:
            record = found[acked.request_id]

            assert contents(record) == [(TOPIC, acked.place.partition, acked.offset)]
            assert record.group_id == acked.place.group
            assert record.position.index == acked.position[0]
            assert (acked.position, record.group_id) in places


def test_s5_a_retry_after_an_unknown_outcome_has_one_effect(aftermath: Aftermath) -> None:
    """S5, S15: every id that was ever used is in the log once at most; many were repeated."""
    print(f"{len(aftermath.unknown)} attempts of {len(aftermath.witness)} commits ended unknown")
    for left in aftermath.left.values():
        commits = [r for r in left.records if isinstance(r.event, OffsetsCommitted)]
        counted = Counter(record.request_id for record in commits)

        assert {request_id for request_id, times in counted.items() if times > 1} == set()
        assert set(aftermath.unknown) <= set(counted)


def test_three_nodes_end_with_equal_digests(aftermath: Aftermath) -> None:
    """S3: equal chain, equal state and the same records, at one index."""
    assert len({left.last for left in aftermath.left.values()}) == 1
    assert len({left.chain for left in aftermath.left.values()}) == 1
    assert len({left.digest for left in aftermath.left.values()}) == 1
    assert len({left.records for left in aftermath.left.values()}) == 1


def test_failovers_move_nothing_of_static_members(aftermath: Aftermath) -> None:
    """INV-9, KIP-345: the assignment is state in the log; no election recomputes it."""
    assert aftermath.crew_after == aftermath.crew_before
    assert aftermath.lost == ()
    for left in aftermath.left.values():
        later = [
            record
            for record in left.records
            if record.group_id == CREW and record.position.index > aftermath.stable_from
        ]
        assert later, "the bounces are in the log"
        assert [r for r in later if isinstance(r.event, RebalanceStarted | GenerationStarted)] == []
