"""A node's log as one table for Spark, and conditions on the position of its rows.

Knows no files (`read.node_logs` does) and no content of records.
"""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from holdfast.coordinator.model.ids import Position
from holdfast.replay.read.node_logs import NodeLog, Range, Segment
from holdfast.replay.read.url_batches import read_batches
from holdfast.replay.read.urls import is_url
from holdfast.replay.spark.tasks import Reader, run_readers
from holdfast.storage.segments.columns import SCHEMA

_PARTITIONS: Final = "array<struct<topic: string, partitions: array<int>>>"
_PROTOCOLS: Final = "array<struct<name: string, metadata: binary, topics: array<string>>>"
_ASSIGNORS: Final = (
    "array<struct<name: string, minimum_version: int, maximum_version: int, reason: int, "
    "version: int, metadata: binary>>"
)

SQL_SCHEMA: Final = (
    "idx bigint, ordinal int, grp string, grp_seq bigint, log_time_ms bigint, wall_time_ms bigint, "
    "type string, rule string, command string, principal string, request_id string, "
    "generation int, member_id string, old_member_id string, instance_id string, "
    "members array<string>, removed array<string>, served array<string>, "
    "grants array<struct<member_id: string, assignment: binary>>, "
    "offsets array<struct<topic: string, partition: int, offset: bigint>>, "
    "reason string, payload binary, chain binary, "
    "group_type string, epoch int, joined boolean, topics array<string>, regex string, "
    f"targets array<struct<member_id: string, partitions: {_PARTITIONS}, "
    "version: int, metadata: binary>>, "
    f"asked_back {_PARTITIONS}, freed {_PARTITIONS}, granted {_PARTITIONS}, waiting boolean, "
    "classic boolean, assignor string, late string, installed_by string, "
    "converted array<struct<member_id: string, topics: array<string>, "
    f"partitions: {_PARTITIONS}>>, "
    "name string, number bigint, "
    "place struct<idx: bigint, ordinal: int, log_time_ms: bigint, digest: binary>, scope string, "
    "settings array<struct<key: string, value: string>>, "
    "sizes array<struct<name: string, num_partitions: int>>, "
    "acls array<struct<principal: string, role: string, kind: string, name: string, "
    "granted: boolean>>, "
    "revocations array<struct<fingerprint: string, principal: string, expires_ms: bigint, "
    "reason: string, revoked_ms: bigint>>, "
    "request struct<request_id: string, digest: binary, answer: binary>, "
    "beside array<struct<leader_epoch: int, metadata: string>>, "
    "profile struct<client_id: string, client_host: string, rebalance_timeout_ms: int, "
    f"session_timeout_ms: int, protocols: {_PROTOCOLS}, rack_id: string, "
    f"server_assignor: string, client_assignors: {_ASSIGNORS}>, "
    f"classic_profile struct<session_timeout_ms: int, protocols: {_PROTOCOLS}, "
    "request_id: string>, "
    "join_id string, predecessor_ms bigint, life string, beat bigint, session_timeout_ms int, "
    "absence_ms int, protocol_type string, protocol_name string, leader string, "
    "initial boolean, timeout_ms bigint, topics_digest binary"
)
"""`segments.columns.SCHEMA` as Spark's SQL, so that no file is opened to infer it."""

STORED: Final = ("idx", "ordinal", "grp", "payload")
"""What is compared of records as they are stored."""
STORED_SCHEMA: Final = "idx bigint, ordinal int, grp string, payload binary"
_PATTERN: Final = re.compile(r"[\\*?\[\]{}]")
"""What means something in a pattern of paths."""
_TASK_FILES: Final = 64
"""How many files behind a URL one task reads."""


def rows(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Read every record of a node once, as the columns of `segments.columns.SCHEMA`.

    Raises ValueError for a log without a segment.
    """
    frames = [
        _frame(spark, segments).drop("segment").where(_after(after))
        for after, segments in _by_after(log)
    ]
    return reduce(lambda one, two: one.unionByName(two), frames)


def stored_rows(spark: SparkSession, log: NodeLog) -> DataFrame:
    """Read every record as often as it is stored: `STORED`, `segment` (a `Segment.key`), `fresh`.

    `fresh` is false for records of an exported tail that a sealed segment has, too.
    """
    frames = [
        _frame(spark, segments, STORED_SCHEMA)
        .select(*STORED, "segment")
        .withColumn("fresh", _after(after))
        for after, segments in _by_after(log)
    ]
    return reduce(lambda one, two: one.unionByName(two), frames)


def up_to(last: Position) -> Column:
    """Make the condition that a row is at `last` or before it."""
    index, ordinal = last
    return (f.col("idx") < index) | ((f.col("idx") == index) & (f.col("ordinal") <= ordinal))


def within(place: Range) -> Column:
    """Make the condition that a row is in a range."""
    index, ordinal = place.first
    return up_to(place.last) & ~up_to(Position(index, ordinal - 1))


def _by_after(log: NodeLog) -> list[tuple[Position, list[Segment]]]:
    if not log.segments:
        raise ValueError(f"node {log.node} has no segment")
    groups: dict[Position, list[Segment]] = {}
    for segment in log.segments:
        groups.setdefault(segment.after, []).append(segment)
    return sorted(groups.items())


def _frame(spark: SparkSession, segments: list[Segment], wanted: str = SQL_SCHEMA) -> DataFrame:
    """Read segments: the JVM reads files of this host, and workers those behind a URL.

    So no library of a store is needed beside Spark. `wanted`: columns to hand over from there.
    """
    files = [(path, s.key) for s in segments for path in s.files]
    if is_url(files[0][0]):
        shares = [files[at : at + _TASK_FILES] for at in range(0, len(files), _TASK_FILES)]
        names = STORED if wanted == STORED_SCHEMA else SCHEMA.names
        readers: list[Reader] = [partial(read_batches, share, tuple(names)) for share in shares]
        return run_readers(spark, readers, f"{wanted}, segment string")
    segment = f.regexp_extract("_metadata.file_path", r"([^/]+)/[^/]+$", 1)
    table = spark.read.schema(SQL_SCHEMA).parquet(*[_literal(path) for path, _ in files])
    return table.withColumn("segment", segment)


def _literal(path: str) -> str:
    """Return a path by which Spark finds this file alone: to Spark it is a pattern."""
    return _PATTERN.sub(r"\\\g<0>", path)


def _after(place: Position) -> Column:
    return ~up_to(place)
