"""The state of all groups by SQL: each by the rules of its type.

Knows the types by their names; imports no `coordinator`, like what it puts together.
"""

from __future__ import annotations

from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql import consumer_state, heads, members, state
from holdfast.replay.verify.sql.choices import choice_entries
from holdfast.replay.verify.sql.cluster_state import cluster_entries, level_begins, own_rows
from holdfast.replay.verify.sql.conversions import Rules, last_phases, of_each_type
from holdfast.replay.verify.sql.requests import request_entries, request_rows

_RULES: Final = Rules(state.grants, consumer_state.holdings)
_UNTOLD: Final = (
    "(type = 'MemberSubscribed' and classic is null)"
    " or (type in ('AssignmentRequested', 'TargetStored') and assignor is null)"
    " or (type = 'GroupConverted' and converted is null)"
)
"""Records of segments that lack `columns.LATER`, in which others tell something."""


_CLUSTER_UNTOLD: Final = (
    "(type in ('ClusterFormed', 'AccessModeChanged') and name is null)"
    " or (type in ('LevelRaised', 'RecoveryNumberRaised', 'BackupVerified') and number is null)"
    " or (type in ('SegmentSealed', 'HistoryCut') and place is null)"
    " or (type = 'SettingsChanged' and settings is null)"
    " or (type in ('TopicsCreated', 'PartitionsAdded', 'TopicsDeleted') and sizes is null)"
    " or (type = 'AclsChanged' and acls is null)"
    " or (type = 'RevocationsChanged' and revocations is null)"
    " or (type = 'RequestRecorded' and request is null)"
)
"""Records of segments that lack `columns.WHOLE`, of what belongs to no group."""


_IN_PART: Final = (
    "rule is not null and ("
    "type in ('MemberJoined', 'MemberUpdated', 'StaticMemberReplaced', 'MemberSubscribed')"
    " and profile is null"
    " or type in ('InstanceReleased', 'MemberAdvanced') and beat is null"
    " or type = 'RebalanceStarted' and timeout_ms is null"
    " or type = 'GenerationStarted' and leader is null"
    " or type = 'OffsetsCommitted' and beside is null"
    " or type = 'EpochRaised' and topics_digest is null"
    " or type = 'RegexResolved' and number is null)"
)
"""Records of segments that lack `columns.WHOLE`, of groups; no row of a log is without a rule."""
_OF_OFFSETS: Final = ("OffsetsCommitted", "OffsetsDeleted")
_FIRST_KINDS: Final = (
    *("generation", "member", "instance", "grant", "offset", "assignment epoch", "protocol"),
    *("subscription", "progress", "target", "owned", "regex", "asked", "late", "client assignor"),
)
"""The kinds of entries for which these columns are not needed."""


def groups_in_part(living: DataFrame) -> DataFrame:
    """Find the groups of which too few columns tell for some kinds of entries."""
    return living.where(_IN_PART).select("grp").distinct()


def comparable(entries: DataFrame, in_part: DataFrame) -> DataFrame:
    """Leave out the kinds of entries that cannot be told of some groups."""
    marked = entries.join(in_part.withColumn("in_part", f.expr("true")), "grp", "left")
    kept = marked.where(f.col("in_part").isNull() | f.col("kind").isin(*_FIRST_KINDS))
    return kept.drop("in_part")


class ClusterState(NamedTuple):
    """What belongs to no group."""

    entries: DataFrame
    requests_left_out: bool
    """The bounds of the dedupe table were changed while it was used, which SQL does not follow."""


def is_untold(rows: DataFrame) -> bool:
    """Tell whether too few columns tell of what belongs to no group."""
    return not rows.where(_CLUSTER_UNTOLD).isEmpty()


def cluster_state(rows: DataFrame) -> ClusterState:
    """Compute what belongs to no group, one row a key, of all records of a log."""
    own = own_rows(rows).persist()
    entries = cluster_entries(rows, own)
    requests = request_entries(request_rows(rows).persist(), own)
    if requests is None:
        return ClusterState(entries, requests_left_out=True)
    return ClusterState(entries.unionByName(requests), requests_left_out=False)


def without_requests(entries: DataFrame) -> DataFrame:
    """Leave out what is not compared if `ClusterState.requests_left_out`."""
    counters = f.col("key").isin("requests next", "requests floor")
    return entries.where(~((f.col("kind") == "request") | (f.col("kind") == "cluster") & counters))


def without_principals(entries: DataFrame) -> DataFrame:
    """Leave out what cannot be compared where `is_untold`: from which level on they are kept."""
    return entries.where(f.col("kind") != "principal")


def principals_begin(rows: DataFrame) -> DataFrame:
    """Find from where on in a log members keep a principal; one row."""
    return level_begins(own_rows(rows))


def untold_groups(living: DataFrame) -> DataFrame:
    """Find the groups with records of which too few columns tell for the rules in SQL."""
    return living.where(_UNTOLD).select("grp").distinct()


def state_entries(living: DataFrame, kept_from: DataFrame) -> DataFrame:
    """Compute the state of all groups that exist, one row a key, from their `living_rows`.

    `kept_from`: from where on principals are kept (`level_begins`). Most records are commits: these
    are read once, with few columns; all others are kept, since they are read several times.
    """
    told = (
        living.where(~f.col("type").isin(*_OF_OFFSETS, "RequestRecorded"))
        .drop("payload", "chain")
        .localCheckpoint()
    )
    of_the_other_type = told.where("group_type = 'consumer'").select("grp").distinct()
    is_classic = of_the_other_type.isEmpty()  # as most logs are: half of the work is saved
    own = state.classic_entries(told) if is_classic else _of_both_types(told)
    said = members.lines(told)
    seats = members.seats(said).localCheckpoint()
    parts = [
        own,
        members.member_entries(seats, kept_from),
        heads.head_entries(told, said, seats),
        heads.counted_entries(living),
        state.offset_entries(living),
    ]
    return reduce(lambda one, two: one.unionByName(two), parts)


def _of_both_types(living: DataFrame) -> DataFrame:
    """Compute the state of groups, without their offsets, some of which change their type."""
    changing = living.where("type = 'GroupConverted'").select("grp").distinct()
    if not changing.isEmpty():
        names = f.broadcast(changing)
        last = last_phases(living.join(names, "grp", "left_semi"), _RULES)
        rest = living.join(names, "grp", "left_anti")
        living = rest.unionByName(last, allowMissingColumns=True)
    consumer, classic = of_each_type(living)
    entries = state.classic_entries(classic)
    said = consumer_state.told(consumer)
    entries = entries.unionByName(consumer_state.consumer_entries(consumer, said))
    return entries.unionByName(choice_entries(consumer, said))
