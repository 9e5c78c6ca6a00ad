"""The state of groups of the heartbeat protocol, by SQL: a part of `sql.state`, as independent.

It is written from the rules, not from `evolve`. A member's seat is what a swap passes on: that of
the instance of a static member, that of the id of a dynamic one. It begins when a member joins, and
ends when one departs. What a seat is to own, and owns, is what was said of it last. Who is to
compute the target is told by `sql.choices`.
Nothing here may import `coordinator`; results have the form of `consumer_entries.entries_of`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.places import entry

_DEPARTURES = ("MembersLeft", "MembersRemoved", "MemberExpired")
_STEPS = ("StaticMemberReplaced", "InstanceReleased", "MemberAdvanced")
_OF_ONE = ("MemberSubscribed", "MemberExpired", *_STEPS)
_PARTITIONS = "array<struct<topic: string, partitions: array<int>>>"
_TARGET = f"struct<partitions: {_PARTITIONS}, version: int, metadata: binary>"
_LISTS = (("freed", 0), ("asked_back", 0), ("granted", 1))
"""The partitions of a step, in the order in which they change: what comes back is granted last."""
_RELEASED_EPOCH = -2
_FIRST_EPOCH = 1
_SEAT = ["grp", "seat"]


def consumer_entries(living: DataFrame, said: DataFrame) -> DataFrame:
    """Compute the state of these groups without their offsets, one row a key.

    `said`: what events say of members, as `told` finds it.
    """
    present = _present(said)
    seats = _seats(present)
    owned = _owned(_holdings(present, seats))
    parts = [_epochs(living), _members(seats), owned, _regexes(living, said)]
    return reduce(lambda one, two: one.unionByName(two), parts)


def holdings(living: DataFrame) -> DataFrame:
    """Find who owns each partition, by what grant: in which seat, since which epoch and entry.

    What a group brings from another type keeps the token that it had there: no value of `granted`,
    if that is not known.
    """
    present = _present(told(living))
    return _holdings(present, _seats(present))


def _entry(rows: DataFrame, kind: str, key: str | Column, value: str | Column) -> DataFrame:
    made = f.col(value) if isinstance(value, str) else value
    named = f.col(key) if isinstance(key, str) else key
    return rows.select("grp", f.lit(kind).alias("kind"), named.alias("key"), made.alias("value"))


# --- who is there ---


def told(living: DataFrame) -> DataFrame:
    """Find what each event says of each member, and in which seat that member is.

    A member id is in the seat that it took last: by joining, or by a swap. This is computed at
    once, since it is read many times.
    """
    every = living.withColumn("target", f.lit(None).cast(_TARGET))
    single = every.where(f.col("type").isin(*_OF_ONE))
    several = every.where(f.col("type").isin("MembersLeft", "MembersRemoved"))
    several = several.withColumn("member_id", f.explode("members"))
    aims = living.where("type = 'TargetStored'").withColumn("aim", f.explode("targets"))
    aims = aims.withColumn("member_id", f.col("aim.member_id"))
    target = f.struct("aim.partitions", "aim.version", "aim.metadata")
    aims = aims.withColumn("target", target).drop("aim")
    rows = single.unionByName(several).unionByName(aims)
    came = f.when(_came(), f.struct("instance_id"))
    by_id = Window.partitionBy("grp", "member_id").orderBy("at")
    taken = rows.withColumn("taken", f.last(came, ignorenulls=True).over(by_id))
    instance, member = f.col("taken.instance_id"), f.col("member_id")
    seat = f.coalesce(f.concat(f.lit("i:"), instance), f.concat(f.lit("m:"), member))
    return taken.withColumn("seat", seat).drop("taken").localCheckpoint()


def _came() -> Column:
    return f.coalesce(f.col("joined"), f.lit(False)) | (  # noqa: FBT003 - a value
        f.col("type") == "StaticMemberReplaced"
    )


def _present(said: DataFrame) -> DataFrame:
    """Select what was said of members that are there, from their joining on.

    A step sets the epoch of a member; each record also gets the step before it. This is computed
    at once, as `told` is.
    """
    whole = Window.partitionBy(*_SEAT)
    begun = f.max(f.when(f.col("joined"), f.col("at"))).over(whole)
    ended = _last_at(f.col("type").isin(*_DEPARTURES)).over(whole)
    placed = said.withColumn("begun", begun).withColumn("ended", ended)
    present = placed.where("at >= begun and (ended is null or ended < begun)")
    epoch = f.when(f.col("type") == "InstanceReleased", _RELEASED_EPOCH).otherwise(f.col("epoch"))
    step = f.struct("type", f.when(_came(), 0).otherwise(epoch).alias("now"))
    steps = f.when(_came() | f.col("type").isin(*_STEPS), step)
    earlier = whole.orderBy("at").rowsBetween(Window.unboundedPreceding, -1)
    stepped = present.withColumn("step", steps).withColumn("speaks", _speaks())
    stepped = stepped.withColumn("before", f.last("step", ignorenulls=True).over(earlier))
    stepped = stepped.withColumn("spoke", f.last("speaks", ignorenulls=True).over(earlier))
    renewed = stepped.withColumn("renews", f.when(_renews(), f.col("at")))
    newest = f.last("renews", ignorenulls=True).over(earlier)
    return renewed.withColumn("renewed", newest).localCheckpoint()


def _speaks() -> Column:
    """Tell who says by this which protocol it speaks: whether it is the classic one (K-Q5, K-Q7).

    A swap by a classic join is of a process that speaks that.
    """
    subscribed = f.when(f.col("type") == "MemberSubscribed", _true("classic"))
    swap = f.col("type") == "StaticMemberReplaced"
    return subscribed.when(swap, _true(f.col("command") == "JoinGroup"))


def _renews() -> Column:
    """Tell what grants all that a seat owns anew, beside what it grants (S12, S13).

    That is a swap whose holder had not released the instance: both processes may run. A member of
    the classic protocol is told one token, so all gets that of the newest grant; and as a member
    begins to speak that protocol.
    """
    classic, spoke = _true("speaks"), _true("spoke")
    swap = f.col("type") == "StaticMemberReplaced"
    unannounced = ~_true(f.col("before.type") == "InstanceReleased")
    turned = (f.col("type") == "MemberSubscribed") & ~_true("joined") & classic & ~spoke
    given = (f.col("type") == "MemberAdvanced") & (f.size("granted") > 0) & spoke
    return ~f.col("carried") & ((swap & (unannounced | classic)) | turned | given)


def _true(condition: str | Column) -> Column:
    value = f.col(condition) if isinstance(condition, str) else condition
    return f.coalesce(value, f.expr("false"))


def _seats(present: DataFrame) -> DataFrame:
    """Find the member in each seat, what it wants, where it is, and what it is to own."""
    wants = f.concat_ws("|", f.concat_ws(",", "topics"), "regex")
    return present.groupBy(*_SEAT).agg(
        _last("member_id", _came()),
        _last("instance_id", _came()),
        _last(wants, f.col("type") == "MemberSubscribed").alias("wants"),
        _last(_progress(), f.col("step").isNotNull()).alias("progress"),
        _last("target", f.col("type") == "TargetStored"),
        _last_at(f.col("type") == "InstanceReleased").alias("released"),
        _last_at(f.col("type") == "StaticMemberReplaced").alias("swapped"),
        _last("speaks", f.col("speaks").isNotNull()),
        f.max("renews").alias("last_renewed"),
    )


def _last(value: str | Column, condition: Column) -> Column:
    found = f.max_by(value, f.when(condition, f.col("at")))
    return found.alias(value) if isinstance(value, str) else found


def _last_at(condition: Column) -> Column:
    return f.max(f.when(condition, f.col("at")))


def _progress() -> Column:
    """Tell a member's epoch, the one before (K-M11), and whether it waits for others (K-O8)."""
    waits = f.when(f.col("waiting"), "waiting").otherwise("")
    before = f.when(_came(), 0).otherwise(f.col("before.now"))
    return f.concat_ws(":", f.col("step.now"), before, waits)


