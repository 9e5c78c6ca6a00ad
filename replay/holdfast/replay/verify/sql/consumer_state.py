"""The state of groups of the heartbeat protocol, by SQL: a part of `sql.state`, as independent.

It is written from the rules, not from `evolve`, in `rules/consumer`. What a seat is to own,
and owns, is what was said of it last. Who is to compute the target is told by `sql.choices`.
Nothing here may import `coordinator`; results have the form of `consumer_entries.entries_of`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from holdfast.replay.verify.sql.statements import computed, statement


def consumer_entries(living: DataFrame, said: DataFrame) -> DataFrame:
    """Compute the state of these groups without their offsets, one row a key.

    `said`: what events say of members, as `told` finds it.
    """
    seats, held = _seats_and_holdings(said)
    return statement("consumer/entries", living=living, said=said, seats=seats, held=held)


def holdings(living: DataFrame) -> DataFrame:
    """Find who owns each partition, by what grant: in which seat, since which epoch and entry.

    What a group brings from another type keeps the token that it had there: no value of `granted`,
    if that is not known.
    """
    return _seats_and_holdings(told(living))[1]


def told(living: DataFrame) -> DataFrame:
    """Find what each event says of each member, and in which seat that member is.

    This is computed at once, since it is read many times.
    """
    return computed(statement("consumer/said", living=living))


def _seats_and_holdings(said: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Find the members that are there, and what they own.

    What was said of them is computed at once, as `told` is.
    """
    present = computed(statement("consumer/present", said=said))
    seats = statement("consumer/seats", present=present)
    return seats, statement("consumer/holdings", present=present, seats=seats)
