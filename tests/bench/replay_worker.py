"""Measures the replay in one warm Spark session: `python -m bench.replay_worker PLAN`.

PLAN is JSON: `logs` (data directories of one node, from small to large), `parts` and `peers` (each
is done on the first log before it is measured), and `verified` (names for a verification of each
log, and for one more from a checkpoint). Peers come last: the memory that they need is their own.
A program of its own, since the processor time of the driver, the JVM and the workers is that of its
tree of processes. A line of JSON says what each took. Knows how to measure, no part
(`replay_parts`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from pyspark.sql import SparkSession

from bench import machine
from bench.replay_parts import PARTS, verified, verified_before
from holdfast.replay.app import session
from holdfast.replay.read.node_logs import NodeLog, node_log

MASTER: Final = "local[2]"
LOOK_S: Final = 0.5
"""How often the processes are looked at: a worker that ends takes what it used since with it."""


def tree(pid: int) -> dict[int, str]:
    """The process and all below it, with their commands."""
    parents, commands = dict[int, int](), dict[int, str]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        parents[int(entry.name)], commands[int(entry.name)] = int(rest.split()[1]), command
    found = {pid: "driver"}
    while more := {n: commands[n] for n, up in parents.items() if up in found and n not in found}:
        found |= more
    return found


class Meter:
    """Processor time of the tree, also of the workers that have ended; Spark waits for none."""

    def __init__(self) -> None:
        self._seen: dict[int, float] = {}
        self._ended = 0.0
        self._lock = Lock()
        Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.seconds()
            time.sleep(LOOK_S)

    def seconds(self) -> float:
        """All of it so far."""
        with self._lock:
            for pid in tree(os.getpid()):
                with suppress(OSError):  # it has ended meanwhile
                    now, before = machine.cpu_seconds(pid), self._seen.get(pid, 0.0)
                    if now < before:  # another process has the number
                        self._ended += before
                    self._seen[pid] = now
            return self._ended + sum(self._seen.values())


def peaks() -> dict[str, int]:
    """The largest resident memory so far, in bytes: of the driver, the JVM, and any worker."""
    found: dict[str, int] = {}
    for pid, command in tree(os.getpid()).items():
        kind = {"driver": "driver", "java": "JVM"}.get(command, "worker")
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                found[kind] = max(found.get(kind, 0), int(line.split()[1]) * 1024)
    return found


def tell(part: str, events: int, cpu: float, wall: float) -> None:
    """One line of the result."""
    line = {"part": part, "events": events, "cpu": cpu, "wall": wall, "peaks": peaks()}
    print(json.dumps(line), flush=True)


def measured(meter: Meter, part: str, log: NodeLog, do: Callable[[], object]) -> None:
    """Do a part once."""
    cpu, wall = meter.seconds(), time.monotonic()
    do()
    events = sum(segment.manifest.count for segment in log.segments)
    tell(part, events, meter.seconds() - cpu, time.monotonic() - wall)


def verifications(meter: Meter, spark: SparkSession, log: NodeLog, whole: str, new: str) -> None:
    """Verify a log, and once more from a checkpoint behind nine tenths of it."""
    with verified_before(spark, log) as checkpoint:
        measured(meter, whole, log, partial(verified, spark, log))
        measured(meter, new, log, partial(verified, spark, log, checkpoint))


def main() -> None:
    """Start a session, and do all parts with it."""
    plan = json.loads(sys.argv[1])
    logs = [node_log(Path(each)) for each in plan["logs"]]
    began, meter = time.monotonic(), Meter()
    with session(MASTER) as spark:
        spark.range(1).count()
        tell("start-up", 0, meter.seconds(), time.monotonic() - began)
        each_part(meter, spark, logs, plan["parts"])
        for log in logs if plan["verified"] else ():
            verifications(meter, spark, log, *plan["verified"])
        each_part(meter, spark, logs, plan["peers"])


def each_part(
    meter: Meter, spark: SparkSession, logs: Sequence[NodeLog], parts: Sequence[str]
) -> None:
    """Do parts on all logs, each once before on the first."""
    for part in parts:
        PARTS[part](spark, logs[0])
        for log in logs:
            measured(meter, part, log, partial(PARTS[part], spark, log))


if __name__ == "__main__":
    main()
