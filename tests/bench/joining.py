"""The part of the row `backup` about one more node: what callers notice while it joins.

The node begins on an empty disk, as a learner. It has joined when it has applied all that was
committed when it was started; it stays a learner, and ends with its cluster.
"""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Final

from bench import commands, sealing
from bench.figures import Figure, most, quantile
from bench.nodes import Node
from bench.rig import Bench, Running, Watch
from bench.steady import Steady

NAME: Final = "node-4"
LOOK_S: Final = 0.2
PATIENCE_S: Final = 600.0
GOAL: Final = most(2)


async def measure(bench: Bench, running: Running, steady: Steady, calm: list[float]) -> None:
    """A learner joins while callers commit. Raises CommandFailed, TimeoutError.

    `calm`: seconds of the callers' commits without it.
    """
    before, watch, began = await sealing.moment(running), Watch(running), time.perf_counter()
    first = len(steady.times)
    entries = await _join(bench, running, steady)
    seconds, effort, times = time.perf_counter() - began, watch.effort(), steady.times[first:]
    term = (await sealing.moment(running)).term
    ratio = quantile(times, 0.99) / quantile(calm, 0.99)
    p50, p99 = quantile(times, 0.5) * 1000, quantile(times, 0.99) * 1000
    more: dict[str, object] = {
        "calls": len(times),
        "entries": entries,
        "calm_p50_ms": quantile(calm, 0.5) * 1000,
        "calm_p99_ms": quantile(calm, 0.99) * 1000,
        "calm_longest_ms": max(calm) * 1000,
    }
    what = "p99 of commits, a new learner gets all that / none"
    bench.add(Figure("backup", what, ratio, "times", GOAL, p50, p99, effort=effort, more=more))
    bench.add(Figure("backup", "the longest of these commits", max(times) * 1000, "ms"))
    bench.add(Figure("backup", "elections meanwhile", term - before.term, "", most(0)))
    bench.add(Figure("backup", "until the learner has applied all", seconds, "s"))


async def _join(bench: Bench, running: Running, steady: Steady) -> int:
    """Start a node and have it taken in; return up to which entry it has applied the log."""
    home = running.cluster.nodes[0].directory.parent
    await commands.run(bench, "cluster", "add-node", "--dir", str(home), "--name", NAME)
    peer, client = _addresses(home / NAME / "node.toml")
    node = Node(NAME, client, 0, home / NAME)
    wanted = await _committed(running)
    running.cluster.launch(node, "--rebuild")
    words = (NAME, "--peer", peer, "--client", client, "--cluster", str(home))
    await commands.run(bench, "node", "add", *words)
    until = time.perf_counter() + PATIENCE_S
    while (applied := await _applied(running, node)) < wanted:
        if time.perf_counter() > until:
            raise TimeoutError(f"{NAME} has applied {applied:,} of {wanted:,} entries")
        await steady.during(LOOK_S)
    return applied


def _addresses(config: Path) -> tuple[str, str]:
    """Where the node's peers and its clients reach it."""
    told = tomllib.loads(config.read_text())["cluster"]["peers"][NAME]
    return told["peer_address"], told["client_address"]


async def _committed(running: Running) -> int:
    described = await running.talk.describe(await running.talk.find_leader())
    if described is None:
        raise TimeoutError("the node that leads does not answer")
    return described.commit_index


async def _applied(running: Running, node: Node) -> int:
    described = await running.talk.describe(node)
    return 0 if described is None else described.applied_index
