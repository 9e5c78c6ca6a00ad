"""The state as "who wrote a key last": a second implementation, independent of `evolve`.

The coordinator's fold cannot find its own mistakes. This states the same rules declaratively,
over the typed columns: members, instances, generation, assignments with the entry that granted
them, offsets; `sql.consumer_state` does so for groups of the heartbeat protocol. Nothing here may
import `coordinator`; it would no longer be independent.

All results have the columns `grp`, `kind`, `key`, `value`, in the form of `group_fold.entries_of`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.places import entry, place

_LEAVING = ("MembersLeft", "MembersRemoved")
_THROWN_OUT = ("MemberExpired", "MemberRefused")
_PLACES_MAX = 7
"""So many partitions of one record have places of their own behind the record's; of two that are
equal in a longer one, Spark takes the latter."""
_PHASES = ("RebalanceStarted", "GenerationStarted", "AssignmentStored", "GroupEmptied")


def classic_entries(living: DataFrame) -> DataFrame:
    """Compute the state of these groups without their offsets, one row a key.

    `living` is read several times: the caller should persist it.
    """
    members = _members(living)
    told = grants(living).withColumn("granted", f.col("granted").cast("string"))
    value = f.concat_ws(":", "granted", "held").alias("value")
    left = told.where("abandoned <> ''")
    parts = [
        _generations(living),
        left.select(
            "grp",
            f.lit("abandoned").alias("kind"),
            _key("member_id"),
            f.col("abandoned").alias("value"),
        ),
        members.select("grp", f.lit("member").alias("kind"), _key("member_id"), _owner()),
        _instances(members),
        told.select("grp", f.lit("grant").alias("kind"), _key("member_id"), value),
    ]
    return reduce(lambda one, two: one.unionByName(two), parts)


def living_rows(rows: DataFrame) -> DataFrame:
    """Select the records of each group's present life: those after its last deletion.

    Each is `at` a place (`sql.places`). Rows that `sql.conversions` makes of a record have
    `carried`, and the `token` that a member brings from before.
    """
    placed = rows.where("grp <> ''").withColumn("at", place())
    placed = placed.withColumn("carried", f.expr("false")).withColumn(
        "token", f.expr("bigint(null)")
    )
    deleted = placed.where("type = 'GroupDeleted'").groupBy("grp").agg(f.max("at").alias("end"))
    joined = placed.join(f.broadcast(deleted), "grp", "left")
    life = joined.where("end is null or at > end")
    return life.drop("end", "payload", "chain")


def _generations(living: DataFrame) -> DataFrame:
    """Find the generation of the last closed join phase; 0 before the first."""
    number = f.when(f.col("type").isin("GenerationStarted", "GroupEmptied"), f.col("generation"))
    last = living.groupBy("grp").agg(f.max_by(number, f.when(number.isNotNull(), f.col("at"))))
    value = f.coalesce(f.col(last.columns[1]), f.lit(0)).cast("string").alias("value")
    return last.select("grp", f.lit("generation").alias("kind"), f.lit("").alias("key"), value)


def _members(living: DataFrame) -> DataFrame:
    """Find the members: ids that came after they last departed.

    `identity` stays the same in a swap: the instance of a static member, the id of a dynamic one.
    """
    came = living.where(f.col("type").isin("MemberJoined", "StaticMemberReplaced")).select(
        "grp", "member_id", "at", "instance_id", f.expr("true").alias("present"), "type"
    )
    last = _departures(living).unionByName(came).groupBy("grp", "member_id")
    ends = last.agg(f.max_by(f.struct("present", "instance_id", "at"), "at").alias("end"))
    present = ends.where("end.present").select("grp", "member_id", "end.instance_id")
    return present.withColumn("identity", _identity())


def _departures(living: DataFrame) -> DataFrame:
    """Find every member id that an event ended, and when."""
    several = living.where(f.col("type").isin(*_LEAVING)).select("grp", "at", f.explode("members"))
    removed = living.where("removed is not null").select("grp", "at", f.explode("removed"))
    single = living.where(f.col("type").isin(*_THROWN_OUT)).select("grp", "at", "member_id")
    replaced = living.where("type = 'StaticMemberReplaced'").select("grp", "at", "old_member_id")
    named = [frame.toDF("grp", "at", "member_id") for frame in (several, removed, single, replaced)]
    gone = reduce(lambda one, two: one.unionByName(two), named)
    nobody = f.lit(None).cast("string")
    return gone.select(
        "grp",
        "member_id",
        "at",
        nobody.alias("instance_id"),
        f.expr("false").alias("present"),
        nobody.alias("type"),
    )


def _instances(members: DataFrame) -> DataFrame:
    bound = members.where("instance_id is not null")
    value = f.col("member_id").alias("value")
    return bound.select("grp", f.lit("instance").alias("kind"), _key("instance_id"), value)


def grants(living: DataFrame) -> DataFrame:
    """Find what each member holds, and the index of the entry that granted it.

    An assignment writes every member's key; a join phase that opens before the assignment arrives
    clears them (Kafka's rule for CompletingRebalance); a swap keeps the key under a new index, if
    the instance had any. What a group brings from another type keeps the token that it had there:
    no value of `granted`, if that is not known.
    """
    since = _since(living)
    given = _last_assignment(living)
    known = _members(living).join(since, ["grp", "identity"]).join(given, "grp", "left")
    counts = f.col("stored.at") > f.col("joined")
    kept = counts & (f.col("wiped").isNull() | (f.col("wiped") < f.col("stored.at")))
    mine = f.filter("grants", lambda grant: grant["identity"] == f.col("identity"))
    held = f.when(kept, f.coalesce(f.get(mine, 0)["assignment"], f.lit(""))).otherwise("")
    swapped = f.when(f.col("swapped") > f.col("joined"), entry("swapped"))
    token = f.when(f.col("stored.carried"), f.col("token")).otherwise(entry("stored.at"))
    granted = f.when(counts, f.greatest(token, swapped)).otherwise(0)
    left = f.when(counts & ~kept, f.get(mine, 0)["assignment"])
    return known.select(
        *("grp", "identity", "member_id"),
        *(granted.alias("granted"), held.alias("held"), left.alias("abandoned")),
    )


def _since(living: DataFrame) -> DataFrame:
    """Find, for each identity, when it last joined and was last swapped."""
    came = living.where(f.col("type").isin("MemberJoined", "StaticMemberReplaced"))
    identified = came.withColumn("identity", _identity())
    return identified.groupBy("grp", "identity").agg(
        f.max(f.when(f.col("type") == "MemberJoined", f.col("at"))).alias("joined"),
        f.max_by("token", f.when(f.col("type") == "MemberJoined", f.col("at"))).alias("token"),
        f.max(f.when(f.col("type") == "StaticMemberReplaced", f.col("at"))).alias("swapped"),
    )


def _last_assignment(living: DataFrame) -> DataFrame:
    """Find, for each group, the last assignment by identity, and when it was last cleared."""
    names = living.where(f.col("type").isin("MemberJoined", "StaticMemberReplaced")).select(
        "grp", "member_id", _identity().alias("identity")
    )
    phases = living.where(f.col("type").isin(*_PHASES)).withColumn(
        "before", f.lag("type").over(Window.partitionBy("grp").orderBy("at"))
    )
    wiping = (f.col("type") == "RebalanceStarted") & (f.col("before") == "GenerationStarted")
    stored = f.when(f.col("type") == "AssignmentStored", f.struct("at", "grants", "carried"))
    last = phases.groupBy("grp").agg(
        f.max(f.when(wiping, f.col("at"))).alias("wiped"), f.max(stored).alias("stored")
    )
    each = last.select("grp", f.explode("stored.grants").alias("grant"))
    hexed = each.select(
        "grp", f.col("grant.member_id"), f.lower(f.hex("grant.assignment")).alias("assignment")
    )
    pairs = (
        hexed.join(names.distinct(), ["grp", "member_id"])
        .groupBy("grp")
        .agg(f.collect_list(f.struct("identity", "assignment")).alias("grants"))
    )
    return last.join(pairs, "grp", "left")


def offset_entries(living: DataFrame) -> DataFrame:
    """Find the last offset of each partition, and what was kept beside it, unless it is deleted.

    Most records are commits, so all that is aggregated here has a fixed size: Spark then keeps it
    by hash and sorts nothing. So text that is kept beside an offset is told by its CRC-32.
    """
    each = living.where("offsets is not null").select(
        "grp", "at", "log_time_ms", "beside", f.posexplode("offsets").alias("nth", "it")
    )
    told = f.get("beside", f.col("nth"))
    flat = each.select(
        *("grp", "it.topic", "it.partition", "it.offset", "log_time_ms"),
        (f.col("at") + f.least("nth", f.lit(_PLACES_MAX))).alias("at"),
        told["leader_epoch"].alias("epoch"),
        f.crc32(f.encode(told["metadata"], "UTF-8")).alias("text"),
    )
    values = ("offset", "epoch", "log_time_ms", "text")
    last = flat.groupBy("grp", "topic", "partition").agg(
        *(f.max_by(name, "at").alias(name) for name in values)
    )
    beside = f.concat_ws(":", "epoch", "log_time_ms", "text")
    entries = (("offset", f.col("offset").cast("string")), ("commit", beside))
    structs = [f.struct(f.lit(kind).alias("kind"), it.alias("value")) for kind, it in entries]
    key = f.concat_ws("/", "topic", "partition").alias("key")
    kept = last.where("offset is not null").select("grp", key, f.inline(f.array(*structs)))
    return kept.select("grp", "kind", "key", "value")


def _identity() -> Column:
    instance = f.concat(f.lit("i:"), f.col("instance_id"))
    return f.coalesce(instance, f.concat(f.lit("m:"), f.col("member_id")))


def _key(name: str) -> Column:
    return f.col(name).alias("key")


def _owner() -> Column:
    return f.coalesce(f.col("instance_id"), f.lit("")).alias("value")
