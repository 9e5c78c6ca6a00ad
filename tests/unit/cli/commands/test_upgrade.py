"""`holdfast cluster upgrade status` shows what the node sees that leads now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from holdfast.cli.connect import Cluster
from holdfast.cli.main import main
from holdfast.v1.admin_pb2 import DescribeClusterResponse, DescribedNode

if TYPE_CHECKING:
    import pytest


def leading(node: str, term: int, problem: str) -> tuple[str, DescribeClusterResponse]:
    """What a node tells that believes that it leads."""
    told = DescribeClusterResponse(
        node=node, leader=node, term=term, level=1, upgrade_to=2, upgrade_problem=problem
    )
    return f"{node}:7400", told


def test_s10_a_leader_that_was_replaced_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has lost its peers and does not know it yet; the newest term is the leader's."""
    seen = [leading("a", 3, "the leader is not connected with 'b'"), leading("b", 4, "")]
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: seen)

    shown = CliRunner().invoke(main, ["cluster", "upgrade", "status", "--address", "a:7400"])

    assert shown.exit_code == 0, shown.output
    assert "`finish` would raise it to level 2" in shown.output
    assert "not connected" not in shown.output


def test_s25_the_leader_is_found_though_nobody_named_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that came while the cluster served stands in no file of whoever asks."""
    _, leader = leading("new", 4, "")
    told = DescribeClusterResponse(
        node="a", leader="new", nodes=[DescribedNode(name="new", client_address="new:7400")]
    )
    monkeypatch.setattr(Cluster, "on_every_node", lambda *_: [("a:7400", told)])
    monkeypatch.setattr(
        Cluster, "on_node", lambda _, address, *__: {"new:7400": leader}.get(address)
    )

    shown = CliRunner().invoke(main, ["cluster", "upgrade", "status", "--address", "a:7400"])

    assert shown.exit_code == 0, shown.output
    assert "`finish` would raise it to level 2" in shown.output
