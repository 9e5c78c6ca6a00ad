"""`./dev bench [ROW...]`: what Holdfast reaches on this machine, with the conditions beside it.

Every row starts three nodes with mutual TLS, loads them from this one process, and ends them.
Results: a table, and bench-out/bench.json. docs/performance.md says how each row is measured.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import uvloop

from bench import against, machine, sides, table
from bench.checkouts import ROOT, NotUsable, find, importing_first
from bench.comparison import A, B, Turn, compare
from bench.figures import Figure, quantile
from bench.nodes import OWN, Program
from bench.rig import Bench, Say
from bench.rows import ROWS, measure
from bench.sizes import FULL, QUICK, Sizes

PAIRS = 4


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; exits with code 2 if it makes no sense."""
    about = "\n".join(
        f"  {name:<12}{(row.__doc__ or '').splitlines()[0]}" for name, row in ROWS.items()
    )
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description=__doc__,
        epilog=f"rows:\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="default: all")
    parser.add_argument("--quick", action="store_true", help="a smaller run; figures scatter more")
    parser.add_argument("--kills", type=int, help="how often the leader is killed; default 10")
    parser.add_argument(
        "--replayed", type=int, nargs=2, metavar=("SMALL", "LARGE"),
        help="events of the two logs of the row replay; default 1000000 10000000",
    )  # fmt: skip
    parser.add_argument("--peers", action="store_true", help="fetch etcd if it is not on PATH")
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="default: bench-out")
    parser.add_argument(
        "--against", type=Path, metavar="PATH",
        help="set this checkout's load against the nodes of another and of this one in turn",
    )  # fmt: skip
    parser.add_argument(
        "--compiled", type=Path, metavar="SITE",
        help="this checkout's nodes and fold run compiled rules; ./dev compiles them if need be",
    )  # fmt: skip
    parser.add_argument("--pairs", type=int, help="with --against: turns of each; default 4")
    given = parser.parse_args(words)
    known = against.COMPARABLE if given.against else tuple(ROWS)
    for name in given.rows:
        if name not in known:
            where = "with --against " if name in ROWS else ""
            parser.error(f"{where}there is no row {name!r}; there are: {' '.join(known)}")
    if given.pairs is not None and (not given.against or given.pairs < 1):
        parser.error("--pairs needs --against, and a number of at least 1")
    return given


def sizes(given: argparse.Namespace) -> Sizes:
    """How much is to be done."""
    chosen = QUICK if given.quick else FULL
    if given.replayed:
        chosen = chosen.with_replayed(*sorted(given.replayed))
    return chosen.with_kills(given.kills) if given.kills else chosen


def own_program(given: argparse.Namespace) -> Program | None:
    """What starts this checkout's nodes with compiled rules; None: as they are."""
    if given.compiled is None:
        return None
    return OWN._replace(environment=importing_first(given.compiled, os.environ))


def disk(bench: Bench) -> None:
    """The disk alone: what one synced write costs, before anything else is measured."""
    times = machine.sync_times(bench.folder)
    p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
    what = "fdatasync of 256 bytes, p50"
    bench.add(Figure("disk", what, p50, "ms", p50_ms=p50, p99_ms=p99))


def measured(given: argparse.Namespace, folder: Path) -> int:
    """Measure this checkout; 0: all rows were measured, 1: some were not, 130: interrupted."""
    bench = Bench(sizes(given), folder, Say(), peers=given.peers, program=own_program(given))
    conditions = machine.conditions(folder) | {"quick": given.quick}
    conditions["compiled"] = given.compiled is not None
    failed: dict[str, str] = {"run": "interrupted"}
    disk(bench)
    with contextlib.suppress(KeyboardInterrupt):
        failed = uvloop.run(measure(bench, given.rows or list(ROWS)))
        failed |= bench.lacking
    shutil.rmtree(folder / "run", ignore_errors=True)
    disk(bench)
    table.write(folder / "bench.json", conditions | {"failed": failed}, bench.figures)
    print(f"\n{table.render(bench.figures)}\n")
    if any(figure.cost for figure in bench.figures):
        print(f"what an operation costs:\n\n{table.render_costs(bench.figures)}\n")
    for name, why in failed.items():
        print(f"not measured: {name}: {why}")
    print(f"conditions and all figures: {folder / 'bench.json'}")
    return 130 if "run" in failed else int(bool(failed))


def compared(given: argparse.Namespace, folder: Path) -> int:
    """Compare two checkouts; 0: done, 1: a turn failed, 2: not a checkout, 130: interrupted.

    What the other checkout cannot do is named, and is no failure.
    """
    try:
        checkouts = {A: find(given.against), B: replace(find(ROOT), compiled=given.compiled)}
    except NotUsable as error:
        print(f"./dev bench --against {given.against}: {error}", file=sys.stderr)
        return 2
    run = against.Against(checkouts, sizes(given), given.quick, folder, Say())
    conditions = against.conditions(run)
    turns: list[Turn] = []
    interrupted = True
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(run.run(given.rows or against.BY_DEFAULT, given.pairs or PAIRS, turns))
        interrupted = False
    shutil.rmtree(folder / "run", ignore_errors=True)
    found = compare(turns)
    sides.write(folder / "against.json", conditions, turns, found)
    print(f"\n{sides.text(checkouts, turns, found)}")
    print(f"{'interrupted; ' if interrupted else ''}all turns: {folder / 'against.json'}")
    failed = any(turn.failed or (turn.side != A and turn.lacking) for turn in turns)
    return 130 if interrupted else int(failed)


def main(words: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    given = arguments(words)
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return compared(given, folder) if given.against else measured(given, folder)


if __name__ == "__main__":
    sys.exit(main())
