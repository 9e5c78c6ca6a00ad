"""Check that all acknowledged changes are in the log; no digest of logs shows that, clients do.

A witness file has a line of JSON for each acknowledged change: `request_id`, `group`, `kind`, and,
where the answer had it, `index` and `ordinal` of its position. The lines are anti-joined with the
log: by request id (of a record, or of a join that a generation answered), and by position. Knows
the rows of the log, no fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding

FINDINGS_MAX = 100
SCHEMA = "request_id string, `group` string, kind string, index bigint, ordinal bigint, bad string"


def read_changes(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Read the lines of the witness files. Raises FileNotFoundError for a missing file."""
    check_witnesses(files)
    reader = spark.read.schema(SCHEMA).option("columnNameOfCorruptRecord", "bad")
    return reader.json([str(path) for path in files]).cache()


def check_witnesses(files: Sequence[Path]) -> None:
    """Raise FileNotFoundError for a missing witness file."""
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"there is no witness file {path}: was the client started?")


def before(begins: Position) -> Column:
    """Make the condition that a change is in the part of the log that was cut off (S24)."""
    index, ordinal = f.col("index"), f.coalesce(f.col("ordinal"), f.lit(0))
    inside = (index == begins.index) & (ordinal <= begins.ordinal)
    return f.coalesce((index < begins.index) | inside, f.lit(False))  # noqa: FBT003 - a value


def unreadable_lines(changes: DataFrame) -> list[Finding]:
    """Find lines that are no witness: a change that cannot be looked for is not proven."""
    nothing = f.col("request_id").isNull() & f.col("index").isNull()
    rows = changes.where(f.col("bad").isNotNull() | nothing).limit(FINDINGS_MAX).collect()
    return [
        Finding("unreadable", "", "", None, f"a line of a witness file is none: {r.bad or r!r}")
        for r in rows
    ]


def missing_requests(changes: DataFrame, rows: DataFrame) -> list[Finding]:
    """Find acknowledged request ids that no record carries and no generation answered."""
    own = rows.where("request_id <> ''").select("grp", "request_id")
    served = rows.where("served is not null").select("grp", f.explode("served"))
    in_log = own.unionByName(served.toDF("grp", "request_id")).distinct()
    asked = changes.where(f.coalesce(f.col("request_id"), f.lit("")) != "")
    same = (asked["request_id"] == in_log["request_id"]) & (_group(asked) == in_log["grp"])
    lost = asked.join(in_log, same, "left_anti").limit(FINDINGS_MAX).collect()
    return [
        Finding(
            "lost",
            "",
            r["group"] or "",
            None if r["index"] is None else Position(r["index"], r["ordinal"] or 0),
            f"{r['kind']} {r['request_id']} was acknowledged and is not in the log",
        )
        for r in lost
    ]


def missing_positions(changes: DataFrame, rows: DataFrame) -> list[Finding]:
    """Find acknowledged positions at which the log has no record of that group."""
    asked = changes.where("index is not null")
    same = (asked["index"] == rows["idx"]) & (_group(asked) == rows["grp"])
    same = same & (asked["ordinal"].isNull() | (asked["ordinal"] == rows["ordinal"]))
    lost = asked.join(rows, same, "left_anti").limit(FINDINGS_MAX).collect()
    return [
        Finding(
            "lost",
            "",
            r["group"] or "",
            Position(r["index"], r["ordinal"] or 0),
            f"{r['kind']} {r['request_id'] or ''} was acknowledged at a position where the log has "
            "no record of the group",
        )
        for r in lost
    ]


def _group(changes: DataFrame) -> Column:
    return f.coalesce(changes["group"], f.lit(""))
