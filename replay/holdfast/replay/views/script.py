"""Make the script by which DuckDB computes the whole state from the files of one node's log.

The rules in it are those that Spark runs (`verify.sql`), translated as the documentation is
generated (`./dev docs`). Knows files and names, no rule and no DuckDB: whoever runs it brings that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.text import readable
from holdfast.replay.findings import WrongUse
from holdfast.replay.read.node_logs import NodeLog

SCHEMA: Final = "holdfast"
"""The schema of all tables that the script makes; `state` is the last."""
RULES: Final = "state.sql"
_PATTERN: Final = re.compile(r"[*?\[]")
"""What means something in a pattern of paths."""


def script(log: NodeLog) -> str:
    """Return the script for a log, to be run as it is: `duckdb FILE -f SCRIPT`.

    Raises WrongUse if there is nothing to read, for a name that no script can hold, and for a log
    that begins behind a cut (S24): what was before it is in a checkpoint, which is no table.
    """
    head = f"-- The state of {readable(log.node)} at {log.last}, in the table {SCHEMA}.state."
    return "\n".join([head, written(log), "", rules()])


def rules() -> str:
    """Return the part that computes the state of whatever records the view `written` has."""
    return files(__package__).joinpath(RULES).read_text("utf-8")


def written(log: NodeLog) -> str:
    """Return the part that makes the schema, and the view of all records, `written`.

    What an exported tail repeats is left out. Raises WrongUse as `script` does.
    """
    if not log.segments:
        raise WrongUse(f"node {log.node} has no segment: there is nothing to compute a state from")
    if log.begins.cut:
        raise WrongUse(
            f"the log of {log.node} begins behind {log.begins}: what was before was cut off and is "
            "in a checkpoint, which DuckDB cannot read. Give a node with the whole history"
        )
    place = f"create schema if not exists {SCHEMA};\nuse {SCHEMA};\n"
    return f"{place}\n{_rows(log)}"


def _rows(log: NodeLog) -> str:
    by_place: dict[Position, list[str]] = {}
    for segment in log.segments:
        by_place.setdefault(segment.after, []).extend(map(str, segment.files))
    parts = [_files(paths, after) for after, paths in sorted(by_place.items())]
    return "create or replace view written as\n" + "\nunion all by name\n".join(parts) + ";"


def _files(paths: Sequence[str], after: Position) -> str:
    """Select the records of files that lie behind a position; folders' names tell nothing."""
    names = ", ".join(map(_quoted, paths))
    source = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
    return f"select * from {source}\nwhere (idx, ordinal) > ({after.index}, {after.ordinal})"  # noqa: S608 - quoted


def _quoted(path: str) -> str:
    """Return a path by which DuckDB finds this file alone: to DuckDB it is a pattern."""
    if not path.isprintable():
        raise WrongUse(f"{path!r} cannot be written into a script: call the directory otherwise")
    literal = _PATTERN.sub(r"[\g<0>]", path)
    return "'" + literal.replace("'", "''") + "'"