def _members(seats: DataFrame) -> DataFrame:
    """Tell of each member who it is, what it wants, where it is, and what it is to own."""
    member, target = f.col("member_id"), f.col("target")
    says = _says(target)
    entries = [
        ("member", member, f.coalesce("instance_id", f.lit(""))),
        ("instance", f.col("instance_id"), member),
        ("protocol", member, f.when(f.col("speaks"), "classic")),
        ("subscription", member, f.col("wants")),
        ("progress", member, f.col("progress")),
        ("target", member, f.when(says != "|0|", says)),
    ]
    structs = [
        f.struct(f.lit(kind).alias("kind"), key.alias("key"), value.alias("value"))
        for kind, key, value in entries
    ]
    rows = seats.select("grp", f.inline(f.array(*structs)))
    return rows.where("key is not null and value is not null")


def _says(target: Column) -> Column:
    """Tell of a target its partitions, and what an assignor in a member says beside them."""
    one = "concat(p.topic, ':', array_join(transform(p.partitions, n -> cast(n as string)), ','))"
    listed = f.expr(f"array_join(transform(target.partitions, p -> {one}), ';')")
    version = f.coalesce(target["version"], f.lit(0)).cast("string")
    metadata = f.coalesce(f.lower(f.hex(target["metadata"])), f.lit(""))
    return f.concat(listed, f.lit("|"), version, f.lit("|"), metadata)


