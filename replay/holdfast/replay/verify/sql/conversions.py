"""Groups that changed their protocol, by SQL: beside `sql.consumer_state`, as independent.

A conversion ends one group and begins another, of the other type: it names all members, with what
they own. So each *phase* of such a group, from one conversion to the next, is looked at as a group
of its own, whose first rows tell what it was begun with, as if that had happened in it. What events
do not tell goes over from the phase before: the instance of a member, whether its process stopped,
and the token of what it owns (S13). Nothing here may import `coordinator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.places import entry

_CAME = ("MemberJoined", "StaticMemberReplaced", "MemberSubscribed")
_FIRST, _SECOND, _THIRD = 1, 2, 3
"""The order of the rows that a conversion is told by."""
_MORE = 128
"""The bit of a byte that says "more follows", in protobuf's numbers."""
_INT32_BYTES = 5


class Rules(NamedTuple):
    """How groups of one type each are looked at (`sql.state`, `sql.consumer_state`)."""

    grants: Callable[[DataFrame], DataFrame]
    """What members of classic groups hold."""
    holdings: Callable[[DataFrame], DataFrame]
    """Who owns what in groups of the heartbeat protocol."""


def last_phases(living: DataFrame, rules: Rules) -> DataFrame:
    """Return rows of the present phase of each group, as of a group that was never another type.

    `living`: the rows of groups that changed their protocol. What is read many times is computed
    at once, or the plans of all these readers would grow beyond what Spark can plan.
    """
    phases = _phases(living)
    members = _members(living).localCheckpoint()
    tokens = _tokens(_with_beginnings(phases, members), members, rules)
    known = members.join(tokens, ["grp", "phase", "seat"], "left")
    last = phases.groupBy("grp.grp").agg(f.max("grp.phase").alias("phase"))
    present = last.select(f.struct("grp", "phase").alias("grp"))
    whole = _with_beginnings(phases.join(present, "grp", "left_semi"), known)
    return whole.join(present, "grp", "left_semi").withColumn("grp", f.col("grp.grp"))


