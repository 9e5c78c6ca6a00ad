"""The row about the fold: how many events a second one core decodes, applies and chains.

Processor time, no cluster. The log is the same for every checkout and is folded by the checkout's
own code, in its own environment; with --compiled by this checkout's compiled rules. The hash over
all records must be the one that this process has.
"""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench import fold_entries
from bench.figures import Figure, least
from bench.rig import Bench

PASSES: Final = 5
WORKER: Final = Path(__file__).with_name("fold_worker.py")
GOAL: Final = least(40_000)
"""For commits alone."""


async def fold(bench: Bench) -> None:
    """Folding a log, processor time: commits alone, and mixed events."""
    await asyncio.to_thread(_fold, bench)


def _fold(bench: Bench) -> None:
    for made, goal in ((fold_entries.commits, GOAL), (fold_entries.mixed, None)):
        log = made(bench.sizes.folded_events)
        rate = log.events / seconds_of(log, bench)
        bench.add(Figure("fold", log.name, rate, "events/s", goal, more={"events": log.events}))


def seconds_of(log: fold_entries.Log, bench: Bench) -> float:
    """Processor seconds of the fastest of some passes. Raises RuntimeError if it went wrong."""
    file = bench.folder / "run" / "fold.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(struct.pack(">I", len(each)) + each for each in log.payloads))
    try:
        told = _run(file, bench)
    finally:
        file.unlink()
    if told["chains"] != [log.chain]:
        raise RuntimeError(
            f"{log.name}: the chain of records ends in {told['chains']}, not as here"
        )
    return float(told["seconds"])


def _run(file: Path, bench: Bench) -> Mapping[str, Any]:
    python, environment = sys.executable, None
    if bench.program is not None:
        python, environment = bench.program.command[0], bench.program.environment
    done = subprocess.run(
        [python, "-P", str(WORKER), str(file), str(PASSES)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the fold ended with code {done.returncode}: {done.stderr.strip()}")
    told: Mapping[str, Any] = json.loads(done.stdout)
    return told
