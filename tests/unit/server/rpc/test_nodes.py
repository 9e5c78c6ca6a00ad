"""S3, S19: which level a cluster begins at, and whether an upgrade can be ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.coordinator.model.levels import LEVEL_MAX, LEVEL_MIN
from holdfast.coordinator.model.state import State
from holdfast.raft.api import Build, PeerStatus, Status
from holdfast.raft.membership import Membership
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import Peer
from holdfast.server.rpc.nodes import Nodes, Upgrade
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
                streaming=name not in self.membership.voter_names,
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
    here = Address("127.0.0.1", 1)
    told = dict(zip(NAMES[1:], (second, third), strict=True))
    builds = {name: build for name, build in told.items() if build is not None}
    peers = [Peer(name, here, here) for name in NAMES]
    return Nodes(Leader(connected, level), peers, builds=lambda: builds)


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
    leader = Leader(NAMES, LEVEL_MAX)
    three = Membership.of(NAMES)
    leader.membership = replace(
        three, voters=three.voters[:2], learners=three.voters[2:], removed=("node-0",)
    )
    here = Address("127.0.0.1", 1)
    told = Nodes(leader, [Peer(name, here, here) for name in NAMES]).described()
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
    follower = Nodes(FakeReplica(), [Peer("node-1", Address("h", 1), Address("h", 2))])
    assert not follower.described().HasField("upgrade_to")


def test_a_node_may_run_another_build_than_its_code_is_of() -> None:
    """As older nodes of the simulator do: the map of builds is believed of this node, too."""
    here = Address("127.0.0.1", 1)
    builds = {"node-1": OLD, "node-2": OURS, "node-3": OURS}
    older = Nodes(
        Leader(NAMES, LEVEL_MIN), [Peer(n, here, here) for n in NAMES], builds=lambda: builds
    )

    assert older.first_level() == LEVEL_MIN
    assert "node 'node-1' runs Holdfast 0.1.0" in older.upgrade().problem
    assert older.described().version == "0.1.0"
