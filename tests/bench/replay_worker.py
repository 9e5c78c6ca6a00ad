"""Measures the replay in one warm Spark session: `python -m bench.replay_worker PLAN`.

PLAN is JSON: `logs` (data directories of one node, from small to large) and `parts`. A program of
its own, since the processor time of the driver, the JVM and the workers is that of its tree of
processes. Each part is done on the first log to warm up, then on each log; a line of JSON says what
it took. Imports the product as a user's program would, and of the bench the machine alone.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from bench import machine
from holdfast.coordinator.kernel.evolve import evolve_apart
from holdfast.coordinator.model.state import Group
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.app import session
from holdfast.replay.read.column_check import contradicting
from holdfast.replay.read.log_batches import decoded, read_batches, read_in_order
from holdfast.replay.read.log_rows import Cut
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, sources_by_segment
from holdfast.replay.report import writer
from holdfast.replay.spark.log_tables import rows
from holdfast.replay.verify.fold_job import fold
from holdfast.replay.verify.spark_reader import SparkReader
from holdfast.replay.verify.sql.entries import cluster_state, principals_begin, state_entries
from holdfast.replay.verify.sql.state import living_rows
from holdfast.replay.views.script import script
from holdfast.storage.codec.event_codec import CHAIN_START, chain_hash
from holdfast.storage.codec.state_image import group_contents
from holdfast.storage.segments.segments import BLOCK_INDEXES

MASTER: Final = "local[2]"
LOOK_S: Final = 0.5
"""How often the processes are looked at: a worker that ends takes what it used since with it."""
HASHES: Final = (
    "SELECT idx // ?, count(*), sum(h & 4294967295), sum(h >> 32) FROM "
    "(SELECT idx, hash(idx, ordinal, payload) AS h FROM log) GROUP BY 1"
)


def block_hashes(spark: SparkSession, log: NodeLog) -> None:
    """The sums of record hashes by block, as a verification of sound nodes makes them."""
    SparkReader(spark).fast_sums(log)


def folded(spark: SparkSession, log: NodeLog) -> None:
    """Chains, columns, state and its digest, and the state as keys and values."""
    found = fold(spark, log)
    found.findings()
    found.digest()
    found.release()


def sql_state(spark: SparkSession, log: NodeLog) -> None:
    """The state as keys and values, computed by SQL."""
    table = rows(spark, log)
    entries = state_entries(living_rows(table), principals_begin(table))
    whole = entries.unionByName(cluster_state(table).entries)
    whole.write.format("noop").mode("overwrite").save()


def reported(spark: SparkSession, log: NodeLog) -> None:
    """The whole report: page and pictures."""
    with tempfile.TemporaryDirectory() as out:
        writer.write(analyse(spark, log), Path(out))


def plain_loop(_: SparkSession, log: NodeLog) -> None:
    """The fold's functions one after the other: no Spark, no findings, no result."""
    gc.disable()
    groups: dict[str, Group[Any] | None] = {}
    for bucket in buckets_of(log).values():
        for source in bucket.sources:
            for batch in read_batches(source, Cut()):
                _plain_batch(batch, groups)
    for group in groups.values():
        if group is not None:
            list(group_contents(group))
    _plain_chain(log)
    gc.enable()


def _plain_batch(batch: pa.RecordBatch, groups: dict[str, Group[Any] | None]) -> None:
    records = decoded(batch).records
    contradicting(batch, records)
    payloads, chains = (batch.column(name).to_pylist() for name in ("payload", "chain"))
    for record, payload, chain in zip(records, payloads, chains, strict=True):
        chain_hash(chain, payload)
        if record is not None and (name := record.group_id):
            groups[name] = evolve_apart(groups.get(name), record, 1)


def _plain_chain(log: NodeLog) -> None:
    head = CHAIN_START
    for sources in sources_by_segment(log):
        for some in read_in_order(sources, Cut()):
            for payload in some.payloads:
                head = chain_hash(head, payload)


def duckdb_hashes(_: SparkSession, log: NodeLog) -> None:
    """Sums of DuckDB's own hash over the same columns, by the same blocks."""
    files = [path for segment in log.segments for path in segment.files]
    with duckdb.connect(config={"threads": 2}) as base:
        base.read_parquet(files).create_view("log")
        base.execute(HASHES, [BLOCK_INDEXES]).fetchall()


def duckdb_state(_: SparkSession, log: NodeLog) -> None:
    """The same entries by DuckDB: the rules are the same text, translated."""
    with duckdb.connect(config={"threads": 2}) as base:
        base.execute(script(log))
        base.execute("select sum(length(value)) from holdfast.state").fetchall()


PARTS: Final[dict[str, Callable[[SparkSession, NodeLog], None]]] = {
    "hashes": block_hashes,
    "hashes by DuckDB": duckdb_hashes,
    "fold": folded,
    "plain loop": plain_loop,
    "state by SQL": sql_state,
    "state by DuckDB": duckdb_state,
    "report": reported,
}


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


def measured(meter: Meter, part: str, spark: SparkSession, log: NodeLog) -> None:
    """Do a part once."""
    cpu, wall = meter.seconds(), time.monotonic()
    PARTS[part](spark, log)
    events = sum(segment.manifest.count for segment in log.segments)
    tell(part, events, meter.seconds() - cpu, time.monotonic() - wall)


def main() -> None:
    """Start a session, and do all parts with it."""
    plan = json.loads(sys.argv[1])
    logs = [node_log(Path(each)) for each in plan["logs"]]
    began, meter = time.monotonic(), Meter()
    with session(MASTER) as spark:
        spark.range(1).count()
        tell("start-up", 0, meter.seconds(), time.monotonic() - began)
        for part in plan["parts"]:
            if plan["warm"]:
                PARTS[part](spark, logs[0])
            for log in logs:
                measured(meter, part, spark, log)


if __name__ == "__main__":
    main()
