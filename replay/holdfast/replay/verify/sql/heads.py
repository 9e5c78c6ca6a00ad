"""What a group is as a whole, by SQL, and what its members hold of it: times, phases, a leader.

The rules are `heads` and `versions` of `rules/groups`. Nothing here may import
`coordinator`; results have the form of `member_entries.entries_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import statement


def counted_entries(counted: DataFrame) -> DataFrame:
    """Find the last entry of each group, and the number of its records.

    `counted`: all rows of each group's life, those of the dedupe table as well.
    """
    return statement("groups/versions", counted=counted)


def head_entries(living: DataFrame, said: DataFrame, seats: DataFrame) -> DataFrame:
    """Tell of each group its state, its leader and its times; of members, how long to wait.

    `said`, `seats`: what was said of each member, and the members that are there (`sql.members`).
    """
    return statement("groups/heads", living=living, said=said, seats=seats)
