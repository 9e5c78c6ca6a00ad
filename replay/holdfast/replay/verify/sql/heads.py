"""What a group is as a whole, by SQL, and what its members hold of it: times, phases, a leader.

It is the same for groups of both types, over their whole life, whatever they are converted to.
Nothing here may import `coordinator`; results have the form of `member_entries.entries_of`.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

_PHASES: Final = (
    *("GroupCreated", "RebalanceStarted", "GenerationStarted", "AssignmentStored"),
    *("GroupEmptied", "GroupConverted"),
)
_HEAD: Final = (
    *_PHASES,
    "MemberJoined",
    "EpochRaised",
    "TargetStored",
    "RegexResolved",
    "HeadKept",
)
"""What tells something of a group as a whole; the last one stands for a checkpoint."""
_STATES: Final = {
    "RebalanceStarted": "PreparingRebalance",
    "GenerationStarted": "CompletingRebalance",
    "AssignmentStored": "Stable",
}
"""The state that a classic group is in after the last of these."""
_CLASSIC, _CONSUMER = "classic", "consumer"


def counted_entries(counted: DataFrame) -> DataFrame:
    """Find the last entry of each group, and the number of its records.

    `counted`: all rows of each group's life, those of the dedupe table as well. Rows of a log have
    a rule; those that stand for a checkpoint tell the version that the group had.
    """
    entry = f.when(f.col("rule").isNotNull(), f.col("idx")).otherwise(f.col("beat"))
    told = f.col("rule").isNotNull() | (f.col("type") == "HeadKept")
    lives = f.col("type") != "RequestRecorded"
    last = counted.groupBy("grp").agg(
        f.max(f.when(told, entry)).alias("version"),
        f.max_by("grp_seq", "at").alias("seq"),
        f.max(lives).alias("lives"),
    )
    value = f.concat_ws(":", "version", "seq")
    return _entry(last.where("lives"), "version", value)


def head_entries(living: DataFrame, said: DataFrame, seats: DataFrame) -> DataFrame:
    """Tell of each group its state, its leader and its times; of members, how long to wait.

    `said`, `seats`: what was said of each member, and the members that are there (`sql.members`).
    """
    rows = living.where(f.col("type").isin(*_HEAD))
    heads = _heads(rows, said).localCheckpoint()
    parts = [_told(heads), _leaders(heads, said, seats), _waits(rows, said, seats)]
    return reduce(lambda one, two: one.unionByName(two), parts)


def _heads(rows: DataFrame, said: DataFrame) -> DataFrame:
    """Find what was said last of each group as a whole."""
    kind = f.col("type")
    turned = f.max(f.when(kind == "GroupConverted", f.col("at"))).over(Window.partitionBy("grp"))
    placed = rows.withColumn("turned", f.coalesce(turned, f.lit(0)))
    kept, converted = kind == "HeadKept", kind == "GroupConverted"
    types = f.when(converted | (kind == "GroupCreated"), f.coalesce("group_type", f.lit(_CLASSIC)))
    to_classic = converted & (f.col("group_type") == _CLASSIC)
    bound = f.when(to_classic, "consumer").otherwise(f.col("protocol_type"))
    chosen = kind.isin("GenerationStarted", "GroupEmptied") | to_classic | kept
    choice = f.struct("at", "protocol_name", "leader")
    phase = f.struct(
        *("type", "log_time_ms", "members", "initial", "timeout_ms", "generation"),
        f.coalesce(f.size("converted"), f.lit(0)).alias("converted"),
    )
    now = f.col("at") > f.col("turned")
    last = placed.groupBy("grp").agg(
        _last(types, types.isNotNull()).alias("group_type"),
        _last(phase, kind.isin(*_PHASES)).alias("phase"),
        _last(bound, (kind == "MemberJoined") | to_classic | kept).alias("protocol_type"),
        _last(choice, chosen).alias("choice"),
        _last(f.col("log_time_ms"), now & (kind == "TargetStored")).alias("target_ms"),
        f.max(f.when(now & (kind == "TargetStored"), f.col("at"))).alias("stored"),
        _last(f.col("topics_digest"), now & (kind == "EpochRaised")).alias("digest"),
        _last(f.col("log_time_ms"), now & (kind == "RegexResolved")).alias("regexes_ms"),
        _last(f.col("number"), now & (kind == "RegexResolved")).alias("regexes_index"),
    )
    return last.join(_emptied(said), "grp", "left").join(
        _untils(rows, said, "whole"), "grp", "left"
    )


def _last(value: Column, condition: Column) -> Column:
    return f.max_by(value, f.when(condition, f.col("at")))


def _emptied(said: DataFrame) -> DataFrame:
    """Find when each group last lost its last member, and whether it is without any now."""
    by = f.when(f.col("joins"), 1).when(f.col("ends"), -1)
    counted = (
        said.where("joins or ends")
        .groupBy("grp", "at")
        .agg(
            f.sum(by).alias("by"),
            f.max("log_time_ms").alias("log_time_ms"),
            f.max("beats").alias("beats"),
        )
    )
    members = f.sum("by").over(Window.partitionBy("grp").orderBy("at"))
    numbered = counted.withColumn("members", members)
    gone = f.col("members") == 0
    return numbered.groupBy("grp").agg(
        f.max(f.when(gone, f.col("at"))).alias("emptied"),
        _last(f.when(f.col("beats"), f.col("log_time_ms")), gone).alias("emptied_ms"),
        f.max_by(gone, "at").alias("empty"),
    )


def _told(heads: DataFrame) -> DataFrame:
    """Tell of each group what its type keeps."""
    beats, phase = f.col("group_type") == _CONSUMER, f.col("phase.type")
    state = f.lit("Empty")
    for kind, name in _STATES.items():
        state = f.when(phase == kind, name).otherwise(state)
    converted = (phase == "GroupConverted") & (f.col("phase.converted") > 0)
    state = f.when(converted, "Stable").otherwise(state)
    opened, closed = phase == "RebalanceStarted", phase == "GenerationStarted"
    opening = f.concat_ws(":", f.col("phase.initial").cast("string"), "phase.timeout_ms")
    aimed = f.col("stored") > f.coalesce("emptied", f.lit(0))
    found = f.concat_ws(":", "regexes_ms", "regexes_index")
    entries = {
        "head": f.when(~beats, state),
        "since": f.when(~beats & (opened | closed), f.col("phase.log_time_ms")),
        "protocol type": f.when(~beats, f.col("protocol_type")),
        "chosen": f.when(~beats, f.col("choice.protocol_name")),
        "rejoined": f.when(~beats & closed, f.concat_ws(",", "phase.members")),
        "join phase": f.when(~beats & opened & (opening != "false:0"), opening),
        "predecessors": f.when(f.col("until_ms") > 0, f.col("until_ms")),
        "target time": f.when(beats & aimed & (f.col("target_ms") >= 0), f.col("target_ms")),
        "digest": f.when(beats, f.lower(f.hex("digest"))),
        "expressions": f.when(beats & (f.col("regexes_ms") >= 0), found),
    }
    structs = [
        f.struct(f.lit(kind).alias("kind"), value.cast("string").alias("value"))
        for kind, value in entries.items()
    ]
    each = heads.select("grp", f.inline(f.array(*structs))).where("value <> ''")
    return each.select("grp", "kind", f.lit("").alias("key"), "value")


def _leaders(heads: DataFrame, said: DataFrame, seats: DataFrame) -> DataFrame:
    """Find who leads: whoever has the seat now of the member that was chosen, if nobody left it."""
    chosen = (
        heads.where(f.col("group_type") == _CLASSIC)
        .where("choice.leader <> ''")
        .select("grp", f.col("choice.leader").alias("who"), f.col("choice.at").alias("chosen"))
    )
    places = (
        said.where("joins or swaps").groupBy("grp", "who").agg(f.max_by("seat", "at").alias("seat"))
    )
    leading = chosen.join(places, ["grp", "who"]).join(seats, ["grp", "seat"])
    return _entry(leading.where("begun <= chosen"), "leader", f.col("member_id"))


# --- how long somebody may still act on an old grant (S12) ---


def _untils(rows: DataFrame, said: DataFrame, how: str) -> DataFrame:
    """Find until when somebody may act on what he had: as told at each time, or in the end."""
    what, at_once = f.col("what"), f.col("log_time_ms")
    swap = f.when(
        f.col("swaps") & (~f.col("beats") | (f.col("predecessor_ms") > 0)), f.col("predecessor_ms")
    )
    session = f.coalesce("was_said.session_timeout_ms", f.lit(0))
    stopped = f.coalesce("had_stopped", f.expr("false"))
    removed = f.when(
        (what == "MembersRemoved") & ~f.col("beats"), f.when(stopped, 0).otherwise(session)
    )
    ms = f.coalesce(swap, removed)
    of_members = said.select("grp", "at", (at_once + ms).alias("until_ms"))
    raised = f.when(
        (f.col("type") == "EpochRaised") & (f.col("predecessor_ms") > 0),
        at_once + f.col("predecessor_ms"),
    )
    kept = f.when(f.col("type") == "HeadKept", f.col("predecessor_ms"))
    of_groups = rows.select("grp", "at", f.coalesce(raised, kept).alias("until_ms"))
    every = of_members.unionByName(of_groups).where("until_ms is not null")
    if how == "whole":
        return every.groupBy("grp").agg(f.max("until_ms").alias("until_ms"))
    return every.groupBy("grp").agg(f.collect_list(f.struct("at", "until_ms")).alias("untils"))


def _waits(rows: DataFrame, said: DataFrame, seats: DataFrame) -> DataFrame:
    """Find for how long an older holder may still act on what each member was given last."""
    stored = (
        rows.where("type = 'AssignmentStored'")
        .groupBy("grp")
        .agg(
            f.max(f.struct("at", "log_time_ms", f.expr("bigint(null)").alias("ms"))).alias("stored")
        )
    )
    known = seats.join(stored, "grp", "left").join(_untils(rows, said, "each"), "grp", "left")
    last = known.withColumn(
        "last", f.greatest("given", f.when(f.col("stored.at") > f.col("begun"), f.col("stored")))
    )
    before = f.expr("array_max(transform(filter(untils, u -> u.at < last.at), u -> u.until_ms))")
    left = f.greatest(before - f.col("last.log_time_ms"), f.lit(0))
    told = last.withColumn("ms", f.coalesce("last.ms", left))
    return told.where("ms > 0").select(
        "grp",
        f.lit("predecessor").alias("kind"),
        f.col("member_id").alias("key"),
        f.col("ms").cast("string").alias("value"),
    )


def _entry(rows: DataFrame, kind: str, value: Column) -> DataFrame:
    return rows.select(
        "grp", f.lit(kind).alias("kind"), f.lit("").alias("key"), value.alias("value")
    )
