"""The state of all groups by SQL: each by the rules of its type.

Knows the types by their names; imports no `coordinator`, like what it puts together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql import consumer_state, heads, members, state
from holdfast.replay.verify.sql.choices import choice_entries
from holdfast.replay.verify.sql.cluster_state import cluster_entries, level_begins, own_rows
from holdfast.replay.verify.sql.conversions import Rules, last_phases, of_each_type
from holdfast.replay.verify.sql.requests import request_entries, request_rows
from holdfast.replay.verify.sql.statements import computed, statement, together

_RULES: Final = Rules(state.grants, consumer_state.holdings)
_READ_ONCE: Final = ("OffsetsCommitted", "OffsetsDeleted", "RequestRecorded")
_FIRST_KINDS: Final = (
    *("generation", "member", "instance", "grant", "offset", "assignment epoch", "protocol"),
    *("subscription", "progress", "target", "owned", "regex", "asked", "late", "client assignor"),
)
"""The kinds of entries for which the columns of the first segments tell enough."""


class Older(NamedTuple):
    """What records of older segments, with fewer columns, do not tell enough of."""

    untold: set[str]
    """Groups that SQL cannot compute; "" is what belongs to no group."""
    in_part: set[str]
    """Groups of which some kinds of entries cannot be computed."""


def older_groups(rows: DataFrame) -> Older:
    """Find of which groups too few columns tell, in all records of a log."""
    found = statement("groups/older", rows=rows).collect()
    return Older(
        {each.grp for each in found if each.untold}, {each.grp for each in found if each.in_part}
    )


def comparable(entries: DataFrame, in_part: set[str]) -> DataFrame:
    """Leave out the kinds of entries that cannot be told of some groups."""
    names = entries.sparkSession.createDataFrame([(name,) for name in in_part], "grp string")
    marked = entries.join(f.broadcast(names.withColumn("in_part", f.expr("true"))), "grp", "left")
    kept = marked.where(f.col("in_part").isNull() | f.col("kind").isin(*_FIRST_KINDS))
    return kept.drop("in_part")


class ClusterState(NamedTuple):
    """What belongs to no group."""

    entries: DataFrame
    requests_left_out: bool
    """The bounds of the dedupe table were changed while it was used, which SQL does not follow."""


def cluster_state(rows: DataFrame) -> ClusterState:
    """Compute what belongs to no group, one row a key, of all records of a log."""
    own = own_rows(rows).persist()
    entries = cluster_entries(rows, own)
    requests = request_entries(request_rows(rows).persist(), own)
    if requests is None:
        return ClusterState(entries, requests_left_out=True)
    return ClusterState(together(entries, requests), requests_left_out=False)


def without_requests(entries: DataFrame) -> DataFrame:
    """Leave out what is not compared if `ClusterState.requests_left_out`."""
    counters = f.col("key").isin("requests next", "requests floor")
    return entries.where(~((f.col("kind") == "request") | (f.col("kind") == "cluster") & counters))


def without_principals(entries: DataFrame) -> DataFrame:
    """Leave out what cannot be compared where "" is untold: from which level on they are kept."""
    return entries.where(f.col("kind") != "principal")


def principals_begin(rows: DataFrame) -> DataFrame:
    """Find from where on in a log members keep a principal; one row."""
    return level_begins(own_rows(rows))


def state_entries(living: DataFrame, kept_from: DataFrame) -> DataFrame:
    """Compute the state of all groups that exist, one row a key, from their `living_rows`.

    `kept_from`: from where on principals are kept (`level_begins`). Most records are commits: these
    are read once, with few columns; all others are kept, since they are read several times. They
    are kept by group, so that whatever is told of groups or their members moves no row again.
    """
    told = living.where(~f.col("type").isin(*_READ_ONCE)).repartition("grp").localCheckpoint()
    of_the_other_type = told.where("group_type = 'consumer'")
    is_classic = of_the_other_type.isEmpty()  # as most logs are: half of the work is saved
    own = state.classic_entries(told) if is_classic else _of_both_types(told)
    said = members.lines(told)
    seats = computed(members.seats(said))
    return together(
        own,
        members.member_entries(seats, kept_from),
        heads.head_entries(told, said, seats),
        heads.counted_entries(living),
        state.offset_entries(living),
    )


def _of_both_types(living: DataFrame) -> DataFrame:
    """Compute the state of groups, without their offsets, some of which change their type."""
    changing = living.where("type = 'GroupConverted'").select("grp").distinct()
    if not changing.isEmpty():
        names = f.broadcast(changing)
        last = last_phases(living.join(names, "grp", "left_semi"), _RULES)
        rest = living.join(names, "grp", "left_anti")
        living = rest.select(*last.columns).unionByName(last)
    consumer, classic = of_each_type(living)
    said = consumer_state.told(consumer)
    return together(
        state.classic_entries(classic),
        consumer_state.consumer_entries(consumer, said),
        choice_entries(consumer, said),
    )
