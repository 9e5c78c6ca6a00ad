"""The state as "who wrote a key last": a second implementation, independent of `evolve`.

The coordinator's fold cannot find its own mistakes. The statements of `rules/` state the same rules
over the typed columns: members, instances, generation, assignments with the entry that granted
them, offsets; `sql.consumer_state` does so for groups of the heartbeat protocol. Nothing here may
import `coordinator`; it would no longer be independent.

All results have the columns `grp`, `kind`, `key`, `value`, in the form of `group_fold.entries_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import statement


def living_rows(rows: DataFrame) -> DataFrame:
    """Select the records of each group's present life, each `at` its place.

    The last deletions are found at once: who reads these rows several times reads them once.
    """
    deleted = statement("groups/deletions", rows=rows).localCheckpoint()
    return statement("groups/living", rows=rows, deleted=deleted)


def classic_entries(living: DataFrame) -> DataFrame:
    """Compute the state of these groups without their offsets, one row a key.

    `living` is read several times: the caller should persist it.
    """
    return statement("classic/entries", living=living, grants=grants(living))


def grants(living: DataFrame) -> DataFrame:
    """Find what each member holds, and the index of the entry that granted it, if that is known."""
    return statement("classic/grants", living=living)


def offset_entries(living: DataFrame) -> DataFrame:
    """Find the last offset of each partition, and what was kept beside it, unless it is deleted."""
    return statement("groups/offsets", living=living)
