"""What members of groups of both types say of themselves, by SQL, whatever their group is called.

A member's seat is what a swap passes on: that of its instance, or of its id if it has none. All
that is said of a seat since somebody joined it is one line of rows; what its holder said last
counts. A conversion goes on with the line: it ends what only the heartbeat protocol knows. Nothing
here may import `coordinator`; results have the form of `member_entries.entries_of`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

_ONE: Final = (
    *("MemberJoined", "MemberUpdated", "StaticMemberReplaced", "InstanceReleased"),
    *("MemberExpired", "MemberRefused", "MemberSubscribed", "MemberAdvanced", "MemberKept"),
)
"""Events of one member; the last one is a row that stands for a checkpoint."""
_THROWN_OUT: Final = "what in ('MemberExpired', 'MemberRefused')"
_SEAT: Final = ("grp", "seat")
_REPLACED_MAX: Final = 8
"""So many request ids of earlier holders are kept."""
_AS_TOLD: Final = "type as what, join_id as served_id"
_REMOVED: Final = "transform(removed, m -> struct(m as who, 'Gone' as what, join_id as served_id))"
_ANSWERED: Final = """
transform(arrays_zip(members, served),
          z -> struct(z.members as who, 'Rejoined' as what, z.served as served_id))"""
_WHO: Final = f"""
case when type in {_ONE} then array(struct(member_id as who, {_AS_TOLD}))
     when type in ('MembersLeft', 'MembersRemoved')
       then transform(members, m -> struct(m as who, {_AS_TOLD}))
     when type = 'GenerationStarted'
       then concat(coalesce({_REMOVED}, array()), coalesce({_ANSWERED}, array()))
     when type = 'GroupConverted'
       then transform(converted, c -> struct(c.member_id as who, {_AS_TOLD}))
