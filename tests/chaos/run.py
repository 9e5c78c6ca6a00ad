"""`./dev chaos`: torture a cluster of real processes for minutes or hours, and judge it."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from pathlib import Path

from holdfast.chaos.runner.run import Plan, Refused, StagingFailed, new_folder, run


def main() -> int:
    """Run as the command line says; the exit codes are those of docs/chaos.md."""
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=5.0)
    length.add_argument("--hours", type=float)
    parser.add_argument("--seed", type=int, default=None, help="of the schedule of faults")
    parser.add_argument("--kinds", default="", help="only these, separated by commas")
    parser.add_argument("--workers", type=int, default=2, help="processes with members")
    parser.add_argument("--out", type=Path, help="where the evidence goes; kept if named")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    asked = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
    hours = asked.hours if asked.hours is not None else asked.minutes / 60
    plan = Plan(
        folder=asked.out or new_folder(),
        seed=seed,
        seconds=hours * 3_600,
        kinds=tuple(name for name in asked.kinds.split(",") if name),
        workers=asked.workers,
        keep=asked.out is not None,
    )
    print(f"seed {seed}; again with: ./dev chaos --hours {hours:g} --seed {seed}", flush=True)
    try:
        report = asyncio.run(run(plan, lambda line: print(line, flush=True)))
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    except StagingFailed as error:
        print(error, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("ended at once, so nothing was judged", file=sys.stderr)
        return 130
    print(json.dumps(report.as_json(), indent=2) if asked.json else f"\n{report.table()}")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
