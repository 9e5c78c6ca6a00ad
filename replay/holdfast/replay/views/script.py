"""Make the script by which DuckDB computes the whole state from the files of one node's log.

The rules in it are those that Spark runs (`verify.sql`), translated as the documentation is
generated (`./dev docs`). Knows files and names, no rule and no DuckDB: whoever runs it brings that.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import WrongUse
from holdfast.replay.read.node_logs import NodeLog

SCHEMA: Final = "holdfast"
"""The schema of all tables that the script makes; `state` is the last."""
RULES: Final = "state.sql"


def script(log: NodeLog) -> str:
    """Return the script for a log, to be run as it is: `duckdb FILE -f SCRIPT`.

    Raises WrongUse if there is nothing to read, or if the log begins behind a cut (S24): what was
    before it is in a checkpoint, which is no table.
    """
    if not log.segments:
        raise WrongUse(f"node {log.node} has no segment: there is nothing to compute a state from")
    if log.begins.cut:
        raise WrongUse(
            f"the log of {log.node} begins behind {log.begins}: what was before was cut off and is "
            "in a checkpoint, which DuckDB cannot read. Give a node with the whole history"
        )
    head = f"-- The state of {log.node} at {log.last}, in the table {SCHEMA}.state."
    place = f"create schema if not exists {SCHEMA};\nuse {SCHEMA};\n"
    return "\n".join([head, place, _rows(log), "", _rules()])


def _rules() -> str:
    return files(__package__).joinpath(RULES).read_text("utf-8")


def _rows(log: NodeLog) -> str:
    """Make the view of all records; what an exported tail repeats is left out."""
    by_place: dict[Position, list[str]] = {}
    for segment in log.segments:
        by_place.setdefault(segment.after, []).extend(map(str, segment.files))
    parts = [
        f"select * from read_parquet([{', '.join(map(_quoted, paths))}], union_by_name = true)\n"  # noqa: S608 - quoted
        f"where (idx, ordinal) > ({after.index}, {after.ordinal})"
        for after, paths in sorted(by_place.items())
    ]
    return "create or replace view written as\n" + "\nunion all by name\n".join(parts) + ";"


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"
