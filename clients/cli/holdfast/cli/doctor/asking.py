"""Asks each node of a cluster for its view and its machine: facts for `cluster_checks`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holdfast.cli.doctor.cluster_checks import Seen
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.cli.connect import Cluster

UNNAMED = "-"
"""What `Cluster.name_of` says of an address whose node it does not know."""


def seen_by(cluster: Cluster) -> list[Seen]:
    """Ask every node, also those that only the others name, one after the other.

    A node that is reached at two addresses is seen once, and one that answers at one of them is not
    called silent.
    """
    first = cluster.on_every_node(a.DescribeClusterRequest(), a.DescribeClusterResponse)
    addresses = {address: cluster.name_of(address) for address, _ in first}
    for node in _named(one for _, one in first if one is not None):
        addresses[node.client_address] = node.name
    return _once([_asked(cluster, address, name) for address, name in addresses.items()])


def _named(answers: Iterable[a.DescribeClusterResponse]) -> Iterable[a.DescribedNode]:
    return (node for one in answers for node in one.nodes)


def _asked(cluster: Cluster, address: str, name: str) -> Seen:
    """Ask one node twice: the first call connects, the second one is timed for its clock."""
    request = a.DescribeClusterRequest(facts=True)
    told = address if name == UNNAMED else name
    if cluster.on_node(address, a.DescribeClusterRequest(), a.DescribeClusterResponse) is None:
        return Seen(told, address, None)
    asked = time.time_ns() // 1_000_000
    answer = cluster.on_node(address, request, a.DescribeClusterResponse)
    name = told if answer is None else answer.node
    return Seen(name, address, answer, asked, time.time_ns() // 1_000_000)


def _once(seen: Iterable[Seen]) -> list[Seen]:
    """Keep one look at each node, if it can be one that was answered."""
    kept: dict[str, Seen] = {}
    for one in seen:
        if one.name not in kept or kept[one.name].answer is None:
            kept[one.name] = one
    return list(kept.values())