def _epochs(living: DataFrame) -> DataFrame:
    """Find the group epoch, and the epoch of the last target."""
    first, at = f.lit(_FIRST_EPOCH), f.col("at")
    raised = f.when(f.col("type") == "EpochRaised", at)
    stored = f.when(f.col("type") == "TargetStored", at)
    last = living.groupBy("grp").agg(
        f.coalesce(f.max_by("epoch", raised), first).cast("string").alias("generation"),
        f.coalesce(f.max_by("epoch", stored), first).cast("string").alias("assignment"),
    )
    both = "stack(2, 'generation', '', generation, 'assignment epoch', '', assignment)"
    return last.select("grp", f.expr(f"{both} as (kind, key, value)"))


# --- who owns what ---


def _owned(held: DataFrame) -> DataFrame:
    key = f.concat_ws("/", "topic", f.col("partition").cast("string"))
    return _entry(held, "owned", key, f.concat_ws(":", "member_id", "epoch", "granted", "how"))


def _holdings(present: DataFrame, seats: DataFrame) -> DataFrame:
    """Find the owner of each partition, with the epoch and the entry of the grant (S13, K-O16).

    A release frees what its member was asked to give up (K-N23), and lets its successor commit
    whatever epoch it knows (K-J41). What is asked back is not granted anew with the rest.
    """
    moved = _moved(present).join(seats, _SEAT)
    stopped = f.greatest("released", "swapped")
    asked = f.col("last.how") == "asked_back"
    freed = (f.col("last.how") == "freed") | (asked & (stopped > f.col("last.at")))
    held = moved.where(~_true(freed))
    epoch = f.when(f.col("released") > f.col("given.at"), 0).otherwise(f.col("given.epoch"))
    renewed = f.when(asked, entry("last.renewed")).otherwise(entry("last_renewed"))
    return held.select(
        *_SEAT,
        "member_id",
        "topic",
        "partition",
        epoch.alias("epoch"),
        f.greatest("given.token", renewed).alias("granted"),
        f.when(asked, "revoking").otherwise("").alias("how"),
    )


def _moved(present: DataFrame) -> DataFrame:
    """Find what last happened to each partition in a seat, and when it was last granted."""
    steps = present.where("type = 'MemberAdvanced'")
    lists = [
        f"transform({how}, part -> struct({nth} as nth, '{how}' as how, part as part))"
        for how, nth in _LISTS
    ]
    each = f.expr(f"inline(concat({', '.join(lists)}))")
    token = f.when(f.col("carried"), f.col("token")).otherwise(entry("at")).alias("token")
    topics = steps.select(*_SEAT, "at", "epoch", "renewed", token, each)
    pieces = topics.withColumn("topic", f.col("part.topic"))
    pieces = pieces.withColumn("partition", f.explode("part.partitions"))
    given = f.when(f.col("how") == "granted", f.struct("at", "epoch", "token"))
    last = f.max(f.struct("at", "nth", "how", "renewed")).alias("last")
    return pieces.groupBy(*_SEAT, "topic", "partition").agg(last, f.max(given).alias("given"))


# --- regular expressions ---


def _regexes(living: DataFrame, said: DataFrame) -> DataFrame:
    """Find the topics of each regular expression that some member had ever since (K-P7)."""
    resolved = living.where("type = 'RegexResolved' and regex is not null").groupBy("grp", "regex")
    found = resolved.agg(f.max("at").alias("at"), f.max_by("topics", "at").alias("topics"))
    known = found.join(_forgotten(said), ["grp", "regex"], "left")
    kept = known.where("forgotten is null or forgotten < at")
    return _entry(kept, "regex", "regex", f.concat_ws(",", "topics"))


def _forgotten(said: DataFrame) -> DataFrame:
    """Find when each regular expression last lost its last member."""
    spoken = said.where(f.col("type").isin("MemberSubscribed", *_DEPARTURES))
    now = f.when(f.col("type") == "MemberSubscribed", f.col("regex")).otherwise("")
    seated = Window.partitionBy(*_SEAT).orderBy("at")
    had = spoken.withColumn("now", now).withColumn("was", f.lag("now", 1, "").over(seated))
    changed = had.where("now <> was")
    taken = changed.select("grp", "at", f.col("now").alias("regex"), f.lit(1).alias("by"))
    dropped = changed.select("grp", "at", f.col("was").alias("regex"), f.lit(-1).alias("by"))
    counted = taken.unionByName(dropped).groupBy("grp", "regex", "at").agg(f.sum("by").alias("by"))
    in_order = Window.partitionBy("grp", "regex").orderBy("at")
    users = counted.withColumn("users", f.sum("by").over(in_order)).where("users = 0")
    return users.groupBy("grp", "regex").agg(f.max("at").alias("forgotten"))
