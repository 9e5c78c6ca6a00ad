"""`./dev bench --against PATH`: this checkout's load on the nodes of two checkouts, turn by turn.

A turn is one row on one checkout's nodes. Rows without load (`start`, `assign`, `door`) are
measured by each checkout's own `./dev bench`, in its own environment and with its own code.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import machine
from bench.checkouts import Checkout
from bench.comparison import BARE, Seen, Turn, by_name, plan, seen, seen_in
from bench.figures import REST, median
from bench.rig import Bench, Say
from bench.rows import ROWS, measure
from bench.sizes import Sizes

PURE: Final = ("start", "assign", "door")
"""Rows that need the code of the checkout itself, not only its nodes."""
PEERS: Final = ("etcd", "replay")
"""Rows about the nodes of others: the same for both checkouts."""
COMPARABLE: Final = tuple(name for name in ROWS if name not in PEERS)
LONG: Final = ("soak",)
"""Rows that are compared only when they are named: eight turns of it are hours."""
BY_DEFAULT: Final = tuple(name for name in COMPARABLE if name not in LONG)
GRACE_S: Final = 60.0
"""How long a checkout's own run may take to stop its nodes."""


@dataclass(frozen=True, slots=True)
class Against:
    """One run in turns. `checkouts`: by side."""

    checkouts: Mapping[str, Checkout]
    sizes: Sizes
    quick: bool
    folder: Path
    say: Say

    async def run(self, rows: Sequence[str], pairs: int, turns: list[Turn]) -> None:
        """Append each turn as soon as it is done, so that an interrupted run has what it saw."""
        began = time.monotonic()
        all_turns = list(plan(rows, pairs))
        for done, (pair, row, side) in enumerate(all_turns):
            if done:
                left = (time.monotonic() - began) * (len(all_turns) / done - 1)
                self.say(f"turn {done + 1} of {len(all_turns)}, about {left:.0f} s to go")
            say = self.say.within(f"pair {pair + 1} of {pairs}, {side}")
            measured = self._pure if row in PURE else self._loaded
            turns.append(await measured(Turn(row, pair, side), say))

    async def _loaded(self, turn: Turn, say: Say) -> Turn:
        """Our load on the side's nodes; `bare` has none."""
        program = None if turn.side == BARE else self.checkouts[turn.side].program
        bench = Bench(self.sizes, self.folder, say, program=program)
        failed = await measure(bench, [turn.row])
        figures = by_name(map(seen, bench.figures))
        lacking = {name.removeprefix(f"{turn.row}: "): why for name, why in bench.lacking.items()}
        why = failed.get(turn.row, "")
        return Turn(turn.row, turn.pair, turn.side, figures, lacking, why)

    async def _pure(self, turn: Turn, say: Say) -> Turn:
        """The side's own run of a row."""
        out = self.folder / "run" / f"own-{turn.side}"
        arguments = ["bench", turn.row, "--out", str(out), *(["--quick"] if self.quick else [])]
        arguments += ["--compiled"] if self.checkouts[turn.side].compiled else []
        say(f"{turn.row}: by its own ./dev bench")
        try:
            said, code = await _run(self.checkouts[turn.side], arguments, say)
            return outcome(turn, said, code, _written(out / "bench.json"))
        finally:
            shutil.rmtree(out, ignore_errors=True)


def conditions(run: Against) -> dict[str, object]:
    """What a reader needs in order to judge the comparison."""
    load = machine.conditions(run.folder) | {"quick": run.quick}
    load["sync_p50_ms"] = median(machine.sync_times(run.folder))
    checkouts = {
        side: {"path": str(checkout.root), **checkout.about}
        for side, checkout in run.checkouts.items()
    }
    return load | {"checkouts": checkouts}


def outcome(turn: Turn, said: Sequence[str], code: int, written: Mapping[str, Any]) -> Turn:
    """What a checkout's own run came to: its exit code, and the bench.json that it wrote."""
    last = next((line for line in reversed(said) if line), "it said nothing")
    if "there is no row" in last:
        lacking = {REST: "its ./dev bench has no such row"}
        return Turn(turn.row, turn.pair, turn.side, lacking=lacking)
    failed = f"its ./dev bench ended with code {code}: {last}" if code else ""
    figures: dict[str, Seen] = {}
    try:
        failed = written.get("conditions", {}).get("failed", {}).get(turn.row, failed)
        of_row = [found for found in written.get("figures", ()) if found["row"] == turn.row]
        figures = by_name(map(seen_in, of_row))
    except (KeyError, TypeError, AttributeError) as error:
        failed = f"its bench.json is of another layout: {type(error).__name__}: {error}"
    return Turn(turn.row, turn.pair, turn.side, figures, failed=failed)


async def _run(checkout: Checkout, arguments: Sequence[str], say: Say) -> tuple[list[str], int]:
    """Run a task of a checkout, show its progress; all that it said, and its exit code."""
    process = await asyncio.create_subprocess_exec(
        *checkout.dev(*arguments), cwd=checkout.root, env=checkout.program.environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said: list[str] = []
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            said.append(line.decode(errors="replace").rstrip())
            if said[-1].startswith("["):
                say(said[-1].partition("] ")[2])
        return said, await process.wait()
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a run that is not done: it has nodes of its own to stop first."""
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_S)
    if process.returncode is None:
        process.kill()
        await process.wait()


def _written(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    return found
