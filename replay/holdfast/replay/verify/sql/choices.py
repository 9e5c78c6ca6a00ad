"""Who is to compute a group's target, by SQL: a part of `sql.consumer_state`, as independent.

It is written from the rules of KIP-848, in `rules/consumer/choices.sql`. Nothing here may import
`coordinator`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import statement


def choice_entries(living: DataFrame, told: DataFrame) -> DataFrame:
    """Find who is to compute, who is late, and whose assignor made the target; one row a key.

    `told`: what events say of members, as `sql.consumer_state` finds it.
    """
    return statement("consumer/choices", living=living, said=told)
