"""Entry points: verify logs, make a state, write a report; for `holdfast replay` and programs.

Each function takes the directories of nodes, or the URLs to which these were published, and starts
a Spark session of its own unless it is given one, or `SparkOptions` that say where it is to run.
Raises `SparkMissing` at import, `NoJava` where Spark cannot start, `CannotCheck` where it, or a
store, fails, FileNotFoundError and `WrongUse` (a ValueError) for directories that are not those of
nodes; faults *in* a log are reported, never raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.state import State
from holdfast.replay.analyse.analysis import Frozen, Mark
from holdfast.replay.analyse.owner import Owned, owner_of
from holdfast.replay.analyse.queries import analyse
from holdfast.replay.analyse.why import Explained, rebalance_to
from holdfast.replay.checkpoint.folder import opened as opened_folder
from holdfast.replay.checkpoint.run import CheckpointRun
from holdfast.replay.findings import CannotCheck, Check, Report, WrongUse, log_time_of
from holdfast.replay.lineage import lineage
from holdfast.replay.progress import line
from holdfast.replay.read.anchor_files import Anchor, Told, read_anchors, refuse_others
from holdfast.replay.read.independence import check_independent
from holdfast.replay.read.log_rows import Cut
from holdfast.replay.read.node_logs import NodeLog, node_log, node_logs
from holdfast.replay.read.own_states import own_states
from holdfast.replay.read.places import refuse_outside
from holdfast.replay.read.url_path import Folder, archive_path
from holdfast.replay.report.plain_state import Difference, compare_states, plain_state
from holdfast.replay.spark.failures import SPARK_FAILURES, surroundings
from holdfast.replay.spark.java import NoJava
from holdfast.replay.spark.options import SparkOptions
from holdfast.replay.spark.package import Packed, package
from holdfast.replay.spark.session import opened, session
from holdfast.replay.spark.task_counts import watched
from holdfast.replay.spark.tasks import running_here
from holdfast.replay.stream.endings import Unreached
from holdfast.replay.stream.followed import Segments, ServedLog, refuse_others_than_nodes
from holdfast.replay.stream.served import Nodes
from holdfast.replay.stream.tail import BATCH_ROWS_MAX, EVERY_S, follow
from holdfast.replay.stream.told_batches import Batch
from holdfast.replay.stream.watch import Limits
from holdfast.replay.verify.acknowledged import check_witnesses
from holdfast.replay.verify.compare import Expected
from holdfast.replay.verify.fold_job import fold
from holdfast.replay.verify.node_comparison import EXPORT, nothing_sealed
from holdfast.replay.verify.verification import SHARES, verify_logs
from holdfast.replay.views.script import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.replay.report.writer import Written

__all__ = [
    "Anchor",
    "Batch",
    "CannotCheck",
    "Cut",
    "Difference",
    "Expected",
    "Explained",
    "Frozen",
    "Limits",
    "Mark",
    "NoJava",
    "Nodes",
    "Owned",
    "Packed",
    "Report",
    "SparkOptions",
    "Unreached",
    "WrongUse",
    "difference",
    "owner",
    "package",
    "plain_state",
    "report",
    "session",
    "state",
    "tail",
    "verify",
    "views",
    "why",
]

STARTS: Final = "starting Spark"
READS: Final = "reading the log"
WRITES: Final = "writing the report"
"""Steps, as a progress line names them; those of a verification are its checks."""

QUICK_RECORDS_MAX: Final = 300_000
"""Up to so many stored records, of all nodes, Spark generates no code for its queries: to compile
it costs more than it saves. To verify 60,000 took 53 s of processor time, and 126 s with it."""

HERE_RECORDS_MAX: Final = 30_000
"""Up to so many, no worker is started: it would take longer than the work."""


def verify(  # noqa: PLR0913 - all but the first by name, and none is needed
    node_dirs: Sequence[Folder | str],
    *,
    expected_digest: Expected | None = None,
    witness: Sequence[Path] = (),
    anchors: Sequence[Path | Anchor] = (),
    checkpoint: Path | None = None,
    full: bool = False,
    lineage_file: Path | None = None,
    spark: SparkSession | SparkOptions | None = None,
    progress: TextIO | None = None,
) -> Report:
    """Verify the logs of some nodes; `Report.passed` and `.table()` give the outcome.

    `node_dirs`: data directories of nodes, or folders of segments, or URLs to which either was
    published; the more of them, the more is compared. `expected_digest`: what a live node
    published. `witness`: files of what was acknowledged to clients. `anchors`: what nodes told of
    their logs earlier, or files of it; the state in the directory of a stopped node is compared
    without being asked for. `checkpoint`: a folder in which a run that finds nothing leaves what it
    has verified, so that the next one reads only what is new; with `full` it reads all, and leaves
    a new one. `progress`: a terminal, for one line that says how far it has come. `lineage_file`
    gets run events in the form of OpenLineage. Raises ValueError for an anchor of another cluster,
    or a file that holds none, and for a checkpoint of other logs.
    """
    folders = _folders(node_dirs)
    logs = node_logs(folders)
    witness = [each.absolute() for each in witness]
    check_independent(folders, logs)
    check_witnesses(witness)
    told = _told(logs, folders, anchors)
    with ExitStack() as held:
        ended = held.enter_context(lineage(lineage_file, logs, node_dirs))
        if not any(log.segments for log in logs):
            return ended(Report((nothing_sealed(logs),), notes=(EXPORT,)))
        run = None
        if checkpoint is not None:
            folder = held.enter_context(opened_folder(checkpoint.absolute()))
            run = CheckpointRun(folder, logs, full=full)
            logs = run.logs
            if run.is_all and not (expected_digest or witness or told.anchors or told.findings):
                return ended(replace(run.unchanged(), notes=(*run.notes, *told.notes)))
        try:
            with line(progress, SHARES) as steps:
                steps.step(STARTS)
                with _session(spark, _stored(logs)) as running:
                    made = verify_logs(running, logs, expected_digest, witness, told, run, steps)
                    return ended(made)
        except (CannotCheck, NoJava) as error:
            return ended(_unfinished(logs, run, error))


def _unfinished(
    logs: Sequence[NodeLog], run: CheckpointRun | None, error: CannotCheck | NoJava
) -> Report:
    """Report what was found before Spark was asked for anything. Raises `error` if nothing was."""
    found = tuple(finding for log in logs for finding in log.findings)
    checks = [Check("manifests", f"{len(logs)} nodes", found), run.check() if run else None]
    made = tuple(check for check in checks if check is not None)
    if not any(check.findings for check in made):
        raise error
    return Report(made, unfinished=str(error))


def state(
    node_dirs: Sequence[Folder | str],
    *,
    at: Position | None = None,
    log_time_ms: int | None = None,
    spark: SparkSession | SparkOptions | None = None,
) -> State:
    """Compute the whole state after the record at `at`, or after all records up to a log time (S8).

    Without either: after the last record. Made from the longest log of those given. Raises
    ValueError if there is none, or none that reaches so far back (S24) or so far ahead.
    """
    cut = Cut(at, log_time_ms)
    log = _longest(_reaching(_logs(node_dirs), cut))
    refuse_outside(log, cut)
    with _session(spark, _stored([log])) as running:
        folded = fold(running, log, cut, records=True)
        try:
            return folded.state()
        finally:
            folded.release()


def difference(
    node_dirs: Sequence[Folder | str],
    before: Cut,
    after: Cut,
    *,
    group: str | None = None,
    spark: SparkSession | SparkOptions | None = None,
) -> Difference:
    """Compare the states at two places, or one group of them, as `plain_state` tells them.

    Raises ValueError as `state` does, and for a group that is at neither place.
    """
    folders = _folders(node_dirs)
    with _session(spark, _stored(node_logs(folders))) as running:
        one, two = (
            state(folders, at=cut.last, log_time_ms=cut.log_time_ms, spark=running)
            for cut in (before, after)
        )
    return compare_states(one, two, group)


def why(node_dirs: Sequence[Folder | str], group: str, generation: int) -> Explained:
    """Return why a group has a generation, or an epoch: its cause, who caused it, what moved.

    Read from the longest log of those given, without Spark. Raises ValueError if it does not tell.
    """
    return rebalance_to(_longest(_logs(node_dirs)), group, generation)


def owner(
    node_dirs: Sequence[Folder | str],
    topic: str,
    partition: int,
    at: Cut | None = None,
    *,
    group: str | None = None,
) -> Owned:
    """Return who owned a partition at a place of the log, or at its end, and since when.

    `group` is needed if several groups own the partition there. Read from the longest log of those
    given, without Spark. Raises ValueError as `state` does, and if the log does not tell.
    """
    cut = at or Cut()
    log = _longest(_reaching(_logs(node_dirs), cut))
    refuse_outside(log, cut)
    return owner_of(log, TopicPartition(topic, partition), cut, group)


def tail(
    followed: Path | Nodes,
    out: Path,
    *,
    limits: Limits | None = None,
    once: bool = False,
    every_s: float = EVERY_S,
    rows_max: int = BATCH_ROWS_MAX,
    told: Callable[[Batch], None] = lambda _: None,
    spark: SparkSession | SparkOptions | None = None,
) -> None:
    """Follow a log: each record once to Parquet, and alerts beside it.

    `followed`: the directory of a node, whose sealed segments are read, or `Nodes` of a running
    cluster, which serve all that is committed. Ends when interrupted; `once`: when all that is
    there now is done. `told` hears of each batch. A call that was killed is made again with the
    same `out`. Raises ValueError if the log cannot be followed any further, with the reason;
    WrongUse for an `out` that is not that of a tail; Unreached if no node serves the log.
    """
    if isinstance(followed, Path):
        followed = followed.absolute()  # a Spark Connect server begins somewhere else
        refuse_others_than_nodes(followed)
    what = ServedLog.of(followed) if isinstance(followed, Nodes) else Segments(followed)
    stored = what.length if isinstance(what, ServedLog) else _stored([node_log(what.folder)])
    with _session(spark, stored) as running:
        follow(
            running,
            what,
            out.absolute(),
            limits=limits or Limits(),
            once=once,
            every_s=every_s,
            rows_max=rows_max,
            told=told,
        )


def report(
    node_dirs: Sequence[Folder | str],
    out: Path,
    *,
    marks: Sequence[Mark] = (),
    frozen: Sequence[Frozen] = (),
    spark: SparkSession | SparkOptions | None = None,
    progress: TextIO | None = None,
) -> Written:
    """Write `ownership.png`, `report.html` and `report.txt` to the folder `out`.

    `marks` are events from outside the log, such as the kill of a node, drawn as vertical lines.
    `frozen`: owners that did not run, and when. They are hatched; the log shows them as owners.
    Made from the longest log of those given. `progress`: as for `verify`. Raises ValueError if
    there is none, OSError if `out` cannot be written.
    """
    from holdfast.replay.report.writer import write  # noqa: PLC0415 - a second, to load what draws

    log = _longest(_logs(node_dirs))
    with line(progress, {READS: 1.0}) as steps:
        steps.step(STARTS)
        with _session(spark, _stored([log])) as running:
            steps.step(READS)
            with watched(running, steps):
                analysis = analyse(running, log, marks, frozen)
        steps.step(WRITES)
        return write(analysis, out)


def _told(
    logs: Sequence[NodeLog], folders: Sequence[Folder], given: Sequence[Path | Anchor]
) -> Told:
    """Read what the logs are compared with: anchors, and the states on the nodes' own disks."""
    clusters = {segment.manifest.cluster_id for log in logs for segment in log.segments}
    anchors = read_anchors(given)
    refuse_others(anchors, clusters)
    names = [log.node for log in logs if log.segments]
    places = [folder for log, folder in zip(logs, folders, strict=True) if log.segments]
    here = [(name, at) for name, at in zip(names, places, strict=True) if isinstance(at, Path)]
    own = own_states(here, clusters)
    return own._replace(anchors=[*anchors, *own.anchors])


