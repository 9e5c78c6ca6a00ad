"""Row about hostile callers: what honest ones notice of them, and what a node's memory does.

Attackers, nodes and honest callers share the machine's cores, so a part of what honest callers
notice is plain want of processor time. The same attackers against a node of another cluster show
that part alone: what is on top of it, the attacked node does to its own callers.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Final

from bench import changes, hostile_calls, machine
from bench.figures import Figure, most
from bench.honest import Part, commit_until, passed
from bench.nodes import Cluster, Node
from bench.rig import Bench, Running
from harness.hostile import KINDS

EACH: Final = 4
"""Attackers of each kind that have a client's certificate; one of each kind has none."""
ROUNDS: Final = 5
"""The parts take turns, so that a disk or a neighbour that changes its mood changes it for all."""
GREW: Final = "the leader's memory grew, more than its followers', by"
ATTACKERS: Final = (EACH + 1) * len(KINDS)


async def hostile(bench: Bench) -> None:
    """Honest callers beside hostile ones: floods, garbage, half calls, and the largest calls."""
    calm, elsewhere, beset = Part(), Part(), Part()
    async with bench.cluster("hostile") as running, _another(bench) as other:
        await running.talk.create_topic(changes.TOPIC, changes.PARTITIONS)
        await _honest(bench, running, Part())
        before, leader = _memory(running), running.talk.leader
        for _ in range(ROUNDS):
            await _honest(bench, running, calm)
            async with _attacked(other, other.nodes[0]):
                await _honest(bench, running, elsewhere)
            async with _attacked(running.cluster, leader):
                await _honest(bench, running, beset)
        await hostile_calls.calls(bench, running, other)
        grown = _grown(leader.name, before, _memory(running))
    _add(bench, f"p99 of honest commits, {ATTACKERS} attackers of the leader / none", beset, calm)
    _add(bench, "the same, attackers of another node / none", elsewhere, calm, goal=False)
    _add(bench, "the same, attackers of the leader / of another node", beset, elsewhere)
    bench.add(Figure("hostile", GREW, grown, "MiB", most(64)))


def _add(bench: Bench, what: str, part: Part, other: Part, *, goal: bool = True) -> None:
    """One ratio of two parts' p99s."""
    ratio = part.p99_ms / other.p99_ms
    more: dict[str, object] = {"other_p50_ms": other.p50_ms, "other_p99_ms": other.p99_ms}
    more["other_leader_cores"] = other.effort.leader
    wanted = most(2.0) if goal else None
    p50, p99, effort = part.p50_ms, part.p99_ms, part.effort
    figure = Figure("hostile", what, ratio, "times", wanted, p50, p99, effort=effort, more=more)
    bench.add(figure)


@contextlib.asynccontextmanager
async def _another(bench: Bench) -> AsyncIterator[Cluster]:
    """A node that nobody but the attackers speaks to."""
    cluster = Cluster(bench.folder / "run" / "hostile-other", count=1)
    try:
        await asyncio.to_thread(cluster.__enter__)
        yield cluster
    finally:
        await asyncio.to_thread(cluster.__exit__)


async def _honest(bench: Bench, running: Running, part: Part) -> None:
    await commit_until(passed(bench.sizes.seconds / 2), running, part)


@contextlib.asynccontextmanager
async def _attacked(cluster: Cluster, node: Node) -> AsyncIterator[None]:
    """Attackers in a process of their own, so that only the machine and the node are shared."""
    command = ["nice", sys.executable, "-m", "harness.hostile", node.address, str(EACH)]
    command += cluster.tls_files()
    attackers = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert attackers.stdout is not None
        await attackers.stdout.readline()
        yield
    finally:
        attackers.kill()
        await attackers.wait()


def _grown(leader: str, before: dict[str, int], after: dict[str, int]) -> float:
    """MiB by which the leader grew more than its followers, which apply and keep all it does."""
    grown = {name: (after[name] - before[name]) / 2**20 for name in before}
    mine = grown.pop(leader)
    return mine - sum(grown.values()) / len(grown)


def _memory(running: Running) -> dict[str, int]:
    """Of each node by name."""
    return {name: machine.memory_bytes(pid) for name, pid in running.pids().items()}
