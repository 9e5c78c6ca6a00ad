"""Part of the row about hostile callers: one with a certificate sends the largest calls there are.

For each kind, what honest callers notice beside one that attacks their leader in a closed loop,
against the same attack on another cluster's node of this machine; and the codes that it was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

from bench.figures import Figure, most
from bench.honest import Part, commit_until, passed
from bench.nodes import Cluster, Node
from bench.rig import Bench, Running
from harness.hostile_calls import CALLS

ROUNDS: Final = 4
"""Few calls are hit by a rare one of the attacker's, so a p99 wants many."""


class WrongCode(Exception):
    """An attack ended otherwise than it must."""


async def calls(bench: Bench, running: Running, other: Cluster) -> None:
    """Each kind in turns with itself elsewhere."""
    for kind, (wanted, _) in CALLS.items():
        elsewhere, beset, codes = Part(), Part(), Counter[str]()
        for _ in range(ROUNDS):
            async with _attacked(other, other.nodes[0], kind, Counter()):
                await _honest(bench, running, elsewhere)
            async with _attacked(running.cluster, running.talk.leader, kind, codes):
                await _honest(bench, running, beset)
        _check(kind, wanted, codes)
        _add(bench, kind, beset, elsewhere, codes)


def _check(kind: str, wanted: str, codes: Counter[str]) -> None:
    """Raise WrongCode unless it was told the right one, and no other but OK."""
    if not codes[wanted] or set(codes) - {wanted, "OK"}:
        raise WrongCode(f"{kind}: {dict(codes)}, and not {wanted}")


def _add(bench: Bench, kind: str, part: Part, other: Part, codes: Counter[str]) -> None:
    ratio = part.p99_ms / other.p99_ms
    more: dict[str, object] = {"other_p50_ms": other.p50_ms, "other_p99_ms": other.p99_ms}
    more |= {"codes": dict(codes)}
    told = ", ".join(f"{count:,} {code}" for code, count in sorted(codes.items()))
    what = f"{kind} ({told}): p99 of others, attacked leader / another node"
    p50, p99, effort = part.p50_ms, part.p99_ms, part.effort
    bench.add(
        Figure("hostile", what, ratio, "times", most(2.0), p50, p99, effort=effort, more=more)
    )


async def _honest(bench: Bench, running: Running, part: Part) -> None:
    await commit_until(passed(bench.sizes.seconds / 2), running, part)


@contextlib.asynccontextmanager
async def _attacked(
    cluster: Cluster, node: Node, kind: str, codes: Counter[str]
) -> AsyncIterator[None]:
    """One attacker in a process of its own; at the end it tells how its calls ended."""
    command = ["nice", sys.executable, "-m", "harness.hostile_calls", node.address, kind]
    command += cluster.tls_files()
    attacker = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert attacker.stdout is not None
        if not await attacker.stdout.readline():
            raise WrongCode(f"{kind}: the attacker ended before it began")
        yield
        attacker.terminate()
        codes.update(json.loads(await attacker.stdout.readline()))
    finally:
        with contextlib.suppress(ProcessLookupError):
            attacker.kill()
        await attacker.wait()
