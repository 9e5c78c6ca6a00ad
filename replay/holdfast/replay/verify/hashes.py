"""The cheapest layer: compare hashes of all records, summed per block in the JVM.

Each record's hash covers its position and its payload (`segments.segments.record_hash`), so a plain
sum shows a loss, a repetition, a swap and a changed bit, needs no order and no Python. Sums are
compared with the manifests and between nodes; only blocks that differ are opened. Knows no events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import Finding
from holdfast.replay.read.log_rows import START
from holdfast.replay.read.node_logs import NodeLog, Range
from holdfast.replay.spark.log_tables import stored_rows, up_to, within
from holdfast.storage.segments.segments import BLOCK_INDEXES, BlockDigest

FINDINGS_MAX: Final = 100
"""Most positions that are listed one by one: if there are more, something larger has happened."""


class Sum(NamedTuple):
    """The sums over one block of one segment of one node: number, low halves, high halves."""

    node: str
    segment: str
    block: int
    stored: tuple[int, int, int]  # over all stored records
    common: tuple[int, int, int]  # over the records that can be compared between nodes


class Comparable(NamedTuple):
    """The records that all nodes should have: up to `last`, without the ranges a node lacks."""

    last: Position
    lacking: tuple[Range, ...]
    after: Position = START
    """What lies up to here was cut off on some node (S24)."""

    def column(self) -> Column:
        """Make the condition that a row belongs to them."""
        missing = [within(place) for place in self.lacking]
        whole = up_to(self.last) & ~up_to(self.after)
        return reduce(lambda one, two: one & ~two, missing, whole)


def hash_column() -> Column:
    """Compute the SHA-256 over position and payload, in hex; its head is the record's hash."""
    index = f.unhex(f.lpad(f.hex("idx"), 16, "0"))
    ordinal = f.unhex(f.lpad(f.hex(f.col("ordinal").cast("bigint")), 8, "0"))
    return f.sha2(f.concat(index, ordinal, f.col("payload")), 256)


def block_sums(spark: SparkSession, logs: Sequence[NodeLog], common: Comparable) -> list[Sum]:
    """Sum up the hashes of all stored records by block, in one pass."""
    comparable = f.col("fresh") & common.column()
    value = f.col("hash")
    high = f.conv(f.substring(value, 1, 8), 16, 10).cast("bigint")
    low = f.conv(f.substring(value, 9, 8), 16, 10).cast("bigint")
    hashed = _all_rows(spark, logs).select(
        "node", "segment", _block(), comparable.alias("common"), hash_column().alias("hash")
    )
    parts = hashed.select("node", "segment", "block", "common", low.alias("lo"), high.alias("hi"))
    zero = f.lit(0)
    sums = parts.groupBy("node", "segment", "block").agg(
        f.count("*").alias("n"),
        f.sum("lo").alias("lo"),
        f.sum("hi").alias("hi"),
        f.sum(f.when(f.col("common"), 1).otherwise(zero)).alias("cn"),
        f.sum(f.when(f.col("common"), f.col("lo")).otherwise(zero)).alias("clo"),
        f.sum(f.when(f.col("common"), f.col("hi")).otherwise(zero)).alias("chi"),
    )
    return [
        Sum(r.node, r.segment, r.block, (r.n, r.lo, r.hi), (r.cn, r.clo, r.chi))
        for r in sums.collect()
    ]


def against_manifests(logs: Sequence[NodeLog], sums: Sequence[Sum]) -> list[Finding]:
    """Find blocks whose records differ from the node's own manifest."""
    found = {(s.node, s.segment, s.block): s.stored for s in sums}
    findings = []
    for log in logs:
        for segment in log.segments:
            for promised in segment.manifest.blocks:
                counted = found.pop((log.node, segment.key, promised.block), (0, 0, 0))
                findings += _manifest_finding(log.node, segment.key, promised, counted)
    findings += [
        Finding("manifest", node, "", None, f"{segment} has block {block}, which nobody promised")
        for node, segment, block in found
    ]
    return findings


