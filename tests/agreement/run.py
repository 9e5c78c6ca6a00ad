"""`./dev agree`: compares the state by SQL, by the fold and of the live node at places of a log.

Without a log it makes one up, whose leader tells its state at the places. `--chaos` takes the
evidence of a run of `./dev chaos --out DIR`, whose nodes told theirs while they were tortured;
`--node-dir` with `--anchor` any other log. Exit codes: 0 all are equal, 1 something differs, 2 it
could not be asked for so.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agreement.agreeing import compare
from agreement.places import chosen
from holdfast.chaos.workload.anchors import ANCHORS as TOLD_IN_CHAOS
from holdfast.replay.findings import WrongUse
from holdfast.replay.generate.plan import Plan, PlanRefused
from holdfast.replay.generate.write import ANCHORS, write_history
from holdfast.replay.read.anchor_files import Anchor, read_anchors, refuse_others
from holdfast.replay.read.node_logs import TAIL, NodeLog, node_log

GROUP_EVENTS: Final = 50
"""A made-up log has a group for so many events, as a busy cluster has."""
EXPORT: Final = (sys.executable, "-P", "-m", "holdfast.cli", "log", "export")


def main() -> int:
    """Compare as the command line says."""
    asked = arguments()
    seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-agree-", dir=asked.work) as work:
            found = list(_of_all(asked, seed, Path(work)))
    except (WrongUse, PlanRefused, OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(found)} DIFFERENCES" if found else "SQL, fold and live state are one")
    return 1 if found else 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./dev agree", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="of the log that is made up")
    parser.add_argument("--positions", type=int, default=10, help="how many places; default 10")
    parser.add_argument("--seed", type=int, help="of the log and of the places; default: any")
    parser.add_argument("--work", type=Path, help="where a folder for large files is made")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--chaos", type=Path, metavar="DIR", help="the evidence of a chaos run")
    other.add_argument("--node-dir", type=Path, metavar="DIR", help="of a node, or its segments")
    parser.add_argument("--anchor", type=Path, action="append", default=[], metavar="FILE")
    given = parser.parse_args()
    if given.anchor and given.node_dir is None:
        parser.error("--anchor belongs to --node-dir; the other logs have anchors of their own")
    return given


def _of_all(asked: argparse.Namespace, seed: int, work: Path) -> Iterator[str]:
    """Compare the log, or that of each node of a chaos run; yield what differs."""
    if asked.node_dir is not None:
        yield from _of_log(asked, seed, work, asked.node_dir, asked.anchor)
    elif asked.chaos is not None:
        nodes = sorted((asked.chaos / "cluster").glob("*/data"))
        if not nodes:
            raise WrongUse(f"{asked.chaos} holds no cluster: give the --out of a chaos run")
        for number, node in enumerate(nodes):  # their logs are alike: each at places of its own
            _export(node)
            yield from _of_log(asked, seed + number, work, node, [asked.chaos / TOLD_IN_CHAOS])
    else:
        groups = max(asked.events // GROUP_EVENTS, 1)
        plan = Plan(
            asked.events, groups, seed=seed, nodes=1, witness=False, anchors=asked.positions
        )
        made = write_history(plan, work / "made").folder
        yield from _of_log(asked, seed, work, made / "node-1", [made / ANCHORS])


def _export(node: Path) -> None:
    """Have the command write what the stopped node had not sealed, unless that is done."""
    if not (node / TAIL).is_dir():
        subprocess.run([*EXPORT, "--node-dir", node, "--out", node / TAIL], check=True)


def _of_log(
    asked: argparse.Namespace, seed: int, work: Path, node: Path, files: Sequence[Path]
) -> list[str]:
    log = node_log(node)
    anchors = read_anchors(files)
    refuse_others(anchors, {segment.manifest.cluster_id for segment in log.segments})
    places = chosen(log, anchors, asked.positions, seed)
    print(_head(node, log, anchors), flush=True)
    if not places:
        raise WrongUse(f"no anchor lies within the log of {node}, which ends at {log.last}")
    found = compare(log, places, work, lambda point: print(point, flush=True))
    for each in found:
        print(f"  - {each}")
    return found


def _head(node: Path, log: NodeLog, anchors: Sequence[Anchor]) -> str:
    records = sum(segment.manifest.count for segment in log.segments)
    return f"{node}: {records:,} records up to {log.last.index}, {len(anchors)} anchors"


if __name__ == "__main__":
    sys.exit(main())
