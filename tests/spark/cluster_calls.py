"""What tests ask of `holdfast.replay.app` in one session on a cluster, and what it comes to.

Run as a program it starts that session itself: a process has either a session with a JVM of its own
or one of Spark Connect. Paths are given from the folder in which only that program runs.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from holdfast.replay import app
from holdfast.replay.stream.told_batches import Batch
from holdfast.replay.stream.watch import Limits
from spark.archive_damage import CUT_AT, LOG, sound_nodes
from spark.followed_logs import alerts, events

BEFORE: Final = CUT_AT[0]
"""The state after so many records is compared with that at the end."""
SEALED_LATER: Final = "later"
"""A folder with the last segment of each node, in a folder of its name."""
LIMITS: Final = Limits(0, 1, 1)
"""So low that there are alerts."""


def make_logs(folder: Path) -> None:
    """Write three nodes, and these once more as they were before they sealed the last segment."""
    for node in sound_nodes(folder / "whole"):
        grown = folder / "grown" / node.name / "segments"
        shutil.copytree(node / "segments", grown)
        last = max(grown.iterdir())
        shutil.move(last, folder / SEALED_LATER / node.name / last.name)


def asked(spark: SparkSession, folder: Path, out: Path) -> dict[str, Any]:
    """Ask everything but whether the logs are true; what comes of it, as JSON has it."""
    node = folder / "whole" / "n2"
    cuts = app.Cut(LOG.rows[BEFORE].position), app.Cut(LOG.rows[-1].position)
    written = app.report([node], out / "report", spark=spark)
    told = {
        "state": app.plain_state(app.state([node], spark=spark)),
        "differing": app.difference([node], *cuts, spark=spark).differing,
        "report": [written.page.read_text(), written.text.read_text()],
        "followed": followed(spark, folder, out),
    }
    return dict(json.loads(json.dumps(told)))


def followed(spark: SparkSession, folder: Path, out: Path) -> dict[str, Any]:
    """Follow one node to its end."""
    node, batches = folder / "whole" / "n2", list[Batch]()
    app.tail(node, out / "tail", once=True, limits=LIMITS, told=batches.append, spark=spark)
    return {
        "batches": [[each.events, each.alerts, list(each.last)] for each in batches],
        "events": [repr(row) for row in events(out / "tail").to_pylist()],
        "alerts": alerts(out / "tail"),
    }


def verified(spark: SparkSession, folder: Path, out: Path) -> list[dict[str, Any]]:
    """Verify a log that grows, with a checkpoint; and when a byte of it has changed."""
    nodes = sorted((folder / "grown").iterdir())

    def run() -> dict[str, Any]:
        told = app.verify(nodes, checkpoint=out / "verified", spark=spark)
        known = told.trusted.records if told.trusted else 0
        found = [[each.kind, each.node] for each in told.findings]
        return {"records": told.records, "known": known, "found": found, "ended": told.passed}

    runs = [run(), run()]
    for node in nodes:
        for segment in (folder / SEALED_LATER / node.name).iterdir():
            shutil.move(segment, node / "segments" / segment.name)
    runs.append(run())
    file = min((nodes[1] / "segments").glob("*/*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return [*runs, run()]


def main(master: str, settings: list[str], what: list[str]) -> None:
    """Do it in a session on a cluster, in the folder in which this runs, and print it."""
    conf = dict(each.split("=", 1) for each in settings)
    here, out = Path(), Path("out")
    calls = {"asked": asked, "followed": followed, "verified": verified}
    with app.session(master, quick=True, conf=conf) as spark:
        print(json.dumps({name: calls[name](spark, here, out) for name in what}))


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
