"""The state as DuckDB computes it from the files of a log is the one that evolve has (S3)."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from docs.duckdb_views import duckdb_views
from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import WrongUse
from holdfast.replay.generate.plan import FAULTS, Plan
from holdfast.replay.generate.write import write_history
from holdfast.replay.read.log_rows import GROUP, Beginning, Cut, ResultRow
from holdfast.replay.read.node_logs import NodeLog, buckets_of, node_log, sources_by_segment
from holdfast.replay.verify.cluster_fold import fold_cluster
from holdfast.replay.verify.group_fold import fold_bucket
from holdfast.replay.views.script import script
from holdfast.storage.segments.segment_reader import CLUSTER_FILE

EVENTS = 5_000
KINDS = {
    *("member", "instance", "grant", "offset", "commit", "owned", "target", "progress", "head"),
    *("released", "leader", "predecessor", "cluster", "setting", "topic", "request"),
}
"""Of all parts of the script."""
DIFFERING = """
select coalesce(one.grp, two.grp), coalesce(one.kind, two.kind), coalesce(one.key, two.key),
  one.value, two.value
from holdfast.state as one full outer join evolved as two
  on one.grp = two.grp and one.kind = two.kind and one.key = two.key
where one.value is distinct from two.value
order by 2, 1, 3
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> NodeLog:
    """A made-up log of groups of both protocols, in several segments, in a folder with a quote."""
    folder = tmp_path_factory.mktemp("history") / "it's [1] *" / "type=full" / "made"
    folder.parent.mkdir(parents=True)
    plan = Plan(EVENTS, groups=40, faults=tuple(FAULTS), seed=5, nodes=1, segment_events=2_000)
    write_history(plan, folder, lambda *_: None)
    return node_log(folder / "node-1")


def evolved(log: NodeLog) -> pa.Table:
    """The state by evolve, in the form of `group_fold.entries_of`."""
    buckets = buckets_of(log)
    own = buckets.get(CLUSTER_FILE)
    cluster = own.sources if own else ()
    rows = [
        row for bucket in buckets.values() for row in fold_bucket(bucket, cluster, Cut(), (), ())
    ]
    rows += fold_cluster(sources_by_segment(log), Cut(), log.begins, (), ())
    told = [row for row in map(ResultRow._make, rows) if row.tag == GROUP]
    columns = zip(*((row.grp, *entry) for row in told for entry in row.entries or ()), strict=True)
    return pa.table(dict(zip(("grp", "kind", "key", "value"), map(list, columns), strict=True)))


@pytest.fixture
def base(log: NodeLog) -> duckdb.DuckDBPyConnection:
    base = duckdb.connect()
    base.execute(script(log))
    return base


def test_the_state_by_duckdb_is_the_one_by_evolve(
    log: NodeLog, base: duckdb.DuckDBPyConnection
) -> None:
    base.register("evolved", evolved(log))
    assert base.execute(DIFFERING).fetchall() == []
    kinds = {kind for (kind,) in base.execute("select kind from holdfast.state").fetchall()}
    assert kinds >= KINDS


def test_a_record_that_is_not_there_changes_the_state(
    log: NodeLog, base: duckdb.DuckDBPyConnection
) -> None:
    """The comparison can fail: without the last commits, offsets are others."""
    every, rest = (
        "select * from written;",
        "select * from written where type <> 'OffsetsCommitted';",
    )
    base.execute(script(log).replace(every, rest))
    base.register("evolved", evolved(log))
    assert {row[1] for row in base.execute(DIFFERING).fetchall()} >= {"offset"}


def test_a_log_that_begins_behind_a_cut_is_refused(log: NodeLog) -> None:
    """S24: what was before it is in a checkpoint."""
    with pytest.raises(WrongUse, match=r"begins behind .*7\.0"):
        script(log._replace(begins=Beginning(Position(7, 0), "checkpoint", b"d", 1)))


def test_a_name_from_a_manifest_stays_in_its_comment(log: NodeLog) -> None:
    """Else whoever makes an archive has DuckDB do what he likes."""
    text = script(log._replace(node="n\n.shell true"))
    assert text.splitlines()[0].startswith("-- The state of n\\n.shell true at ")


def test_a_directory_that_no_script_can_name_is_refused(log: NodeLog) -> None:
    odd = [each._replace(folder=Path("a\nb")) for each in log.segments]
    with pytest.raises(WrongUse, match="call the directory otherwise"):
        script(log._replace(segments=tuple(odd)))


def test_a_log_without_a_segment_is_refused(log: NodeLog) -> None:
    with pytest.raises(WrongUse, match="no segment"):
        script(log._replace(segments=()))


def test_the_rules_are_those_that_spark_runs() -> None:
    """`./dev docs` translates them; a rule that was changed must be translated anew."""
    path = Path(str(script.__globals__["__file__"])).with_name("state.sql")
    assert path.read_text() == duckdb_views()
