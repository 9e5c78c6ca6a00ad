"""`./dev bench [ROW...]`: what Holdfast reaches on this machine, with the conditions beside it.

Every row starts three nodes with mutual TLS, loads them from this one process, and ends them.
Results: a table, and bench-out/bench.json. docs/performance.md says how each row is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
from pathlib import Path

import uvloop

from bench import machine, table
from bench.figures import Figure, quantile
from bench.rig import Bench, Say
from bench.rows import ROWS
from bench.sizes import FULL, QUICK, Sizes


def arguments() -> argparse.Namespace:
    """Read the command line."""
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
    parser.add_argument("--peers", action="store_true", help="fetch etcd if it is not on PATH")
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="default: bench-out")
    given = parser.parse_args()
    for name in given.rows:
        if name not in ROWS:
            parser.error(f"there is no row {name!r}; there are: {' '.join(ROWS)}")
    return given


def sizes(given: argparse.Namespace) -> Sizes:
    """How much is to be done."""
    chosen = QUICK if given.quick else FULL
    return chosen.with_kills(given.kills) if given.kills else chosen


async def measure(bench: Bench, names: list[str]) -> dict[str, str]:
    """Run rows one after another; what went wrong, by row."""
    failed: dict[str, str] = {}
    for name in names:
        bench.say(f"{name}: {(ROWS[name].__doc__ or '').splitlines()[0]}")
        try:
            async with asyncio.timeout(bench.sizes.row_seconds_max):
                await ROWS[name](bench)
        except Exception as error:  # noqa: BLE001 - the other rows are still worth having
            failed[name] = f"{type(error).__name__}: {error}"
            bench.say(f"{name}: FAILED: {failed[name]}")
    failed |= bench.lacking
    return failed


def disk(bench: Bench) -> None:
    """The disk alone: what one synced write costs, before anything else is measured."""
    times = machine.sync_times(bench.folder)
    p50, p99 = quantile(times, 0.5), quantile(times, 0.99)
    what = "fdatasync of 256 bytes, p50"
    bench.add(Figure("disk", what, p50, "ms", p50_ms=p50, p99_ms=p99))


def main() -> int:
    """Run it; 0: all rows were measured, 1: some were not, 130: interrupted."""
    given = arguments()
    folder = given.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bench = Bench(sizes(given), folder, Say(), peers=given.peers)
    conditions = machine.conditions(folder) | {"quick": given.quick}
    failed: dict[str, str] = {"run": "interrupted"}
    disk(bench)
    with contextlib.suppress(KeyboardInterrupt):
        failed = uvloop.run(measure(bench, given.rows or list(ROWS)))
    shutil.rmtree(folder / "run", ignore_errors=True)
    disk(bench)
    table.write(folder / "bench.json", conditions | {"failed": failed}, bench.figures)
    print(f"\n{table.render(bench.figures)}\n")
    print(f"what an operation costs:\n\n{table.render_costs(bench.figures)}\n")
    for name, why in failed.items():
        print(f"not measured: {name}: {why}")
    print(f"conditions and all figures: {folder / 'bench.json'}")
    return 130 if "run" in failed else int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
