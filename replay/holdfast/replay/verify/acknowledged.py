"""Check that all acknowledged changes are in the log; no digest of logs shows that, clients do.

A witness file has a line of JSON for each acknowledged change: `request_id`, `group`, `kind`, and,
where the answer had it, `index` and `ordinal` of its position. The lines are anti-joined with the
log: by request id (of a record, or of a join that a generation answered), and by position. Knows
the rows of the log, no fold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding, WrongUse

FINDINGS_MAX = 100
_LOOKED_AT: Final = 64 * 1024
"""How many bytes are looked at to tell whether a file is one of witnesses."""
SCHEMA = "request_id string, `group` string, kind string, index bigint, ordinal bigint, bad string"


def read_changes(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Read the lines of the witness files. Raises FileNotFoundError for a missing file."""
    check_witnesses(files)
    reader = spark.read.schema(SCHEMA).option("columnNameOfCorruptRecord", "bad")
    return reader.json([str(path) for path in files]).cache()


def check_witnesses(files: Sequence[Path]) -> None:
    """Raise FileNotFoundError for a missing witness file, WrongUse for one of something else.

    A line that is none, among others, is a finding: the file was that of a witness.
    """
    for path in files:
        if not path.is_file():
            raise FileNotFoundError(f"there is no witness file {path}: was the client started?")
        with path.open("rb") as file:
            lines = [line for line in file.read(_LOOKED_AT).splitlines() if line.strip()]
        if lines and not any(map(_is_witness, lines)):
            raise WrongUse(
                f"{path} is no file of witnesses: none of its first lines is JSON with a "
                "request_id, or with the group and the index of a change that was acknowledged"
            )


def _is_witness(line: bytes) -> bool:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and ("request_id" in told or {"group", "index"} <= told.keys())


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
