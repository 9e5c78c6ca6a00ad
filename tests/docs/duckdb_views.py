"""Translates the rules of the replay's SQL into DuckDB's, in the order in which they are computed.

`./dev docs` writes the result to replay/holdfast/replay/views/state.sql. The text of each rule is
the one that Spark runs; what Spark is told by Python, from which tables which rule reads, is said
here a second time. sqlglot translates; below is what it does not know.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final, NamedTuple

import sqlglot
from sqlglot import exp

from holdfast.replay.spark.log_tables import SQL_SCHEMA
from holdfast.replay.verify.sql.requests import DEFAULTS

SCHEMA: Final = "holdfast"
_BEATING: Final = "select grp from {0} where group_type = 'consumer'"
_WINDOW, _MOST = DEFAULTS.values()
MACROS: Final = """
-- What Spark's SQL has and DuckDB's has not.
create or replace macro get(list, n) as list[n + 1];
create or replace macro conv(digits, of_base, to_base) as ('0x' || digits)::bigint;
create or replace macro crc32(content) as xor(4294967295, list_reduce(
  list_prepend(4294967295::bigint,
    [('0x' || byte)::bigint for byte in regexp_extract_all(hex(content), '..')]),
  lambda crc, byte: xor(crc >> 8, list_reduce(
    list_prepend(xor(crc, byte) & 255, range(8)),
    lambda rest, n: case when rest & 1 = 1 then xor(rest >> 1, 3988292384) else rest >> 1 end))));
"""


class Step(NamedTuple):
    """A table of the script."""

    name: str
    text: str
    """A statement of `rules/`, or a query as it is."""
    tables: dict[str, str] = {}  # noqa: RUF012 - never changed
    """Which tables the statement reads, by the names it has for them."""
    kept: bool = True
    """False: a view, since its rows are many, and are read with few columns."""


def _of_type(name: str, rows: str, *, beating: bool) -> Step:
    """Select the rows of groups of the heartbeat protocol, or of the classic one."""
    within = "in" if beating else "not in"
    names = _BEATING.format(rows)
    return Step(name, f"select * from {rows} where grp {within} ({names})")  # noqa: S608 - ours


def _conversions() -> list[Step]:
    """Look at each phase of a group that changed its type as at a group of its own."""
    return [
        Step(
            "changing",
            "select * from told where grp in (select grp from told where type = 'GroupConverted')",
        ),
        Step("phases", "conversion/phases", {"living": "changing"}),
        Step("phase_members", "conversion/members", {"phases": "phases"}),
        Step("begun", "conversion/rows", {"phases": "phases", "members": "phase_members"}),
        Step("by_phase", "conversion/by_phase", {"rows": "begun"}),
        _of_type("phases_beating", "by_phase", beating=True),
        _of_type("phases_classic", "by_phase", beating=False),
        *_holdings("phase", "phases_beating"),
        Step("phase_grants", "classic/grants", {"living": "phases_classic"}),
        Step(
            "phase_tokens",
            "conversion/tokens",
            {"members": "phase_members", "held": "phase_held", "granted": "phase_grants"},
        ),
        Step("known", "conversion/rows", {"phases": "phases", "members": "phase_tokens"}),
        Step("present_phase", "conversion/last", {"rows": "known"}),
        Step(
            "typed",
            "select * from told where grp not in (select grp from changing)"
            " union all by name select * from present_phase",
        ),
    ]


def _holdings(of: str, living: str) -> list[Step]:
    """Find who owns what in groups of the heartbeat protocol."""
    return [
        Step(f"{of}_said", "consumer/said", {"living": living}),
        Step(f"{of}_present", "consumer/present", {"said": f"{of}_said"}),
        Step(f"{of}_seats", "consumer/seats", {"present": f"{of}_present"}),
        Step(
            f"{of}_held",
            "consumer/holdings",
            {"present": f"{of}_present", "seats": f"{of}_seats"},
        ),
    ]


def _groups() -> list[Step]:
    heads = {"living": "told", "said": "lines", "seats": "seats"}
    owned = {"said": "group_said", "seats": "group_seats", "held": "group_held"}
    return [
        Step("deleted", "groups/deletions", {"rows": "rows"}),
        Step("living", "groups/living", {"rows": "rows", "deleted": "deleted"}, kept=False),
        Step(
            "told",
            "select * from living"
            " where type not in ('OffsetsCommitted', 'OffsetsDeleted', 'RequestRecorded')",
        ),
        *_conversions(),
        _of_type("beating", "typed", beating=True),
        _of_type("classic", "typed", beating=False),
        *_holdings("group", "beating"),
        Step("consumer_entries", "consumer/entries", {"living": "beating", **owned}),
        Step("choices", "consumer/choices", {"living": "beating", "said": "group_said"}),
        Step("grants", "classic/grants", {"living": "classic"}),
        Step("classic_entries", "classic/entries", {"living": "classic", "grants": "grants"}),
        Step("lines", "members/lines", {"living": "told"}),
        Step("seats", "members/seats", {"said": "lines"}),
        Step("member_entries", "members/entries", {"seats": "seats", "kept_from": "kept_from"}),
        Step("heads", "groups/heads", heads),
        Step("versions", "groups/versions", {"counted": "living"}),
        Step("offsets", "groups/offsets", {"living": "living"}),
    ]


def _cluster() -> list[Step]:
    own = {"requests": "requests", "own": "own"}
    return [
        Step("own", "cluster/own", {"rows": "rows"}),
        Step("kept_from", "cluster/principals", {"own": "own"}),
        Step(
            "cluster_entries",
            "cluster/entries",
            {"rows": "rows", "own": "own", "kept_from": "kept_from"},
        ),
        Step("requests", "requests/served", {"rows": "rows"}),
        Step("told_bounds", "requests/bounds", own),
        Step(
            "bounds",
            f"select changed, coalesce(window_ms, {_WINDOW}) as window_ms,"  # noqa: S608 - ours
            f" coalesce(most, {_MOST}) as most, oldest, next_number, floor_ms from told_bounds",
        ),
        Step("numbered", "requests/numbers", {"requests": "requests", "bounds": "bounds"}),
        Step("steps", "requests/steps", {"numbered": "numbered", "bounds": "bounds"}),
        Step(
            "floor",
            "requests/floor",
            {"numbered": "numbered", "steps": "steps", "bounds": "bounds"},
        ),
        Step("totals", _TOTALS),
        Step("request_entries", "requests/entries", {"numbered": "numbered", "totals": "totals"}),
    ]


_TOTALS: Final = """
select coalesce(nullif(max(gone), 0), any_value(bounds.oldest)) as oldest,
  coalesce(max(number) + 1, any_value(bounds.next_number)) as next_number,
  greatest(any_value(bounds.floor_ms), case when bool_or(much) then any_value(floor.floor_ms) end)
    as floor_ms
