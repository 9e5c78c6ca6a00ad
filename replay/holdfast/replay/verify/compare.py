"""Compare states computed in different ways: by SQL, by `evolve`, by the live node.

Knows states and digests, no records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.verify.fold_job import Folded

FINDINGS_MAX = 100


@dataclass(frozen=True, slots=True)
class Expected:
    """What a live node published after entry `index`. What is None or empty is not compared."""

    index: int
    log_time_ms: int | None = None
    """Log time of its state; None: of the last record, right unless later entries had no record."""
    digest: int | None = None  # of its state (`codec.state_image`)
    chain: bytes | None = None  # head of the chain over all records
    groups: Mapping[str, int] = field(default_factory=dict)  # digests of single groups


def sql_against_fold(sql: DataFrame, folded: DataFrame, broken: set[str]) -> list[Finding]:
    """Find keys whose values differ between the implementations; leave out groups in `broken`."""
    keys = ["grp", "kind", "key"]
    one = sql.select(*keys, f.col("value").alias("sql"))
    two = folded.select(*keys, f.col("value").alias("fold"))
    both = one.join(two, keys, "full_outer")
    differing = both.where(~f.col("sql").eqNullSafe(f.col("fold")))
    if broken:
        differing = differing.where(~f.col("grp").isin(sorted(broken)))
    rows = differing.orderBy(*keys).limit(FINDINGS_MAX).collect()
    return [
        Finding(
            "state",
            "",
            r.grp,
            None,
            f"{r.kind} {r.key!r} is {_said(r.sql)} by SQL and {_said(r.fold)} by evolve",
        )
        for r in rows
    ]


def against_live(folded: Folded, expected: Expected) -> list[Finding]:
    """Find what the replay computes differently from what the live node published (S3)."""
    findings = []
    last, head = folded.head()
    place = Position(expected.index, 0)
    if expected.chain is not None and head != expected.chain:
        text = (
            f"the chain ends in {head.hex()[:16]}, the node published {expected.chain.hex()[:16]}"
        )
        text += f"; the last record is {last.index}.{last.ordinal}"
        findings.append(Finding("digest", "", "", place, text))
    digest = folded.digest()
    if expected.digest is not None and digest != expected.digest:
        text = f"the state's digest is {digest:016x}, the node published {expected.digest:016x}"
        findings.append(Finding("digest", "", "", place, text))
    return findings + _groups_against_live(folded, expected)


def _groups_against_live(folded: Folded, expected: Expected) -> list[Finding]:
    if not expected.groups:
        return []
    mine = folded.group_digests(sorted(expected.groups))
    return [
        Finding(
            "digest",
            "",
            group,
            Position(expected.index, 0),
            f"its digest is {mine.get(group, 0):016x}, the node published {published:016x}",
        )
        for group, published in sorted(expected.groups.items())
        if mine.get(group, 0) != published
    ]


def _said(value: str | None) -> str:
    return "absent" if value is None else repr(value)
