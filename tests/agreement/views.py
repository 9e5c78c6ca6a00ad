"""The state by SQL at several places of a log: DuckDB runs the rules over the records up to each.

Knows tables alone; nothing of `evolve`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from holdfast.replay.read.node_logs import NodeLog
from holdfast.replay.views.script import rules, written

KEPT: Final = "create or replace table kept as select * exclude (payload, chain) from written"
"""Each statement of the rules looks for its records: in one table they are found sooner than in
thousands of files. No rule reads what is left out."""
UPTO: Final = "create or replace view written as select * from kept where idx <= {}"
DIFFERING: Final = """
create or replace temp table differing as
select
  coalesce(one.grp, two.grp) as grp, coalesce(one.kind, two.kind) as kind,
  coalesce(one.key, two.key) as key, one.value as by_sql, two.value as by_fold
from state as one full outer join folded as two
  on one.grp = two.grp and one.kind = two.kind and one.key = two.key
where one.value is distinct from two.value
"""


class Difference(NamedTuple):
    """A key of the state that has another value by SQL than by the fold; None: it has none."""

    group: str
    kind: str
    key: str
    by_sql: str | None
    by_fold: str | None

    def __str__(self) -> str:
        """Format it for people."""
        who = f"group {self.group!r}" if self.group else "what belongs to no group"
        return (
            f"{who}, {self.kind} {self.key!r}: {self.by_sql!r} by SQL, {self.by_fold!r} by evolve"
        )


class Views:
    """The records of a log in a database of DuckDB, in memory."""

    def __init__(self, log: NodeLog, folder: Path) -> None:
        """Read all records. Raises WrongUse for a log that has no views.

        `folder`: where DuckDB writes what memory does not hold.
        """
        self._base = duckdb.connect(config={"temp_directory": str(folder)})
        self._base.execute(written(log))
        self._base.execute(KEPT)

    def compute(self, index: int) -> int:
        """Compute the state behind an entry; return how many keys it has."""
        self._base.execute(UPTO.format(int(index)))
        self._base.execute(rules())
        return self._count("state")

    def differing(self, folded: pa.Table, most: int) -> tuple[int, list[Difference]]:
        """Compare the state that was computed last: how many keys differ, and the first of them."""
        self._base.register("folded", folded)
        self._base.execute(DIFFERING)
        first = "select * from differing order by kind, grp, key limit ?"
        rows = self._base.execute(first, [most]).fetchall()
        return self._count("differing"), [Difference(*row) for row in rows]

    def _count(self, table: str) -> int:
        ((count,),) = self._base.execute(f"select count(*) from {table}").fetchall()  # noqa: S608 - our own names
        return int(count)

    def close(self) -> None:
        """Forget all of it."""
        self._base.close()