def views(node_dirs: Sequence[Folder | str]) -> str:
    """Return the SQL by which DuckDB computes the state at the end of the longest whole log.

    Needs no Spark. Raises WrongUse for a log that begins behind a cut, or has no segment.
    """
    logs = node_logs(map(archive_path, node_dirs))  # its paths are for whoever runs it where it is
    whole = [log for log in logs if log.segments and not log.begins.cut]
    return script(max(whole or logs, key=lambda log: log.last))


def _logs(node_dirs: Sequence[Folder | str]) -> list[NodeLog]:
    return node_logs(_folders(node_dirs))


def _folders(node_dirs: Sequence[Folder | str]) -> list[Folder]:
    """Return what stands for the addresses; a path is whole, for workers begin somewhere else."""
    found = map(archive_path, node_dirs)
    return [each.absolute() if isinstance(each, Path) else each for each in found]


@contextmanager
def _session(spark: SparkSession | SparkOptions | None, stored: int) -> Iterator[SparkSession]:
    """Use a session that is given, or start one that fits so many stored records.

    What Spark fails at then is told in one sentence.
    """
    with ExitStack() as started:
        if spark is None or isinstance(spark, SparkOptions):
            with surroundings():
                options = spark or SparkOptions()
                spark = started.enter_context(opened(options, quick=stored <= QUICK_RECORDS_MAX))
                if options.is_one_jvm and stored <= HERE_RECORDS_MAX:
                    started.enter_context(running_here(spark))
        with surroundings(SPARK_FAILURES):
            yield spark


def _stored(logs: Sequence[NodeLog]) -> int:
    return sum(segment.manifest.count for log in logs for segment in log.segments)


def _reaching(logs: Sequence[NodeLog], cut: Cut) -> list[NodeLog]:
    """Return the logs that begin before the place at which a fold is to end."""
    found = [log for log in logs if cut.reaches(log.begins)]
    if logs and not found:
        earliest = min(logs, key=lambda log: log.begins.last)
        raise ValueError(
            f"the log begins at {earliest.begins}, log time "
            f"{log_time_of(earliest.begins.log_time_ms)}: "
            "retention has deleted what lies before it. Ask for a later place, or give the "
            "segments of a backup that was taken before"
        )
    return found


def _longest(logs: Sequence[NodeLog]) -> NodeLog:
    readable = [log for log in logs if log.segments]
    if not readable:
        raise ValueError(
            "none of these directories holds a readable segment. `holdfast log seal` makes the "
            "nodes write one; `holdfast log export` writes one from a stopped node"
        )
    early = sorted(readable, key=lambda log: log.begins.last)
    return max(early, key=lambda log: log.last)
