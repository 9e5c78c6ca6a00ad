"""Who is to compute a group's target, by SQL: a part of `sql.consumer_state`, as independent.

It is written from the rules of KIP-848. The member that was asked last is to compute, until there
is a target or its process is gone; who was asked and did not install a target in time is *late*.
Nothing here may import `coordinator`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

_DEPARTURES = ("MembersLeft", "MembersRemoved", "MemberExpired")
_CAME, _SWAPPED, _RELEASED, _GONE = "came", "swapped", "released", "gone"
"""What may happen to the process in a seat."""
_NAMED, _INSTALLED = "named", "installed"
"""What is said of a member id: that it was late, and that it installed a target after all."""


def choice_entries(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find who is to compute, who is late, and whose assignor made the target; one row a key.

    `told`: what events say of members, as `sql.consumer_state` finds it.
    """
    parts = [
        (_asked(living, told), "asked"),
        (_late(living, told), "late"),
        (_assignors(living), "client assignor"),
    ]
    entries = [rows.select("grp", *_named(kind), "value") for rows, kind in parts]
    return reduce(lambda one, two: one.unionByName(two), entries)


def _named(kind: str) -> tuple[Column, Column]:
    return f.lit(kind).alias("kind"), f.lit("").alias("key")


def _asked(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find the member that was asked last, if it still is to compute.

    It is told whether what it was given may be of the past: since then a member goes on under
    another id, or the topics of an expression were looked up.
    """
    requests = living.where("type = 'AssignmentRequested'").select(
        "grp", f.struct("at", "member_id", "epoch", "assignor").alias("asked")
    )
    last = requests.groupBy("grp").agg(f.max("asked").alias("asked"))
    overtakes = f.col("type").isin("RegexResolved", "StaticMemberReplaced")
    since = living.groupBy("grp").agg(
        f.max(f.when(f.col("type") == "TargetStored", f.col("at"))).alias("stored"),
        f.max(f.when(overtakes, f.col("at"))).alias("overtaken"),
    )
    stopped = _gone(told).unionByName(_released(told)).groupBy("grp", "member_id")
    ends = stopped.agg(f.max("at").alias("stopped")).withColumnRenamed("member_id", "asked_id")
    known = last.join(since, "grp").withColumn("asked_id", f.col("asked.member_id"))
    known = known.join(ends, ["grp", "asked_id"], "left")
    over = f.greatest("stored", "stopped") > f.col("asked.at")
    overtaken = f.when(f.col("overtaken") > f.col("asked.at"), "overtaken").otherwise("")
    value = f.concat_ws(":", "asked_id", "asked.epoch", "asked.assignor", overtaken)
    return known.where(~f.coalesce(over, f.expr("false"))).select("grp", value.alias("value"))


def _late(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find the late ones, in the order in which they became so last; a stranger is passed over.

    Being late is passed on with the seat: the process in whose place one came that was to compute,
    or was late, is late since then, unless the old one had said that it stops (INV-16).
    """
    known = _with_places(_marked(living, told))
    marked, passed = f.col("mark"), f.col("mark") == _SWAPPED
    counts = (marked == _NAMED) & f.col("there") | passed & (f.col("asked") > f.col("since"))
    strikes = marked.isin(_GONE, _RELEASED) | (marked == _INSTALLED) & f.col("there")
    last = known.groupBy("grp", "seat").agg(
        f.max_by("member_id", f.when(marked.isin(_CAME, _SWAPPED), f.col("at"))).alias("member_id"),
        f.max(f.when(counts, f.col("at"))).alias("became"),
        f.max(f.when(strikes, f.col("at"))).alias("struck"),
        f.max(f.when(passed, f.col("at"))).alias("passed"),
    )
    late = last.where("became is not null and (struck is null or struck < became)")
    since = f.struct(f.greatest("became", "passed").alias("since"), "member_id")
    in_order = f.array_sort(f.collect_list(since))["member_id"]
    return late.groupBy("grp").agg(f.array_join(in_order, ",").alias("value"))


def _marked(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find what made members late, or might end that; some of it is said of an id without seat."""
    requests = living.where("type = 'AssignmentRequested' and late <> ''")
    installed = living.where("type = 'TargetStored' and installed_by <> ''")
    nowhere = f.lit(None).cast("string").alias("seat")
    of_ids = [
        (requests.select("grp", "at", f.col("late").alias("member_id"), nowhere), _NAMED),
        (
            installed.select("grp", "at", f.col("installed_by").alias("member_id"), nowhere),
            _INSTALLED,
        ),
    ]
    of_seats = [
        (told.where("joined"), _CAME),
        (_swaps(living, told), _SWAPPED),
        (told.where(f.col("type").isin(*_DEPARTURES)), _GONE),
        (told.where("type = 'InstanceReleased'"), _RELEASED),
    ]
    marks = [rows.withColumn("mark", f.lit(mark)) for rows, mark in (*of_seats, *of_ids)]
    every = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), marks)
    return every.select("grp", "at", "member_id", "seat", "mark", "asked")


def _swaps(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find the swaps of processes; `asked`: when the old one was, if nothing came of it yet."""
    swaps = told.where("type = 'StaticMemberReplaced'")
    choices = living.where("type in ('AssignmentRequested', 'TargetStored')")
    every = swaps.select("grp", "at", "type", "member_id", "old_member_id", "seat").unionByName(
        choices.select("grp", "at", "type", "member_id"), allowMissingColumns=True
    )
    choice = f.when(f.col("seat").isNull(), f.struct("type", "member_id", "at"))
    earlier = Window.partitionBy("grp").orderBy("at")
    last = every.withColumn("choice", f.last(choice, ignorenulls=True).over(earlier))
    pending = f.col("choice.type") == "AssignmentRequested"
    mine = pending & (f.col("choice.member_id") == f.col("old_member_id"))
    asked = last.withColumn("asked", f.when(mine, f.col("choice.at")))
    return asked.where("seat is not null")


def _with_places(marks: DataFrame) -> DataFrame:
    """Find the seat that an id took last, whether it is there still, and since when it runs."""
    by_id = Window.partitionBy("grp", "member_id").orderBy("at")
    seat = f.last("seat", ignorenulls=True).over(by_id)
    seated = marks.withColumn("seat", seat).where("seat is not null")
    mark, in_seat = f.col("mark"), Window.partitionBy("grp", "seat").orderBy("at")
    holder = f.when(mark.isin(_CAME, _SWAPPED), f.col("member_id")).when(mark == _GONE, "")
    changed = f.when(mark.isin(_CAME, _SWAPPED, _GONE, _RELEASED), f.col("at"))
    before = in_seat.rowsBetween(Window.unboundedPreceding, -1)
    placed = seated.withColumn("since", f.max(changed).over(before))
    there = f.last(holder, ignorenulls=True).over(in_seat) == f.col("member_id")
    return placed.withColumn("there", there)


def _gone(told: DataFrame) -> DataFrame:
    """Find the member ids that departed, or whose instance another one took."""
    departed = told.where(f.col("type").isin(*_DEPARTURES)).select("grp", "at", "member_id")
    swaps = told.where("type = 'StaticMemberReplaced'")
    return departed.unionByName(
        swaps.select("grp", "at", f.col("old_member_id").alias("member_id"))
    )


def _released(told: DataFrame) -> DataFrame:
    return told.where("type = 'InstanceReleased'").select("grp", "at", "member_id")


def _assignors(living: DataFrame) -> DataFrame:
    """Find the assignor of the last target, if it ran in a member."""
    stored = living.where("type = 'TargetStored'").groupBy("grp")
    own = f.when(f.col("installed_by") != "", f.col("assignor"))
    last = stored.agg(f.max_by(f.struct(own.alias("assignor")), "at").alias("last"))
    return last.select("grp", f.col("last.assignor").alias("value")).where("value is not null")
