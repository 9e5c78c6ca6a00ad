"""What members of groups of both types say of themselves, by SQL, whatever their group is called.

The rules are in `rules/members`. Nothing here may import `coordinator`; results
have the form of `member_entries.entries_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import computed, statement


def lines(living: DataFrame) -> DataFrame:
    """Return what was said of each seat, in all its lines, with what was known of it before.

    This is computed at once, since it is read several times.
    """
    return computed(statement("members/lines", living=living))


def seats(said: DataFrame) -> DataFrame:
    """Find the members that are there, with what each said last; `said`: of `lines`."""
    return statement("members/seats", said=said)


def member_entries(members: DataFrame, kept_from: DataFrame) -> DataFrame:
    """Tell of each member what it said; `kept_from`: from where on principals are kept."""
    return statement("members/entries", seats=members, kept_from=kept_from)