def of_each_type(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Split rows by the type of their group: of the heartbeat protocol, and classic.

    The rows are computed at once, since both are read many times.
    """
    consumer = rows.where("group_type = 'consumer'").select("grp").distinct()
    named = f.broadcast(consumer.withColumn("beats", f.expr("true")))
    marked = rows.join(named, "grp", "left").localCheckpoint()
    return marked.where("beats").drop("beats"), marked.where("beats is null").drop("beats")


# --- phases ---


def _numbered(living: DataFrame) -> DataFrame:
    """Count the conversions of a group: one belongs to the phase that it begins."""
    converts = f.when(f.col("type") == "GroupConverted", 1)
    count = f.count(converts).over(Window.partitionBy("grp").orderBy("at"))
    return living.withColumn("phase", count.cast("int"))


def _phases(living: DataFrame) -> DataFrame:
    numbered = _numbered(living)
    return numbered.withColumn("grp", f.struct("grp", "phase")).drop("phase")


def _members(living: DataFrame) -> DataFrame:
    """Find the members of each conversion, and what is known of each from before.

    A process has stopped if nothing was said of its id since it released the instance.
    """
    numbered = _numbered(living)
    converted = numbered.where("type = 'GroupConverted'")
    each = converted.withColumn("member", f.explode("converted"))
    each = each.withColumn("member_id", f.col("member.member_id")).drop("instance_id")
    came = _true(f.col("type").isin("MemberJoined", "StaticMemberReplaced") | f.col("joined"))
    said = numbered.where(came | f.col("type").isin("InstanceReleased", "MemberAdvanced"))
    told = said.select("grp", "member_id", "at", "type", "instance_id", came.alias("came"))
    both = told.unionByName(each, allowMissingColumns=True)
    earlier = Window.partitionBy("grp", "member_id").orderBy("at")
    taken = f.last(f.when(f.col("came"), f.struct("instance_id")), ignorenulls=True).over(earlier)
    spoken = f.when(f.col("type") != "GroupConverted", f.col("type"))
    last = f.last(spoken, ignorenulls=True).over(earlier)
    known = both.withColumn("taken", taken).withColumn("last", last)
    members = known.where("type = 'GroupConverted'").withColumn(
        "instance_id", f.col("taken.instance_id")
    )
    instance = f.concat(f.lit("i:"), f.col("instance_id"))
    seat = f.coalesce(instance, f.concat(f.lit("m:"), f.col("member_id")))
    return members.select(
        "grp",
        "phase",
        "at",
        "group_type",
        "generation",
        "member_id",
        "instance_id",
        seat.alias("seat"),
        _true(f.col("last") == "InstanceReleased").alias("released"),
        "member.topics",
        "member.partitions",
    )


# --- what a phase begins with ---


def _with_beginnings(phases: DataFrame, members: DataFrame) -> DataFrame:
    """Return the rows of phases, with those that tell of what each began with.

    `members`: those of each conversion, with or without the `token` that each brings.
    """
    groups = _of_groups(phases.where("type = 'GroupConverted'"))
    told = _of_members(members)
    return phases.unionByName(groups, allowMissingColumns=True).unionByName(
        told, allowMissingColumns=True
    )


def _of_groups(conversions: DataFrame) -> DataFrame:
    """Tell the generation, or the epochs, and what everybody has, or is to have."""
    to_consumer = f.col("group_type") == "consumer"
    names = f.when(to_consumer, f.expr("array('EpochRaised', 'TargetStored')")).otherwise(
        f.expr("array('GenerationStarted', 'AssignmentStored')")
    )
    each = conversions.select("*", f.posexplode(names).alias("nth", "told_as"))
    targets = f.transform(
        "converted",
        lambda each: f.struct(
            each["member_id"].alias("member_id"),
            each["partitions"].alias("partitions"),
            f.lit(0).alias("version"),
            f.expr("X''").alias("metadata"),
        ),
    )
    grants = f.transform(
        "converted",
        lambda each: f.struct(
            each["member_id"].alias("member_id"),
            f.unhex(_assignment(each["partitions"])).alias("assignment"),
        ),
    )
    return each.select(
        "grp",
        _placed(f.col("nth") + _SECOND),
        f.col("told_as").alias("type"),
        f.expr("true").alias("carried"),
        "generation",
        f.col("generation").alias("epoch"),
        targets.alias("targets"),
        grants.alias("grants"),
    )


def _of_members(members: DataFrame) -> DataFrame:
    """Tell that each member came, and got what it owns; and stopped, if it had stopped.

    A member that comes from the classic protocol still speaks it; its epoch before is its epoch.
    """
    nth, to_consumer = f.col("nth"), f.col("group_type") == "consumer"
    each = members.withColumn("nth", f.explode(f.expr(f"array({_FIRST}, {_SECOND}, {_THIRD})")))
    came = f.when(to_consumer, "MemberSubscribed").otherwise("MemberJoined")
    stopped = f.when(f.col("released"), "InstanceReleased")
    moved = f.when(to_consumer, "MemberAdvanced")
    kind = (
        f.when(nth == _FIRST, came)
        .when(nth == _SECOND, moved)
        .otherwise(f.coalesce(stopped, moved))
    )
    nothing = f.expr("cast(array() as array<struct<topic: string, partitions: array<int>>>)")
    token = f.col("token") if "token" in members.columns else f.expr("bigint(null)")
    return each.select(
        f.struct("grp", "phase").alias("grp"),
        _placed(nth),
        kind.alias("type"),
        f.expr("true").alias("carried"),
        token.alias("token"),
        "member_id",
        "instance_id",
        (nth == _FIRST).alias("joined"),
        f.expr("true").alias("classic"),
        "topics",
        f.lit("").alias("regex"),
        f.col("generation").alias("epoch"),
        f.when(nth == _SECOND, f.col("partitions")).otherwise(nothing).alias("granted"),
        nothing.alias("asked_back"),
        nothing.alias("freed"),
        f.expr("false").alias("waiting"),
    ).where("type is not null")


def _placed(nth: Column) -> Column:
    return (f.col("at") + nth).alias("at")


# --- tokens ---


def _tokens(rows: DataFrame, members: DataFrame, rules: Rules) -> DataFrame:
    """Find the token that each member brings into a phase: of what it was granted last.

    What the phase before has granted tells it; if it granted nothing, the member still has the one
    that it brought into that. `rows`: of all phases, without these tokens.
    """
    consumer, classic = of_each_type(rows)
    held = rules.holdings(consumer).groupBy("grp", "seat")
    newest = held.agg(f.max("granted").alias("granted"), f.expr("true").alias("holds"))
    granted = rules.grants(classic).select("grp", f.col("identity").alias("seat"), "granted")
    ends = newest.unionByName(granted, allowMissingColumns=True).select(
        f.col("grp.grp"), (f.col("grp.phase") + 1).alias("phase"), "seat", "granted", "holds"
    )
    known = members.join(ends, ["grp", "phase", "seat"], "left")
    nothing = (f.col("group_type") != "consumer") & f.col("holds").isNull()
    told = f.when(nothing, entry("at")).otherwise(f.col("granted"))
    in_order = Window.partitionBy("grp", "seat").orderBy("phase")
    token = f.last(told, ignorenulls=True).over(in_order).alias("token")
    return known.select("grp", "phase", "seat", token)


# --- the bytes of an assignment, as protobuf writes them, in hexadecimal ---


def _assignment(partitions: Column) -> Column:
    """Write a `ConsumerProtocolAssignment` (group.proto): the classic members get one."""
    topics = f.transform(partitions, lambda each: _sized("0A", _topic(each)))
    return f.array_join(topics, "")


def _topic(each: Column) -> Column:
    numbers = f.array_join(f.transform(each["partitions"], _varint), "")
    return f.concat(_sized("0A", f.hex(f.encode(each["topic"], "UTF-8"))), _sized("12", numbers))


def _sized(tag: str, content: Column) -> Column:
    """Write a field of bytes; protobuf leaves empty ones out."""

    def field(hexed: Column) -> Column:
        size = f.length(hexed) / 2
        return f.when(size == 0, "").otherwise(f.concat(f.lit(tag), _varint(size), hexed))

    return f.transform(f.array(content), field)[0]  # which gives the content a name


def _varint(number: Column) -> Column:
    value = number.cast("bigint")

    def byte(nth: int) -> Column:
        seven = f.shiftright(value, 7 * nth).bitwiseAND(_MORE - 1)
        more = f.when(value >= _MORE ** (nth + 1), _MORE).otherwise(0)
        written = f.lpad(f.hex(seven + more), 2, "0")
        return written if nth == 0 else f.when(value >= _MORE**nth, written).otherwise("")

    return f.concat(*map(byte, range(_INT32_BYTES)))


def _true(condition: Column) -> Column:
    return f.coalesce(condition, f.expr("false"))