def differing_blocks(logs: Sequence[NodeLog], sums: Sequence[Sum]) -> list[int]:
    """Return the blocks that differ between nodes."""
    totals: dict[int, dict[str, list[int]]] = defaultdict(
        lambda: {log.node: [0, 0, 0] for log in logs}
    )
    for each in sums:
        total = totals[each.block][each.node]
        for at, value in enumerate(each.common):
            total[at] += value
    return [b for b, per in sorted(totals.items()) if len({tuple(t) for t in per.values()}) > 1]


def locate(
    spark: SparkSession,
    logs: Sequence[NodeLog],
    common: Comparable,
    blocks: Sequence[int],
    faulty: Collection[str] = (),
) -> list[Finding]:
    """Open the blocks and name each position at which a node differs from the majority.

    `faulty`: nodes of which something wrong is known; without a majority the others are right.
    """
    wanted = _all_rows(spark, logs).where(f.col("fresh") & common.column())
    wanted = wanted.where(_block().isin(list(blocks)))
    hashed = wanted.select("node", "idx", "ordinal", "grp", hash_column().alias("hash"))
    copies = f.sort_array(f.collect_list(f.struct("node", "hash"))).alias("copies")
    places = hashed.groupBy("idx", "ordinal").agg(f.min("grp").alias("grp"), copies)
    same = (f.size("copies") == len(logs)) & (f.size(f.array_distinct("copies.hash")) == 1)
    same = same & (f.size(f.array_distinct("copies.node")) == len(logs))
    bad = places.where(~same).orderBy("idx", "ordinal").limit(FINDINGS_MAX)
    nodes = [log.node for log in logs]
    return [finding for row in bad.collect() for finding in _judge(row, nodes, faulty)]


def _judge(row: Row, nodes: Sequence[str], faulty: Collection[str]) -> list[Finding]:
    """Find the nodes that are wrong at one position: the majority is right."""
    held: dict[str, list[str]] = {node: [] for node in nodes}
    for copy in row.copies:
        held[copy.node].append(copy.hash)
    votes = Counter(tuple(sorted(hashes)) for hashes in held.values())
    right, number = votes.most_common(1)[0]
    place = Position(row.idx, row.ordinal)
    sound = {tuple(sorted(hashes)) for node, hashes in held.items() if node not in faulty}
    if number * 2 <= len(nodes) and len(sound) == 1:
        (right,) = sound
    elif number * 2 <= len(nodes):
        text = "the nodes differ and no majority agrees"
        return [Finding("changed", "", row.grp, place, text)]
    wrong = {n: sorted(h) for n, h in held.items() if tuple(sorted(h)) != right}
    return [_named(n, row.grp, place, hashes, list(right)) for n, hashes in wrong.items()]


def _named(node: str, group: str, at: Position, has: list[str], right: list[str]) -> Finding:
    if not has:
        return Finding("lost", node, group, at, "a record that the other nodes have is not there")
    if not right:
        return Finding("extra", node, group, at, "a record that no other node has")
    if len(has) > len(right):
        return Finding("duplicated", node, group, at, f"a record is there {len(has)} times")
    return Finding("changed", node, group, at, "a record is not the one that the other nodes have")


def _manifest_finding(
    node: str, segment: str, promised: BlockDigest, counted: tuple[int, int, int]
) -> list[Finding]:
    if counted == (promised.count, promised.low, promised.high):
        return []
    low = promised.block * BLOCK_INDEXES
    text = (
        f"{segment}, indexes {low} to {low + BLOCK_INDEXES - 1}: the manifest was written for "
        f"{promised.count} records, {counted[0]} are there"
    )
    if counted[0] == promised.count:
        text += " and their hashes differ"
    return [Finding("manifest", node, "", None, text)]


def _all_rows(spark: SparkSession, logs: Sequence[NodeLog]) -> DataFrame:
    frames = [stored_rows(spark, log).withColumn("node", f.lit(log.node)) for log in logs]
    return reduce(lambda one, two: one.unionByName(two), frames)


def _block() -> Column:
    return f.expr(f"idx div {BLOCK_INDEXES}").alias("block")
