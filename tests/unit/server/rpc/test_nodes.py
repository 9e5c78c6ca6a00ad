"""S3, S19: which level a cluster begins at, whether an upgrade can be ended; S25: who is a node."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.coordinator.model.state import State
from holdfast.raft.api import Build, PeerStatus, Status
from holdfast.raft.membership import AddLearner, ClusterNode, Membership, Remove, after
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import Peer
from holdfast.server.rpc.membership.known_nodes import KnownNodes
from holdfast.server.rpc.nodes import VERSION, Nodes, Upgrade
from holdfast.storage.codec.state_image import digest_of
from holdfast.v1 import admin_pb2 as a
from holdfast.v1.errors_pb2 import ERROR_CODE_INVALID_REQUEST
from unit.runtime.fake_replica import FakeReplica

if TYPE_CHECKING:
    from collections.abc import Collection

NAMES = ("node-1", "node-2", "node-3")
OLD, OURS = Build("0.1.0", LEVEL_MIN, LEVEL_MIN), Build("0.2.0", LEVEL_MIN, LEVEL_MAX)
LATER = Build("0.3.0", LEVEL_MIN, LEVEL_MAX + 1)


class Leader(FakeReplica):
    """Node 1 of three, connected with some of the others."""

    def __init__(self, connected: Collection[str], level: int) -> None:
        super().__init__()
        self.connected = connected
        self.membership = Membership.of(NAMES)
        self.state = State(cluster_id="c", raised_to=level if level > 1 else 0)
        self.lead()

    def status(self) -> Status:
        peers = tuple(
            PeerStatus(
                name,
                connected=name in self.connected,
                acked_index=1,
                next_index=2,
                streaming=name not in self.membership.voter_names and name == "node-3",
                counted=name in self.membership.voter_names,
                caught_up=name not in self.membership.voter_names,
            )
            for name in NAMES[1:]
        )
        status = Status("leader", 1, "node-1", "member", 1, 1, 1, 1, 1, peers)
        return replace(status, membership=self.membership, membership_index=7)


def nodes(
    second: Build | None,
    third: Build | None,
    connected: Collection[str] = NAMES,
    level: int = LEVEL_MIN,
) -> Nodes:
    told = dict(zip(NAMES[1:], (second, third), strict=True))
    builds = {name: build for name, build in told.items() if build is not None}
    leader = Leader(connected, level)
    return Nodes(leader, known(leader), builds=lambda: builds)


def known(replica: FakeReplica) -> KnownNodes:
    here = Address("127.0.0.1", 1)
    return KnownNodes(replica, [Peer(name, here, here) for name in NAMES])


def with_learner(learner: str, removed: tuple[str, ...] = ()) -> Leader:
    """Node 1 of two voters and a learner."""
    leader, three = Leader(NAMES, LEVEL_MAX), Membership.of(NAMES)
    voters = tuple(node for node in three.voters if node.name != learner)
    leader.membership = replace(
        three, voters=voters, learners=(ClusterNode(learner),), removed=removed
    )
    return leader


@pytest.mark.parametrize(
    ("second", "third", "level", "to"),
    [
        (OURS, OURS, LEVEL_MIN, LEVEL_MAX),
        (OURS, LATER, LEVEL_MIN, LEVEL_MAX),
        (OURS, OURS, LEVEL_MAX, LEVEL_MAX),  # it was ended
    ],
)
def test_an_upgrade_ends_at_the_newest_level_at_which_all_can_run(
    second: Build, third: Build, level: int, to: int
) -> None:
    assert nodes(second, third, level=level).upgrade() == Upgrade(to, "")


def test_a_node_that_is_too_old_keeps_the_level_and_is_named() -> None:
    to, problem = nodes(OURS, OLD).upgrade()
    assert to == LEVEL_MIN
    assert "node 'node-3' runs Holdfast 0.1.0, whose newest level is 1" in problem
    assert "node-2" not in problem


def test_it_is_this_node_that_may_be_too_old() -> None:
    """A leader of the older version, among newer ones."""
    to, problem = nodes(LATER, LATER, level=LEVEL_MAX).upgrade()
    assert to == LEVEL_MAX
    assert "node 'node-1' runs Holdfast" in problem


@pytest.mark.parametrize("last_seen", [None, OURS])
def test_a_node_that_is_away_keeps_the_level_and_is_named(last_seen: Build | None) -> None:
    """Whatever it ran before: it may come back as another version."""
    to, problem = nodes(OURS, last_seen, connected=("node-2",)).upgrade()
    assert to == LEVEL_MIN
    assert "the leader is not connected with 'node-3'" in problem


@pytest.mark.parametrize(
    ("second", "third", "first"),
    [
        (OURS, OURS, LEVEL_MAX),
        (LATER, OURS, LEVEL_MAX),
        (OURS, OLD, LEVEL_MIN),
        (OURS, None, LEVEL_MIN),
    ],
)
def test_a_cluster_begins_at_the_newest_level_at_which_all_can_run(
    second: Build, third: Build | None, first: int
) -> None:
    """S19: all have greeted each other by then; one that has not may be of any version."""
    assert nodes(second, third).first_level() == first


def test_a_cluster_begins_at_the_first_level_if_a_node_has_gone_that_forms_it() -> None:
    """Its greeting tells what it was: it may come back as an older version, and could not read."""
    assert nodes(OURS, OURS, connected=("node-2",)).first_level() == LEVEL_MIN


def test_the_leader_tells_what_each_node_runs_and_what_the_end_would_do() -> None:
    told = nodes(OURS, OLD, connected=("node-2",)).described()
    assert (told.level, told.upgrade_to) == (LEVEL_MIN, LEVEL_MIN)
    assert "node-3" in told.upgrade_problem
    seen = [(n.name, n.version, n.level_min, n.level_max, n.connected) for n in told.nodes]
    assert seen[1:] == [
        ("node-2", "0.2.0", LEVEL_MIN, LEVEL_MAX, True),
        ("node-3", "0.1.0", LEVEL_MIN, LEVEL_MIN, False),
    ]
    assert seen[0][2:] == (LEVEL_MIN, LEVEL_MAX, True)


def test_s25_a_node_tells_who_votes_who_learns_and_which_names_are_used_up() -> None:
    """And the leader how far a learner is: whether it may become a voter."""
    leader = with_learner("node-3", removed=("node-0",))
    told = Nodes(leader, known(leader)).described()
    assert [n.standing for n in told.nodes] == ["voter", "voter", "learner"]
    assert [n.role for n in told.nodes] == ["leader", "follower", "follower"]
    assert [(n.caught_up, n.streaming) for n in told.nodes] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    assert (told.membership_index, [*told.removed_nodes]) == (7, ["node-0"])


def test_a_node_that_does_not_lead_does_not_tell_what_the_end_would_do() -> None:
    """It is not connected with all others for sure."""
    replica = FakeReplica()
    follower = Nodes(replica, known(replica))
    assert not follower.described().HasField("upgrade_to")


def test_a_node_may_run_another_build_than_its_code_is_of() -> None:
    """As older nodes of the simulator do: the map of builds is believed of this node, too."""
    builds = {"node-1": OLD, "node-2": OURS, "node-3": OURS}
    leader = Leader(NAMES, LEVEL_MIN)
    older = Nodes(leader, known(leader), builds=lambda: builds)

    assert older.first_level() == LEVEL_MIN
    assert "node 'node-1' runs Holdfast 0.1.0" in older.upgrade().problem
    assert older.described().version == "0.1.0"


def test_s25_the_nodes_are_those_of_the_log_and_not_of_the_file() -> None:
    """A node that came later is told with its addresses on the log; one that has gone, is not."""
    leader = Leader(NAMES, LEVEL_MAX)
    leader.membership = after(Membership.of(NAMES), Remove("node-3"))
    new = ClusterNode("node-4", peer_address="p:4", client_address="c:4")
    leader.membership = after(leader.membership, AddLearner(new))

    told = Nodes(leader, known(leader)).described().nodes

    assert [(n.name, n.client_address, n.peer_address) for n in told] == [
        ("node-1", "127.0.0.1:1", "127.0.0.1:1"),
        ("node-2", "127.0.0.1:1", "127.0.0.1:1"),
        ("node-4", "c:4", "p:4"),
    ]


def test_s25_an_upgrade_waits_for_a_learner_as_well() -> None:
    """It reads the same log, and is to become a voter."""
    leader = Leader(("node-2",), LEVEL_MIN)
    leader.membership = with_learner("node-3").membership
    builds = {"node-2": OURS, "node-3": OURS}
    told = Nodes(leader, known(leader), builds=lambda: builds).upgrade()
    assert "the leader is not connected with 'node-3'" in told.problem


def test_s25c_the_leadership_is_handed_to_no_learner() -> None:
    """It never stands; the engine would refuse it as an error of its caller."""
    leader = with_learner("node-2")
    nodes = Nodes(leader, known(leader))

    refused = nodes.transfer("node-2")
    assert refused.error_code == ERROR_CODE_INVALID_REQUEST
    assert "node 'node-2' is a learner, which cannot lead" in refused.holdfast.message
    assert leader.transferred_to is None

    assert nodes.transfer("").node == leader.transferred_to == "node-3"


def test_a_node_without_a_state_does_not_say_that_everybody_may_do_everything() -> None:
    """ADR 30: it knows the mode from the first record of the log on; before, nothing is served."""
    served = nodes(OURS, OURS)
    leader = served._replica
    shown = []
    for state in (State(), State(cluster_id="c"), State(cluster_id="c", access_mode="deny")):
        leader.state = state  # type: ignore[misc]  # a fake's
        shown.append(served.described().access_mode)

    assert shown == ["", "open", "deny"]


def test_s3_an_anchor_tells_of_which_log_and_of_which_moment_it_is() -> None:
    state = State(cluster_id="c", applied_index=1, recovery_number=2)
    made = nodes(None, None)
    made._replica.state = state  # type: ignore[misc]  # a fake's
    told = asyncio.run(made.anchor())

    assert told == a.LogAnchor(
        format=1,
        cluster_id="c",
        node="node-1",
        index=1,
        chain=bytes(32),
        digest=digest_of(state).to_bytes(8, "big"),
        version=VERSION,
        recovery_number=2,
    )


def test_a_node_that_has_nothing_of_the_log_yet_tells_no_anchor() -> None:
    assert asyncio.run(Nodes(FakeReplica(), known(FakeReplica())).anchor()) is None
