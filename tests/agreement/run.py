"""`./dev agree`: compares the state by SQL, by the fold and of the live node at places of a log.

Without a log it makes one up, whose leader tells its state at the places. `--chaos` takes the
evidence of a run of `./dev chaos --out DIR`, whose nodes told theirs while they were tortured;
`--node-dir` with `--anchor` any other log. Exit codes: 0 all are equal, 1 something differs, 2 it
could not be compared, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb

from agreement.agreeing import compare
from agreement.places import chosen
from holdfast.chaos.workload.anchors import ANCHORS as TOLD_IN_CHAOS
from holdfast.replay.findings import WrongUse
from holdfast.replay.generate.plan import Plan
from holdfast.replay.generate.write import ANCHORS, write_history
from holdfast.replay.read.anchor_files import Anchor, read_anchors, refuse_others
from holdfast.replay.read.node_logs import SEGMENTS, TAIL, NodeLog, node_log
from holdfast.storage.codec.event_codec import CodecError

GROUP_EVENTS: Final = 50
"""A made-up log has a group for so many events, as a busy cluster has."""
FLAWS: Final = (
    *(WrongUse, ValueError, CodecError, OSError),
    *(duckdb.Error, subprocess.CalledProcessError),
)
"""What a log, a disk or a command line may have that leaves nothing to compare."""
EXPORT: Final = (sys.executable, "-P", "-m", "holdfast.cli", "log", "export")


def main() -> int:
    """Compare as the command line says."""
    asked = arguments()
    seed = secrets.randbelow(1 << 31) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-agree-", dir=asked.work) as work:
            found = list(_of_all(asked, seed, Path(work)))
    except FLAWS as error:
        print(f"it could not be compared: {_sentence(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"{len(found)} DIFFERENCES" if found else "SQL, fold and live state are one")
    return 1 if found else 0


def _sentence(error: Exception) -> str:
    """Return the first line of what an error says; DuckDB's go on with the statement."""
    return next(iter(str(error).splitlines()), type(error).__name__)


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
    if given.positions < 1:
        parser.error("--positions must be at least 1: where nothing is compared, nothing is proven")
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
            copy = _exported(node, work / node.parent.name)
            yield from _of_log(asked, seed + number, work, copy, [asked.chaos / TOLD_IN_CHAOS])
    else:
        groups = max(asked.events // GROUP_EVENTS, 1)
        plan = Plan(
            asked.events, groups, seed=seed, nodes=1, witness=False, anchors=asked.positions
        )
        made = write_history(plan, work / "made").folder
        yield from _of_log(asked, seed, work, made / "node-1", [made / ANCHORS])


def _exported(node: Path, copy: Path) -> Path:
    """Copy a stopped node's segments, and export there what it had not sealed.

    The evidence stays as the run has left it.
    """
    copy.mkdir()
    if (node / SEGMENTS).is_dir():
        shutil.copytree(node / SEGMENTS, copy / SEGMENTS)
    subprocess.run([*EXPORT, "--node-dir", node, "--out", copy / TAIL], check=True)
    return copy


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
