"""Find gaps in one log: in the ordinals of an entry, and in the sequence numbers of a group.

Indexes of entries may be missing (an entry without records has no place in the event log);
ordinals within an entry and records within a group's life may not (S3). All in the JVM. Knows
positions and counts, no payloads.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.read.log_rows import START
from holdfast.replay.spark.log_tables import up_to

FINDINGS_MAX = 100


def ordinal_gaps(rows: DataFrame, begins: Position = START) -> list[Finding]:
    """Find entries whose records are not numbered 0, 1, 2, … each once.

    `begins`: what lies before was cut off; the rest of its entry goes on with the next number.
    """
    entries = rows.groupBy("idx").agg(
        f.sort_array(f.collect_list("ordinal")).alias("ordinals"), f.min("grp").alias("grp")
    )
    first = f.when(f.col("idx") == begins.index, begins.ordinal + 1).otherwise(0)
    right = f.transform("ordinals", lambda _, nth: nth + first)
    bad = entries.where(f.col("ordinals") != right).orderBy("idx").limit(FINDINGS_MAX)
    return [_ordinal_finding(r.idx, r.grp, list(r.ordinals), begins) for r in bad.collect()]


def _ordinal_finding(index: int, group: str, ordinals: list[int], begins: Position) -> Finding:
    """Make the finding for an entry's first wrong ordinal: missing, or there more than once."""
    first = begins.ordinal + 1 if index == begins.index else 0
    due, found = next(pair for pair in enumerate(ordinals, first) if pair[0] != pair[1])
    if found < due:
        text = "the record is there more than once"
        return Finding("duplicated", "", group, Position(index, found), text)
    text = "the entry has later records, but not this one"
    return Finding("gap", "", group, Position(index, due), text)


def sequence_gaps(rows: DataFrame, begins: Position = START) -> list[Finding]:
    """Find groups whose records are not counted 1, 2, 3, … in each life (S3).

    A life begins with `GroupCreated`. Records for the dedupe table of a deleted group (S15) are not
    counted. `begins`: rows up to it stand for what was cut off, and are not judged.
    """
    order = Window.partitionBy("grp").orderBy("idx", "ordinal")
    marks = f.when(f.col("type").isin("GroupCreated", "GroupDeleted"), f.col("type"))
    absent = f.coalesce(f.last(marks, ignorenulls=True).over(order), f.lit("")) != "GroupCreated"
    uncounted = (f.col("type") == "RequestRecorded") & (f.col("grp") != "") & absent
    born = f.col("type") == "GroupCreated"
    before = f.when(born, 0).otherwise(f.lag("grp_seq", 1, 0).over(order)).alias("before")
    steps = rows.select("grp", "idx", "ordinal", "grp_seq", before, uncounted.alias("uncounted"))
    wrong = ~f.col("uncounted") & (f.col("grp_seq") != f.col("before") + 1) & ~up_to(begins)
    bad = steps.where(wrong).orderBy("idx", "ordinal")
    return [
        Finding(
            "gap",
            "",
            r.grp,
            Position(r.idx, r.ordinal),
            f"record {r.grp_seq} follows record {r.before}",
        )
        for r in bad.limit(FINDINGS_MAX).collect()
    ]
