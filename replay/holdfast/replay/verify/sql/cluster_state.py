"""The state that belongs to no group, by SQL: counters, settings, topics, who may do what.

Each key is what was said of it last; the cluster's own records are few. The dedupe table is told by
`sql.requests`. Nothing here may import `coordinator`; results have the form of
`cluster_entries.entries_of`.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.places import entry, place

_COLUMNS: Final = (
    *("idx", "grp_seq", "log_time_ms", "type", "name", "number", "place", "scope"),
    *("settings", "sizes", "acls", "revocations"),
)
PRINCIPALS_LEVEL: Final = 2
"""From this level on members keep a principal, and topics tell when they were created."""
_OPEN: Final = "open"


def own_rows(rows: DataFrame) -> DataFrame:
    """Select the cluster's own records, each `at` its place (`sql.places`)."""
    return rows.where("grp = ''").select(place().alias("at"), *_COLUMNS)


def cluster_entries(rows: DataFrame, own: DataFrame) -> DataFrame:
    """Compute what belongs to no group, without the dedupe table, one row a key.

    `rows`: all records; `own`: the cluster's own of them, which are read several times.
    """
    parts = [_counters(rows, own), _settings(own), _topics(own), _acls(own), _revocations(own)]
    return reduce(lambda one, two: one.unionByName(two), parts)


def level_begins(own: DataFrame) -> DataFrame:
    """Find from where on members keep principals: one row; null if that level was never raised."""
    raised = own.where("type = 'LevelRaised'").where(f.col("number") >= PRINCIPALS_LEVEL)
    return raised.agg(f.min("at").alias("kept_from"))


def _counters(rows: DataFrame, own: DataFrame) -> DataFrame:
    place_text = f.concat_ws(".", "place.idx", "place.ordinal")
    digest = f.lower(f.hex("place.digest"))
    cut = f.concat_ws(":", place_text, "place.log_time_ms", digest)
    mode = f.when(f.col("name") != _OPEN, f.col("name"))
    numbered = "RecoveryNumberRaised"
    last = own.agg(
        _last("name", "ClusterFormed").alias("id"),
        f.max("idx").alias("version"),
        f.max_by("grp_seq", "at").alias("seq"),
        _last("number", numbered).alias("recovery number"),
        _last(entry("at"), numbered).alias("recovered at"),
        _last(place_text, "SegmentSealed").alias("sealed"),
        _last("number", "LevelRaised").alias("level"),
        _last(f.coalesce(mode, f.lit("")), "AccessModeChanged").alias("access mode"),
        _last(cut, "HistoryCut").alias("history cut"),
        f.max(f.when(f.col("type") == "BackupVerified", f.col("number"))).alias("backed up"),
    )
    whole = last.crossJoin(rows.agg(f.max("log_time_ms").alias("log time")))
    pairs = [
        f.struct(f.lit(name).alias("key"), f.col(f"`{name}`").cast("string").alias("value"))
        for name in whole.columns
    ]
    each = whole.select(f.inline(f.array(*pairs))).where("value is not null and value <> ''")
    return _named(each, "cluster")


def _last(value: str | Column, kind: str) -> Column:
    return f.max_by(value, f.when(f.col("type") == kind, f.col("at")))


def _settings(own: DataFrame) -> DataFrame:
    """Find the last value of each setting in each scope; null restores the inherited one."""
    each = own.where("settings is not null").select(
        "at", "scope", f.posexplode("settings").alias("nth", "setting")
    )
    key = f.concat_ws(":", "scope", "setting.key").alias("key")
    return _said_last(each, key, f.col("setting.value"), "setting")


def _topics(own: DataFrame) -> DataFrame:
    """Find each topic's size, and the entry that created it, if that level was in force."""
    each = own.where("sizes is not null").crossJoin(f.broadcast(level_begins(own)))
    sizes = each.select("at", "type", "kept_from", f.posexplode("sizes").alias("nth", "size"))
    created, told = f.col("type") == "TopicsCreated", f.coalesce("kept_from", f.lit(1 << 62))
    index = f.when(f.col("at") > told, entry("at")).otherwise(0)
    last = sizes.groupBy(f.col("size.name").alias("key")).agg(
        f.max_by("size.num_partitions", f.struct("at", "nth")).alias("partitions"),
        f.max_by(index, f.when(created, f.col("at"))).alias("created"),
    )
    there = last.where("partitions is not null")
    return _named(
        there.select("key", f.concat_ws(":", "partitions", "created").alias("value")), "topic"
    )


def _acls(own: DataFrame) -> DataFrame:
    each = own.where("acls is not null").select("at", f.posexplode("acls").alias("nth", "acl"))
    names = [f.col(f"acl.{name}") for name in ("principal", "role", "kind", "name")]
    value = f.when(f.col("acl.granted"), "")
    return _said_last(each, f.concat_ws("|", *names).alias("key"), value, "acl")


def _revocations(own: DataFrame) -> DataFrame:
    each = own.where("revocations is not null").select(
        "at", f.posexplode("revocations").alias("nth", "it")
    )
    told = f.concat_ws("|", "it.principal", "it.expires_ms", "it.reason", "it.revoked_ms")
    value = f.when(f.col("it.revoked_ms").isNotNull(), told)
    return _said_last(each, f.col("it.fingerprint").alias("key"), value, "revocation")


def _said_last(each: DataFrame, key: Column, value: Column, kind: str) -> DataFrame:
    """Return the value that was said of each key last; a key whose last one is null is gone."""
    said = f.max(f.struct("at", "nth", value.alias("value"))).alias("last")
    last = each.groupBy(key).agg(said).select("key", f.col("last.value").alias("value"))
    return _named(last.where("value is not null"), kind)


def _named(rows: DataFrame, kind: str) -> DataFrame:
    return rows.select(f.lit("").alias("grp"), f.lit(kind).alias("kind"), "key", "value")
