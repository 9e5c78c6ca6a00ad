"""Whom `holdfast doctor` asks: every node, each seen once, however it is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.cli.doctor.asking import seen_by
from holdfast.v1.admin_pb2 import DescribeClusterResponse, DescribedNode, NodeFacts

if TYPE_CHECKING:
    from holdfast.cli.connect import Cluster
    from holdfast.v1.admin_pb2 import DescribeClusterRequest

NODES = {"node-1": "10.0.0.1:7400", "node-2": "10.0.0.2:7400", "node-3": "10.0.0.3:7400"}


class Network:
    """Addresses at which nodes answer; `given` is what the command was told."""

    def __init__(self, given: tuple[str, ...], reached: dict[str, str]) -> None:
        self.given, self.reached = given, reached

    def on_every_node(
        self, request: DescribeClusterRequest, _: object
    ) -> list[tuple[str, DescribeClusterResponse | None]]:
        return [(address, self._answer(address, request)) for address in self.given]

    def _answer(
        self, address: str, request: DescribeClusterRequest
    ) -> DescribeClusterResponse | None:
        if address not in self.reached:
            return None
        return DescribeClusterResponse(
            node=self.reached[address],
            nodes=[DescribedNode(name=name, client_address=at) for name, at in NODES.items()],
            facts=NodeFacts(wall_time_ms=1) if request.facts else None,
        )

    @staticmethod
    def name_of(address: str) -> str:
        return {at: name for name, at in NODES.items()}.get(address, "-")

    def on_node(
        self, address: str, request: DescribeClusterRequest, _: object
    ) -> DescribeClusterResponse | None:
        return self._answer(address, request)


def seen(*given: str, reached: dict[str, str]) -> list[tuple[str, bool]]:
    """The names of the nodes that were seen, and whether each has answered."""
    found = seen_by(cast("Cluster", Network(given, reached)))
    assert all(one.answer.facts.wall_time_ms == 1 for one in found if one.answer is not None)
    return sorted((one.name, one.answer is not None) for one in found)


ALL = {at: name for name, at in NODES.items()}


def test_one_address_is_enough_to_see_every_node() -> None:
    assert seen("10.0.0.1:7400", reached=ALL) == [(name, True) for name in NODES]


def test_a_silent_node_is_seen_as_silent() -> None:
    reached = {at: name for at, name in ALL.items() if name != "node-3"}

    assert seen("10.0.0.1:7400", reached=reached)[2] == ("node-3", False)


def test_a_node_that_is_reached_at_two_addresses_is_seen_once() -> None:
    found = seen("localhost:7400", reached={**ALL, "localhost:7400": "node-1"})

    assert found == [(name, True) for name in NODES]


def test_a_node_that_answers_at_the_given_address_alone_is_not_silent() -> None:
    """As through a port that is forwarded."""
    found = seen("localhost:7400", reached={"localhost:7400": "node-1"})

    assert found == [("node-1", True), ("node-2", False), ("node-3", False)]


def test_a_given_address_at_which_nobody_answers_is_named_by_itself() -> None:
    assert seen("localhost:7400", reached={}) == [("localhost:7400", False)]
