"""The rules as SQL text: reads a statement of `rules/`, and runs it over tables that are given.

A row is `at` a place there: one number of 64 bits, which grows with the log. It is the index of its
entry (`at div 16777216`), the ordinal within that, and eight numbers more, for rows that are made
of one record: one number keeps Spark's aggregates on hashes, of a pair it would have to sort.
Ordinals below 0 are of rows that stand for a checkpoint. Knows no rule; imports no `coordinator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from pyspark.sql import DataFrame

_GROUP: Final = "grp"


def statement(name: str, **tables: DataFrame) -> DataFrame:
    """Return what a statement of `rules/` selects from these tables, by the names it has there.

    Spark gives each a view for the time of this call. With a view it drops what is persisted of the
    very same plan; hence a filter, which is gone when the plan is made.
    """
    return _selected(_text(name), tables)


def computed(rows: DataFrame) -> DataFrame:
    """Compute at once what is read several times; rows that were together by group are known to be.

    The optimizer gives the columns of a statement other ids than the analyser has given them; by
    these Spark would not find again what the rows are distributed by. A column under another name
    keeps its id.
    """
    kept = f"_{_GROUP}"
    named = rows.withColumnRenamed(_GROUP, kept).localCheckpoint()
    return named.withColumnRenamed(kept, _GROUP)


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath("rules", f"{name}.sql").read_text("utf-8")


def together(*parts: DataFrame) -> DataFrame:
    """Return the entries of several tables, joined at once: each step would analyse all anew."""
    tables = {f"part_{nth}": part for nth, part in enumerate(parts)}
    text = " union all ".join(f"select grp, kind, key, value from {{{name}}}" for name in tables)  # noqa: S608 - our own names
    return _selected(text, tables)


def _selected(text: str, tables: Mapping[str, DataFrame]) -> DataFrame:
    spark = next(iter(tables.values())).sparkSession
    views = {name: table.where("true") for name, table in tables.items()}
    selected = spark.sql(text, **views)  # type: ignore[arg-type]  # stubs know fewer kinds
    _hold(selected, views)
    return selected


def _hold(selected: DataFrame, views: Mapping[str, DataFrame]) -> None:
    """Let the tables live as long as what is selected from them, by Spark Connect as well.

    There a statement comes back as a message that names computed tables by their ids, and a server
    drops a computed table as soon as the client has no object for it.
    """
    # Rows that are derived from these have the plan, too. Asked as an attribute, one that is not
    # there is looked for among the columns, and for that the JVM resolves them all.
    plan = vars(selected).get("_plan")
    if plan is not None:
        plan.selected_from = views
