"""What tests of a tail do with it: run it to the end of what is there, and read what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from holdfast.replay.stream.followed import Followed
from holdfast.replay.stream.tail import follow
from holdfast.replay.stream.told_batches import Batch
from holdfast.replay.stream.watch import Limits

LIMITS = Limits(ownerless_ms=1_000, turns=3, rebalances=10)


def followed(
    spark: SparkSession,
    what: Followed,
    out: Path,
    rows_max: int = 10_000,
    told: Callable[[Batch], None] = lambda _: None,
) -> list[Batch]:
    """The batches of one run with `--once`; `told` hears of each as it is done."""
    found: list[Batch] = []

    def hear(batch: Batch) -> None:
        found.append(batch)
        told(batch)

    follow(spark, what, out, limits=LIMITS, once=True, every_s=1, rows_max=rows_max, told=hear)
    return found


def forget_commit(out: Path, number: int) -> None:
    """Be as if killed when all of a batch was written, before Spark's note of it."""
    (out / f"checkpoint/commits/{number}").unlink()
    (out / f"checkpoint/commits/.{number}.crc").unlink(missing_ok=True)


def events(out: Path) -> pa.Table:
    """All rows of all files, as a reader of Parquet that globs finds them, in the log's order."""
    tables = [pq.read_table(path) for path in sorted(out.glob("events/*/*.parquet"))]
    return pa.concat_tables(tables).sort_by([("idx", "ascending"), ("ordinal", "ascending")])


def alerts(out: Path) -> list[dict[str, Any]]:
    """All lines of all files, as who globs finds them."""
    files = sorted(out.glob("alerts/*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]