from bounds cross join floor left join steps on true
"""
_STATE: Final = """-- The state, one row a key; without the dedupe table if its bounds have changed.
create or replace view state as
{parts}
union all
select grp, kind, key, value from request_entries where not (select changed from bounds);
"""
_PARTS: Final = (
    *("consumer_entries", "choices", "classic_entries", "member_entries", "heads", "versions"),
    *("offsets", "cluster_entries"),
)


def duckdb_views() -> str:
    """Return the script, without the view `written` of the records, which `views.script` makes."""
    steps = [_created(step) for step in (*_cluster(), *_groups())]
    parts = "\nunion all\n".join(f"select grp, kind, key, value from {name}" for name in _PARTS)  # noqa: S608 - ours
    head = "-- Made by `./dev docs` from the rules in replay/holdfast/replay/verify/sql/rules."
    return "\n".join([head, MACROS, _rows(), *steps, _STATE.format(parts=parts)])


def _rows() -> str:
    """Make the view of all records; those of older segments lack columns."""
    columns = sqlglot.transpile(
        f"create table lacking ({SQL_SCHEMA})", read="spark", write="duckdb"
    )
    lacking = columns[0].replace("CREATE TABLE", "create or replace table")
    rows = "select * from lacking union all by name select * from written"
    return f"{lacking};\ncreate or replace view rows as\n{rows};\n"


def _created(step: Step) -> str:
    kind = "table" if step.kept else "view"
    return f"create or replace {kind} {step.name} as\n{_query(step)};\n"


def _query(step: Step) -> str:
    if " " in step.text:
        return step.text.strip()
    text = _rule(step.text)
    for name, table in step.tables.items():
        text = text.replace(f"{{{name}}}", f"{SCHEMA}.{table}")
    left = re.findall(r"(?<!\{)\{(\w+)\}(?!\})", text)
    if left:
        raise ValueError(f"{step.text} reads {left}, of which step {step.name} says nothing")
    return translated(text.replace("{{", "{").replace("}}", "}"))


def _rule(name: str) -> str:
    return files("holdfast.replay.verify.sql").joinpath("rules", f"{name}.sql").read_text("utf-8")


def translated(text: str) -> str:
    """Return Spark's SQL as DuckDB's, with the same meaning."""
    tree = sqlglot.parse_one(text, read="spark").transform(_kept_nulls)
    return tree.sql(dialect="duckdb", pretty=True)


def _kept_nulls(node: exp.Expression) -> exp.Expression:
    """Let the greatest row win also where its value is null, as in Spark."""
    if isinstance(node, exp.ArgMax):
        return exp.Anonymous(this="arg_max_null", expressions=[node.this, node.expression])
    if isinstance(node, exp.Hint):
        return exp.Hint(expressions=[])
    return node
