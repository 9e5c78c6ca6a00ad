"""`./dev upgrades`: upgrade a real cluster and go back, again and again, under load.

    ./dev upgrades --rounds N [--seed S]

Three nodes of this version are replaced, one by one and in random order, by a test build of the
next version, and go back to this one, all of them or some; now and then the upgrade is ended, and
a node of this version is refused from then on. Meanwhile members hold partitions, static ones
restart, and twenty callers commit. Prints a line a round; ends with 1 if a partition moved, an
acknowledged change is lost or was made twice, or nothing was accepted for longer than 1.5 s.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.next_version import build
from upgrades.judge import problems, table, too_slow
from upgrades.plan import Kind, plan
from upgrades.rolling import NODES, Rolling, rolled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrades.judge import Row
    from upgrades.plan import Round


def main(arguments: Sequence[str]) -> int:
    """Run the rounds that were asked for; 1 if a bound is broken."""
    asked = _parse(arguments)
    seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
    print(f"seed {seed}; again with: ./dev upgrades --rounds {asked.rounds} --seed {seed}")
    names = [f"node-{number}" for number in range(1, NODES + 1)]
    with tempfile.TemporaryDirectory(prefix="holdfast-upgrades-") as folder:
        rows = _rows(Path(folder), plan(seed, asked.rounds, names))
    print(table(rows))
    broken = [sentence for row in rows for sentence in (*problems(row), *too_slow(row))]
    print("\n".join(broken) or "0 moves, 0 lost, and no gap longer than 1.5 s")
    return 1 if broken else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev upgrades",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=_positive, default=3, help="how many (3)")
    parser.add_argument("--seed", type=int, help="of orders and kinds; default: another each time")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least one round")
    return number


def _rows(folder: Path, rounds: Sequence[Round]) -> list[Row]:
    """Run the rounds; each cluster serves until an upgrade of it was ended."""
    newer = build(folder / "next")
    rows: list[Row] = []
    for number, part in enumerate(_by_cluster(rounds)):
        with rolled(folder / f"c{number}", newer) as rolling:
            rows += [_told(rolling, planned) for planned in part]
    return rows


def _by_cluster(rounds: Sequence[Round]) -> list[list[Round]]:
    parts: list[list[Round]] = [[]]
    for planned in rounds:
        parts[-1].append(planned)
        if planned.kind is Kind.END:
            parts.append([])
    return [part for part in parts if part]


def _told(rolling: Rolling, planned: Round) -> Row:
    row = rolling.run(planned)
    counted = f"{row.changes} changes, {row.moves} moves, {row.lost} lost, {row.twice} made twice"
    print(f"  round {row.number}: {row.kind}, {counted}, gap {row.gap_s:.2f} s", flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
