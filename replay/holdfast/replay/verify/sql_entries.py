"""The state of all groups by SQL: each by the rules of its type.

Knows the types by their names; imports no `coordinator`, like what it puts together.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from holdfast.replay.verify.sql_consumer_state import consumer_entries
from holdfast.replay.verify.sql_state import classic_entries, offset_entries


def converted_groups(living: DataFrame) -> DataFrame:
    """Find the groups that have changed their type: the rules in SQL do not follow these.

    What its members own then, only the payload of the event tells.
    """
    return living.where("type = 'GroupConverted'").select("grp").distinct()


def state_entries(living: DataFrame) -> DataFrame:
    """Compute the state of all groups that exist, one row a key, from their `living_rows`.

    `living` is read several times: the caller should persist it.
    """
    of_the_other_type = living.where("group_type = 'consumer'").select("grp").distinct()
    if of_the_other_type.isEmpty():  # as most logs are: half of the work is saved
        return classic_entries(living).unionByName(offset_entries(living))
    others = f.broadcast(of_the_other_type)
    classic = classic_entries(living.join(others, "grp", "left_anti"))
    consumer = consumer_entries(living.join(others, "grp", "left_semi"))
    return classic.unionByName(consumer).unionByName(offset_entries(living))