end"""
_TOLD: Final = (
    *("grp", "at", "grp_seq", "log_time_ms", "principal", "instance_id", "joined", "group_type"),
    *("profile", "classic_profile", "life", "beat", "session_timeout_ms", "absence_ms", "members"),
    *("number", "predecessor_ms", "late"),
)


def lines(living: DataFrame) -> DataFrame:
    """Return what was said of each seat, in all its lines, with what was known of it before.

    This is computed at once, since it is read several times.
    """
    each = living.select(*_TOLD, f.size("granted").alias("granted"), f.expr(f"inline({_WHO})"))
    swapped, joins = f.col("what") == "StaticMemberReplaced", _joins()
    came = f.when(joins | swapped, f.struct("instance_id"))
    by_id = Window.partitionBy("grp", "who").orderBy("at")
    taken = f.last(came, ignorenulls=True).over(by_id)["instance_id"]
    seat = f.coalesce(f.concat(f.lit("i:"), taken), f.concat(f.lit("m:"), f.col("who")))
    named = each.withColumn("seat", seat).withColumn("joins", joins).withColumn("swaps", swapped)
    return _with_past(_with_words(named)).localCheckpoint()


def _joins() -> Column:
    """Tell what begins a line. A group that somebody joined classic is of that type, and so on."""
    subscribed = (f.col("what") == "MemberSubscribed") & f.col("joined")
    return f.coalesce((f.col("what") == "MemberJoined") | subscribed, f.expr("false"))


def _in_order() -> WindowSpec:
    return Window.partitionBy(*_SEAT).orderBy("at")


def _before() -> WindowSpec:
    return _in_order().rowsBetween(Window.unboundedPreceding, -1)


def _with_words(rows: DataFrame) -> DataFrame:
    """Add what a row says of the classic protocol, of timeouts, and of the life of a process."""
    what = f.col("what")
    beats = f.when(what == "MemberJoined", f.expr("false")).when(
        what == "MemberSubscribed", f.expr("true")
    )
    beats = beats.when(what == "GroupConverted", f.col("group_type") == "consumer")
    typed = rows.withColumn("beats", f.last(beats, ignorenulls=True).over(_in_order()))
    silent = f.col("beats") & f.col("swaps") & (f.size("profile.protocols") == 0)
    own = f.struct("profile.session_timeout_ms", "profile.protocols")
    said = f.when(what.isin("MemberJoined", "MemberUpdated") | f.col("swaps"), f.when(~silent, own))
    told = f.struct("classic_profile.session_timeout_ms", "classic_profile.protocols")
    there = f.col("classic_profile").isNotNull()
    said = said.when((what == "MemberSubscribed") & there, told)
    speaks = what.isin("MemberJoined", "MemberUpdated", "MemberSubscribed") | f.col("swaps")
    served = f.when(what == "MemberSubscribed", f.col("classic_profile.request_id")).otherwise(
        f.when(~silent, f.col("served_id"))
    )
    asks = speaks | (what == "Rejoined")
    fresh = f.col("joins") | f.col("swaps") | (what == "GroupConverted")
    life = f.when(f.col("joins"), f.coalesce("life", f.lit(""))).when(fresh, "")
    life = life.when((what == "MemberSubscribed") & (f.col("life") != ""), f.col("life"))
    return (
        typed.withColumn("says", f.when(speaks, f.struct(said.alias("said"))))
        .withColumn("asks", f.when(asks, f.struct(served.alias("id"))))
        .withColumn("fresh", fresh)
        .withColumn("lives", life)
    )


def _with_past(rows: DataFrame) -> DataFrame:
    """Add what was known before each row, and whether its line is the present one."""
    whole = Window.partitionBy(*_SEAT)
    ends = f.col("what").isin("Gone", "MembersLeft", "MembersRemoved") | f.expr(_THROWN_OUT)
    stops = f.when(f.col("what") == "InstanceReleased", f.expr("true")).when(
        f.col("joins") | f.col("swaps") | (f.col("what") == "MemberAdvanced"), f.expr("false")
    )
    past = (
        rows.withColumn("was_said", f.last("says", ignorenulls=True).over(_before())["said"])
        .withColumn("was_asked", f.last("asks", ignorenulls=True).over(_before())["id"])
        .withColumn("was_life", f.last("lives", ignorenulls=True).over(_before()))
        .withColumn(
            "was_given_ms", f.last("profile.rebalance_timeout_ms", ignorenulls=True).over(_before())
        )
        .withColumn("had_stopped", f.last(stops, ignorenulls=True).over(_before()))
    )
    changes = f.col("fresh") | (f.col("lives") != f.col("was_life"))
    return (
        past.withColumn("ends", ends)
        .withColumn("begun", f.max(f.when(f.col("joins"), f.col("at"))).over(whole))
        .withColumn("ended", f.max(f.when(ends, f.col("at"))).over(whole))
        .withColumn("renewed", f.max(f.when(changes, f.col("at"))).over(whole))
        .withColumn("freshened", f.max(f.when(f.col("fresh"), f.col("at"))).over(whole))
        .withColumn(
            "converted_at",
            f.max(f.when(f.col("what") == "GroupConverted", f.col("at"))).over(whole),
        )
        .withColumn("stops", stops)
    )


def seats(said: DataFrame) -> DataFrame:
    """Find the members that are there, with what each said last; `said`: of `lines`."""
    present = said.where("at >= begun and (ended is null or ended < begun)")
    came, what = f.col("joins") | f.col("swaps"), f.col("what")
    since = f.coalesce("converted_at", f.lit(0))
    subscribed = (what == "MemberSubscribed") & (f.col("at") > since)
    released = (what == "InstanceReleased") & (f.col("at") > f.col("freshened"))
    shorter = f.col("profile.rebalance_timeout_ms") < f.col("was_given_ms")
    hurried = subscribed & ~f.col("joins") & (f.col("beat") > 0) & shorter
    until_ms = f.when(hurried & (f.col("at") > f.col("freshened")), _patient_ms())
    kept = f.when((what == "MemberKept") & (f.col("at") > f.col("freshened")), f.col("number"))
    replaced = f.col("swaps") & (f.col("was_asked") != "")
    told = f.col("session_timeout_ms") > 0
    return present.groupBy(*_SEAT).agg(
        f.max("begun").alias("begun"),
        _last(f.col("who"), came).alias("member_id"),
        f.max(f.when(came, f.col("at"))).alias("came"),
        _last(f.col("log_time_ms"), came).alias("since_ms"),
        _last(f.coalesce("number", "grp_seq"), f.col("joins")).alias("joined_seq"),
        _last(f.col("principal"), came).alias("principal"),
        _last(f.col("beats"), f.expr("true")).alias("beats"),
        _last(f.col("says"), f.col("says").isNotNull())["said"].alias("said"),
        _last(f.col("asks"), f.col("asks").isNotNull())["id"].alias("request_id"),
        _last(f.col("profile"), f.col("profile").isNotNull() & (what != "MemberKept")).alias(
            "profile"
        ),
        _last(f.col("profile"), subscribed).alias("wants"),
        _last(f.col("lives"), f.col("lives").isNotNull()).alias("life"),
        f.max(f.when(f.col("at") >= f.col("renewed"), f.col("beat"))).alias("beat"),
        f.max(f.when(f.col("swaps"), f.col("was_life"))).alias("life_before"),
        _last(f.col("late"), what == "MemberKept").alias("life_kept"),
        _last(f.col("session_timeout_ms"), subscribed & told).alias("session_ms"),
        f.greatest(f.max(until_ms), f.max(kept)).alias("unhurried_ms"),
        _last(f.col("absence_ms"), released).alias("absence_ms"),
        _last(f.col("stops"), f.col("stops").isNotNull()).alias("released"),
        f.array_sort(f.collect_list(f.when(replaced, f.struct("at", "was_asked")))).alias("asked"),
        _last(f.col("members"), what == "MemberKept").alias("asked_before"),
        f.max(_granting()).alias("given"),
    )


def _patient_ms() -> Column:
    return f.col("log_time_ms") + f.col("was_given_ms")


def _granting() -> Column:
    """Tell when a member was given something, and how long an older holder may still act on it.

    Null: that is to be told by what its group knows then (`sql.heads`).
    """
    told = f.when(f.col("joins"), 0).when(f.col("swaps"), f.col("predecessor_ms"))
    told = told.when(f.col("what") == "MemberKept", f.col("predecessor_ms")).cast("bigint")
    gives = told.isNotNull() | (f.col("what") == "MemberAdvanced") & (f.col("granted") > 0)
    return f.when(gives, f.struct("at", "log_time_ms", told.alias("ms")))


def _last(value: Column, condition: Column) -> Column:
    return f.max_by(value, f.when(condition, f.col("at")))


def member_entries(members: DataFrame, kept_from: DataFrame) -> DataFrame:
    """Tell of each member what it said; `kept_from`: from where on principals are kept."""
    known = members.crossJoin(f.broadcast(kept_from))
    owner = f.when(f.col("came") >= f.col("kept_from"), f.col("principal"))
    replaced = f.concat_ws(",", _last_ones())
    before = f.greatest(f.coalesce("life_before", f.lit("")), f.coalesce("life_kept", f.lit("")))
    timeouts = (f.col("said.session_timeout_ms"), f.col("profile.rebalance_timeout_ms"))
    place = f.concat_ws("|", *(_text(f"wants.{name}") for name in ("rack_id", "server_assignor")))
    beat = f.concat_ws(":", _text("life"), f.coalesce("beat", f.lit(0)))
    times = [f.coalesce(name, f.lit(0)) for name in ("session_ms", "unhurried_ms", "absence_ms")]
    session = f.concat_ws(":", *times)
    entries = {
        "client": f.concat_ws("|", "profile.client_id", "profile.client_host"),
        "timeouts": f.concat_ws(":", *(f.coalesce(each, f.lit(0)) for each in timeouts)),
        "protocols": _protocols(f.col("said.protocols")),
        "request id": f.col("request_id"),
        "joined": f.concat_ws(":", "joined_seq", "since_ms"),
        "principal": owner,
        "replaced": _unless(f.concat(replaced, f.lit("|"), before), "|"),
        "released": f.when(f.col("released") & ~f.col("beats"), "released"),
        "place": f.when(f.col("beats"), _unless(place, "|")),
        "client assignors": f.when(f.col("beats"), _assignors(f.col("wants.client_assignors"))),
        "beat": f.when(f.col("beats"), _unless(beat, ":0")),
        "session": f.when(f.col("beats"), _unless(session, "0:0:0")),
    }
    structs = [
        f.struct(f.lit(kind).alias("kind"), f.col("member_id").alias("key"), value.alias("value"))
        for kind, value in entries.items()
    ]
    return known.select("grp", f.inline(f.array(*structs))).where("value <> ''")


def _text(name: str) -> Column:
    return f.coalesce(f.col(name), f.lit(""))


def _unless(value: Column, nothing: str) -> Column:
    return f.when(value != nothing, value)


def _last_ones() -> Column:
    """Return the last request ids of those that had the seat before, in order."""
    told = f.transform("asked", lambda each: each["was_asked"])
    every = f.concat(f.coalesce("asked_before", f.expr("cast(array() as array<string>)")), told)
    return f.reverse(f.slice(f.reverse(every), 1, _REPLACED_MAX))


def _protocols(several: Column) -> Column:
    def one(each: Column) -> Column:
        content = f.lower(f.hex(each["metadata"]))
        return f.concat_ws(":", each["name"], content, f.concat_ws(",", each["topics"]))

    return f.array_join(f.transform(several, one), ";")


def _assignors(several: Column) -> Column:
    def one(each: Column) -> Column:
        numbers = [
            each[name] for name in ("minimum_version", "maximum_version", "reason", "version")
        ]
        return f.concat_ws(":", each["name"], *numbers, f.lower(f.hex(each["metadata"])))

    return f.array_join(f.transform(several, one), ";")
