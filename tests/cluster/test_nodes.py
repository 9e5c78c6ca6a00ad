"""Nodes come and go while a cluster serves: three become five, and three again (S25, ADR 34).

One workload runs through all changes; each test then holds its outcome to one rule. Under virtual
time and faults the same rules are shown in tests/raft and by the simulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from cluster import ports
from cluster.kept import behind, fetched, missing
from cluster.left import read_left
from cluster.load import PARTITIONS, TOPIC, Acked, Load, Place
from cluster.processes import RunningCluster, poll, running
from holdfast.cli.ending import REMOVED

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from cluster.left import Left

MORE = 20
"""Commits, begun after a change, that must be acknowledged before the next one."""
PAUSE_S = 0.4
"""A committer's rest: starts of nodes need processors, too."""
NOBODY = ("--peer", "127.0.0.1:1", "--client", "127.0.0.1:2")


class Aftermath(NamedTuple):
    """What was seen during the changes, and what the nodes left behind."""

    witness: tuple[Acked, ...]
    lost: tuple[str, ...]
    offsets: dict[Place, int]
    too_early: subprocess.CompletedProcess[str]
    """The promotion of a node that nobody reaches."""
    five: dict[str, tuple[str, ...]]
    """The voters that each node knew when there were five."""
    leader: str
    """Who led then, and was removed."""
    three: dict[str, tuple[str, ...]]
    codes: tuple[int, ...]
    """How the processes of a removed node have ended: at its removal, and started again."""
    left: dict[str, Left]


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    """Change the nodes under load, once."""
    directory = tmp_path_factory.mktemp("nodes") / "c"
    with running(directory, 3, "--set", "group.initial_rebalance_delay_ms=0") as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        with Load(cluster.addresses, cluster.tls, pause_s=PAUSE_S) as load:
            load.await_crew()
            too_early = a_wrong_address(cluster, load)
            joined = [one_more(cluster, load) for _ in range(2)]
            five, leader = voters(cluster), cluster.leader()
            codes = two_fewer(cluster, load, leader, joined)
            three = voters(cluster)
        offsets = fetched(cluster)
        cluster.stop_at_one_index()
        yield Aftermath(
            witness=tuple(load.witness),
            lost=tuple(load.lost),
            offsets=offsets,
            too_early=too_early,
            five=five,
            leader=leader,
            three=three,
            codes=codes,
            left={name: read_left(cluster.data(name)) for name in cluster.names},
        )


def change(cluster: RunningCluster, *arguments: str) -> None:
    done = cluster.ask("node", *arguments)
    assert done.returncode == 0, done.stderr


def a_wrong_address(cluster: RunningCluster, load: Load) -> subprocess.CompletedProcess[str]:
    """Add a node where nobody is, then do without a node that is; return the promotion's end."""
    change(cluster, "add", "nobody", *NOBODY)
    victim = cluster.follower()
    cluster.kill(victim)
    load.await_more(MORE)
    told = cluster.ask("node", "promote", "nobody", "--timeout", "0")
    cluster.bring_back(victim)
    change(cluster, "remove", "nobody")
    return told


def one_more(cluster: RunningCluster, load: Load) -> subprocess.Popen[bytes]:
    """Lay out a node, add, start and promote it; return its process."""
    before = {path.name for path in cluster.directory.iterdir()}
    folder = ("--dir", str(cluster.directory), "--port-base", str(ports.reserve()))
    done = cluster.run("cluster", "add-node", *folder)
    assert done.returncode == 0, done.stderr
    (name,) = {path.name for path in cluster.directory.iterdir() if path.is_dir()} - before
    config = cluster.configuration(name)["node"]
    at = ("--peer", config["peer_address"], "--client", config["client_address"])
    change(cluster, "add", name, *at)
    (process,) = cluster.bring_back(name, options=("--rebuild",))
    change(cluster, "promote", name)
    load.await_more(MORE)
    return process


def two_fewer(
    cluster: RunningCluster, load: Load, leader: str, joined: list[subprocess.Popen[bytes]]
) -> tuple[int, ...]:
    """Remove who leads, and one that has joined; return how the latter's processes ended."""
    change(cluster, "remove", leader)
    load.await_more(MORE)
    name, process = next(
        (name, process)
        for process in joined
        for name in cluster.names
        if cluster.node(name)["pid"] == process.pid and name != leader
    )
    change(cluster, "remove", name)
    ended = process.wait(60), cluster.start(name).wait(60)
    poll(lambda: not {leader, name} & set(cluster.names), "cluster.json tells who is left")
    load.await_more(MORE)
    return ended


def voters(cluster: RunningCluster) -> dict[str, tuple[str, ...]]:
    """Who votes, as each node tells it."""
    told = {answer.node: answer.nodes for answer in cluster.settled()}
    return {
        name: tuple(node.name for node in nodes if node.standing == "voter")
        for name, nodes in told.items()
    }


def test_s25c_a_wrong_address_costs_no_majority(aftermath: Aftermath) -> None:
    """With a node away, two of three go on; nobody who cannot be reached becomes a voter."""
    assert aftermath.too_early.returncode == 1
    assert "not connected to the leader" in aftermath.too_early.stderr


def test_three_nodes_become_five_and_three_again(aftermath: Aftermath) -> None:
    """Each node goes by the log: the files of the first three know of no fourth."""
    names = tuple(sorted(aftermath.five))
    assert len(names) == 5
    assert set(aftermath.five.values()) == {names}
    left = tuple(sorted(aftermath.three))
    assert len(left) == 3
    assert set(aftermath.three.values()) == {left}


def test_s25d_a_leader_that_is_removed_hands_over_first(aftermath: Aftermath) -> None:
    assert aftermath.leader in aftermath.five
    assert aftermath.leader not in aftermath.three


def test_s25e_a_removed_node_ends_with_its_own_code_also_when_it_is_started_again(
    aftermath: Aftermath,
) -> None:
    """No supervisor is to start it (`RestartPreventExitStatus=`); if one does, it ends again."""
    assert aftermath.codes == (REMOVED, REMOVED)


def test_what_was_acknowledged_is_there_on_all_that_are_left(aftermath: Aftermath) -> None:
    """S25: any two majorities meet, across each change of nodes."""
    assert behind(aftermath.offsets, aftermath.witness) == set()
    assert len(aftermath.left) == 3
    for left in aftermath.left.values():
        assert missing(left, aftermath.witness) == []
    assert len({(left.last, left.chain, left.digest) for left in aftermath.left.values()}) == 1


def test_no_member_lost_anything_meanwhile(aftermath: Aftermath) -> None:
    """Its sessions outlive each hand-over, and its client finds the nodes that came later."""
    assert aftermath.lost == ()
