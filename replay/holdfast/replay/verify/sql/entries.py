"""The state of all groups by SQL: each by the rules of its type.

Knows the types by their names; imports no `coordinator`, like what it puts together.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql import consumer_state, state
from holdfast.replay.verify.sql.choices import choice_entries
from holdfast.replay.verify.sql.conversions import Rules, last_phases, of_each_type

_RULES: Final = Rules(state.grants, consumer_state.holdings)
_UNTOLD: Final = (
    "(type = 'MemberSubscribed' and classic is null)"
    " or (type in ('AssignmentRequested', 'TargetStored') and assignor is null)"
    " or (type = 'GroupConverted' and converted is null)"
)
"""Records of segments that lack `columns.LATER`, in which others tell something."""


def untold_groups(living: DataFrame) -> DataFrame:
    """Find the groups with records of which too few columns tell for the rules in SQL."""
    return living.where(_UNTOLD).select("grp").distinct()


def state_entries(living: DataFrame) -> DataFrame:
    """Compute the state of all groups that exist, one row a key, from their `living_rows`.

    `living` is read several times: the caller should persist it.
    """
    of_the_other_type = living.where("group_type = 'consumer'").select("grp").distinct()
    is_classic = of_the_other_type.isEmpty()  # as most logs are: half of the work is saved
    own = state.classic_entries(living) if is_classic else _of_both_types(living)
    return own.unionByName(state.offset_entries(living))


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
