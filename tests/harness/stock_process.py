"""Three stock nodes in one process, to be killed as one: what they acknowledge, and what is left.

    python -m harness.stock_process put FOLDER      prints what was acknowledged; waits for its end
    python -m harness.stock_process dump FOLDER     the same, while all three write their dumps
    python -m harness.stock_process left FOLDER     starts again, prints what the new leader holds

A dump is written by a forked child, which lives on when its parent is killed. This one is slow: it
goes on when FOLDER holds a file `go`.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from harness.poll import until
from harness.stock import StockWorld

BEFORE, AFTER = 10, 20
"""Commands put before the dumps begin, and while they are written."""
GO = "go"


class Slow:
    """A part of the state that takes long to write: until the file is there."""

    def __init__(self, go: Path) -> None:
        self._go = go

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        until(self._go.exists, "leave to write the dump")
        return str, ("large",)


def put(folder: Path, *, dump: bool) -> list[str]:
    """All that was acknowledged."""
    world = StockWorld("ABC", folder)
    world.connect("AB", "AC", "BC")
    world.elect("A", "ABC")
    told = world.acknowledged("A", [f"v{i}" for i in range(BEFORE)])
    world.pump("ABC", rounds=6, seconds=0.11)
    for node in world.nodes.values() if dump else ():
        node.part = Slow(folder / GO)
        node.forceLogCompaction()
    world.pump("ABC", rounds=2, seconds=0.11)
    more = world.acknowledged("A", [f"v{i}" for i in range(BEFORE, BEFORE + AFTER)])
    world.pump("ABC", rounds=6, seconds=0.11)
    return [*told, *more]


def left(folder: Path) -> list[str]:
    """What the three hold after their restart, as the one tells that they elect."""
    world = StockWorld("ABC", folder)
    world.connect("AB", "AC", "BC")
    world.elect("A", "ABC")
    items: list[str] = world.nodes["A"].items
    return items


def main(what: str, folder: str) -> None:
    """Print one JSON list."""
    logging.disable(logging.CRITICAL)
    path = Path(folder)
    print(json.dumps(left(path) if what == "left" else put(path, dump=what == "dump")), flush=True)
    if what != "left":
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
