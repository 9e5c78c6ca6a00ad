"""The row about starts without data: one node, and three, that have formed a cluster and no more.

What a start takes before it reads anything: modules, checks, the peers, an election. The nodes may
be another checkout's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final, NamedTuple

import grpc

from bench.figures import Cost, Figure, Goal, median, most
from bench.machine import cpu_seconds_with_children
from bench.nodes import OWN, Cluster
from bench.rig import Bench
from bench.starting import Admin
from harness.poll import until
from holdfast.v1 import admin_pb2, admin_pb2_grpc

LONGEST_ELECTION_S: Final = 0.8
"""The election timeout that a node draws is at most this long by default."""
GOALS: Final = {1: most(1.0), 3: most(1.0 + LONGEST_ELECTION_S)}


class Start(NamedTuple):
    """One start of all nodes. `used`: processor seconds of each, its children's among them."""

    seconds: float
    used: list[float]


async def empty(bench: Bench) -> None:
    """Nodes without data are started again: until all of them know who leads."""
    for count, goal in GOALS.items():
        await asyncio.to_thread(_measure, bench, count, goal)


def _measure(bench: Bench, count: int, goal: Goal) -> None:
    folder = bench.folder / "run" / "empty"
    with Cluster(folder, count=count, program=bench.program or OWN) as cluster:
        start = _starter(cluster)
        start()  # what every later start finds: this one's stop has left a snapshot
        starts = [start() for _ in range(bench.sizes.starts)]
    used = [median([each.used[node] for each in starts]) * 1e6 for node in range(count)]
    what = "one node, until it leads" if count == 1 else f"{count} nodes, until all know who leads"
    seconds = [each.seconds for each in starts]
    cost = Cost(used[0], tuple(used[1:]), 0.0, 0.0, (0.0,) * (count - 1))
    more: dict[str, object] = {"all_s": seconds}
    bench.add(Figure("empty", what, median(seconds), "s", goal, cost=cost, more=more))


def _starter(cluster: Cluster) -> Callable[[], Start]:
    """What starts the nodes of a cluster, waits until all know who leads, and stops them."""
    nodes, shown = cluster.nodes, cluster.credentials()
    cluster.stop()

    def start() -> Start:
        with ExitStack() as lines:
            stubs = [lines.enter_context(Admin(node.address, shown)) for node in nodes]
            began = time.perf_counter()
            pids = [cluster.launch(node) for node in nodes]
            for stub, node in zip(stubs, nodes, strict=True):
                until(partial(_knows_leader, stub), f"{node.name} knows a leader")
            seconds = time.perf_counter() - began
            used = [cpu_seconds_with_children(pid) for pid in pids]
        cluster.stop()
        return Start(seconds, used)

    return start


def _knows_leader(stub: admin_pb2_grpc.AdminServiceStub) -> bool:
    try:
        seen = stub.DescribeCluster(admin_pb2.DescribeClusterRequest(), timeout=1)
    except grpc.RpcError:
        return False
    return bool(seen.leader)
