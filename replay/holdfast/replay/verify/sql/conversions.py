"""Groups that changed their protocol, by SQL: beside `sql.consumer_state`, as independent.

A conversion ends one group and begins another, of the other type: it names all members, with what
they own. So each *phase* of such a group, from one conversion to the next, is looked at as a group
of its own, whose first rows tell what it was begun with, as if that had happened in it. What events
do not tell goes over from the phase before: the instance of a member, whether its process stopped,
and the token of what it owns (S13). The rules are in `rules/conversion`. Nothing here may
import `coordinator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql.statements import computed, statement


class Rules(NamedTuple):
    """How groups of one type each are looked at (`sql.state`, `sql.consumer_state`)."""

    grants: Callable[[DataFrame], DataFrame]
    """What members of classic groups hold."""
    holdings: Callable[[DataFrame], DataFrame]
    """Who owns what in groups of the heartbeat protocol."""


def last_phases(living: DataFrame, rules: Rules) -> DataFrame:
    """Return rows of the present phase of each group, as of a group that was never another type.

    `living`: the rows of groups that changed their protocol. The rows have the columns that the
    rules of either type read. Each step is computed at once, or the plans of all that read it would
    grow beyond what Spark can plan.
    """
    phases = computed(statement("conversion/phases", living=living))
    members = computed(statement("conversion/members", phases=phases))
    known = computed(_with_tokens(phases, members, rules))
    rows = statement("conversion/rows", phases=phases, members=known)
    return statement("conversion/last", rows=rows)


def of_each_type(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Split rows by the type of their group: of the heartbeat protocol, and classic.

    The rows are computed at once, since both are read many times.
    """
    consumer = rows.where("group_type = 'consumer'").select("grp").distinct()
    named = f.broadcast(consumer.withColumn("beats", f.expr("true")))
    marked = rows.join(named, "grp", "left").localCheckpoint()
    return marked.where("beats").drop("beats"), marked.where("beats is null").drop("beats")


def _with_tokens(phases: DataFrame, members: DataFrame, rules: Rules) -> DataFrame:
    """Add the token that each member brings into a phase: of what it was granted last."""
    rows = statement("conversion/rows", phases=phases, members=members)
    consumer, classic = of_each_type(statement("conversion/by_phase", rows=rows))
    return statement(
        "conversion/tokens",
        members=members,
        held=rules.holdings(consumer),
        granted=rules.grants(classic),
    )
