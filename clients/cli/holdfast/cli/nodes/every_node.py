"""Every node of a cluster, also one that nobody named: what each tells of itself.

The nodes that were named answer for the others: which nodes there are is on the log, so nodes come
and go, while an address in a file or an option stays. Pure but for the questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.cli.connect import Cluster

    Answer = a.DescribeClusterResponse | None

VOTER: Final = "voter"
LEARNER: Final = "learner"
REMOVED: Final = "removed"


class Seen(NamedTuple):
    """One node, and what it told."""

    name: str
    """"-": unknown."""
    address: str
    answer: Answer
    standing: str = VOTER
    """By the newest answer: `voter`, `learner`, `removed`, or "-": no node is known there."""


def newest(answers: Iterable[Answer]) -> Answer:
    """Return the answer with the newest news of which nodes there are; None: nobody answered."""
    told = [one for one in answers if one is not None]
    return max(told, key=lambda one: (one.recovery_number, one.membership_index), default=None)


WITH_FACTS: Final = a.DescribeClusterRequest(facts=True)
"""What each node is asked whose disk is to be foreseen."""
WITH_ANCHOR: Final = a.DescribeClusterRequest(facts=True, anchor=True)
"""What each node is asked that is to tell an anchor of its log as well."""


def seen_by(cluster: Cluster, asked: a.DescribeClusterRequest = WITH_FACTS) -> list[Seen]:
    """Ask every node that was named, then those that they tell of; in the order of names.

    A named address at which nobody answers, and where no node is known, comes last.
    """
    first = cluster.on_every_node(asked, a.DescribeClusterResponse)
    told = newest(one for _, one in first)
    if told is None:
        names = [(cluster.name_of(address), address) for address, _ in first]
        return [Seen(name, at, None, "-" if name == "-" else VOTER) for name, at in names]
    nodes = [_asked(cluster, node, first, asked) for node in told.nodes]
    return [*nodes, *_others(cluster, told, first)]


def named_by(cluster: Cluster) -> list[tuple[str, Answer]]:
    """Ask the nodes that were named, but those that are known to be removed."""
    first = cluster.on_every_node(a.DescribeClusterRequest(), a.DescribeClusterResponse)
    told = newest(one for _, one in first)
    removed = frozenset(told.removed_nodes if told else ())
    return [(at, one) for at, one in first if _name(cluster, at, one) not in removed]


def _name(cluster: Cluster, address: str, one: Answer) -> str:
    return one.node if one else cluster.name_of(address)


def _asked(
    cluster: Cluster,
    node: a.DescribedNode,
    first: Sequence[tuple[str, Answer]],
    asked: a.DescribeClusterRequest,
) -> Seen:
    """Return what a node told when it was named, perhaps at another address; else ask it now."""
    standing = node.standing or VOTER
    for address, one in first:
        if one is not None and one.node == node.name:
            return Seen(node.name, address, one, standing)
    address, answer = node.client_address, None
    if address and address not in dict(first):
        answer = cluster.on_node(address, asked, a.DescribeClusterResponse)
    return Seen(node.name, address, answer, standing)


def _others(
    cluster: Cluster, told: a.DescribeClusterResponse, first: Sequence[tuple[str, Answer]]
) -> list[Seen]:
    """Return what was named and is no node of the cluster: one that was removed, or nobody."""
    names = {node.name for node in told.nodes}
    addresses = {node.client_address for node in told.nodes}
    found = []
    for address, one in first:
        name = _name(cluster, address, one)
        if name not in names and (one is not None or address not in addresses):
            standing = REMOVED if name in told.removed_nodes else "-"
            found.append(Seen(name, address, one, standing))
    return found
