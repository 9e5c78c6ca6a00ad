"""S25: a local cluster that runs notes which nodes it has, and forgets those that were removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.cli.local_cluster import standing
from holdfast.cli.local_cluster.nodes_watch import NodesWatch
from holdfast.server.config import cluster_file
from holdfast.server.config.cluster_file import ClusterFile, NodeEntry
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from pathlib import Path


class Nodes:
    """Nodes by their addresses, and what each tells; None: nobody listens there."""

    def __init__(self, directory: Path, *names: str) -> None:
        self.directory, self.told = directory, dict[str, a.DescribeClusterResponse | None]()
        self.asked: list[str] = []
        entries = tuple(NodeEntry(name, f"{name}:1", f"{name}:2", 1, "") for name in names)
        cluster_file.write(directory / cluster_file.NAME, ClusterFile("c", entries, None))

    def at(self, address: str) -> Any:  # noqa: ANN401 - stands in for a stub
        """Return what asks the node at an address."""
        nodes = self

        class Stub:
            """One node."""

            def DescribeCluster(self, *_: object, timeout: float) -> a.DescribeClusterResponse:  # noqa: N802 - the contract's name
                """Tell."""
                assert timeout > 0
                nodes.asked.append(address)
                told = nodes.told.get(address)
                if told is None:
                    raise grpc.RpcError
                return told

        return Stub()

    @property
    def in_file(self) -> list[str]:
        """The nodes of cluster.json."""
        return [n.name for n in cluster_file.read(self.directory / cluster_file.NAME).nodes]


def tells(
    node: str, leader: str, voters: str, removed: str = "", index: int = 0
) -> a.DescribeClusterResponse:
    """What a node tells; each letter is a node."""
    return a.DescribeClusterResponse(
        node=node,
        leader=leader,
        commit_index=50,
        nodes=[a.DescribedNode(name=name, standing="voter") for name in voters],
        removed_nodes=[*removed],
        membership_index=index,
    )


def test_a_removed_node_leaves_the_file_and_is_noted(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, "a", "b")
    watch = NodesWatch(tmp_path, nodes.at)
    nodes.told = {"a:1": tells("a", "a", "ab")}
    watch.look()
    assert not watch.is_removed("b")
    nodes.told = {"a:1": tells("a", "a", "a", "b", 9)}
    watch.look()

    assert watch.is_removed("b")
    assert nodes.in_file == ["a"]
    noted = standing.read(tmp_path)
    assert noted is not None
    assert (noted.voters, noted.removed, noted.index) == (("a",), ("b",), 9)


def test_a_node_that_another_command_has_started_is_asked_as_well(tmp_path: Path) -> None:
    """All that this command has started may have been replaced."""
    nodes = Nodes(tmp_path, "a", "d")
    nodes.told = {"d:1": tells("d", "d", "d", "a", 9)}
    watch = NodesWatch(tmp_path, nodes.at)
    watch.look()

    assert nodes.asked == ["a:1", "d:1"]
    assert watch.is_removed("a")


def test_a_follower_that_lags_brings_nobody_back(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, "a", "b")
    nodes.told = {"b:1": tells("b", "b", "b", "a", 9)}
    watch = NodesWatch(tmp_path, nodes.at)
    watch.look()
    nodes.told = {"b:1": tells("b", "c", "ab")}
    watch.look()

    assert watch.is_removed("a")


@pytest.mark.parametrize("content", [None, "no JSON"])
def test_without_the_clusters_file_nobody_is_asked(tmp_path: Path, content: str | None) -> None:
    """The command that ends removes it."""
    nodes = Nodes(tmp_path, "a")
    path = tmp_path / cluster_file.NAME
    path.write_text(content) if content else path.unlink()
    NodesWatch(tmp_path, nodes.at).look()

    assert (nodes.asked, standing.read(tmp_path)) == ([], None)
