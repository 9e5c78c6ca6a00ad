"""`holdfast replay`: proves and tells what happened, with Spark, from the directories of nodes.

Spark comes with an extra of its own, so `holdfast.replay` is imported when a command runs.
`generate` makes such directories, and needs none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from holdfast.cli.ending import UNCHECKED, fail, print_json
from holdfast.cli.entry import INTERRUPTED
from holdfast.cli.names import group_name
from holdfast.cli.options import INT32_MAX, as_json
from holdfast.cli.places import partition_of, place_at
from holdfast.cli.render import epochs, explain, past_owners
from holdfast.cli.render.past_rebalances import as_message
from holdfast.cli.render.plain import plain
from holdfast.cli.render.speaking import say, say_lines
from holdfast.cli.render.times import now
from holdfast.cli.render.verification import reported
from holdfast.cli.replay_app import run
from holdfast.cli.replay_options import node_dirs, on_spark
from holdfast.cli.replay_tail import tail
from holdfast.coordinator.model.text import readable_json

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import Position


_file = click.Path(exists=True, dir_okay=False, path_type=Path)
shows_progress = click.option(
    "--progress/--no-progress",
    default=None,
    help="One line on standard error; default: if that is a terminal, and not with --json.",
)


def _terminal(progress: bool | None, as_json: bool = False) -> TextIO | None:  # noqa: FBT001, FBT002 - flags of a command
    """Return where to show how far a command has come; None: nowhere."""
    wanted = sys.stderr.isatty() and not as_json if progress is None else progress
    return sys.stderr if wanted else None


_PATHS: Final = ("packages", "script")


@click.group()
def replay() -> None:
    """Replay the event log with Spark: verify it, report on it, show a past state."""


@replay.command()
@node_dirs
@click.option("--witness", multiple=True, type=_file, help="What clients were acknowledged.")
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    type=_file,
    help="What nodes told of their logs earlier (`holdfast log anchor --json`); may be repeated.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Check only what is new since the last run with this folder, and leave it for the next.",
)
@click.option("--full", is_flag=True, help="Believe no checkpoint: read everything again.")
@click.option(
    "--lineage",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that gets run events in the form of OpenLineage.",
)
@shows_progress
@on_spark
@as_json
def verify(  # noqa: PLR0913 - one for each option
    folders: tuple[Path | str, ...],
    witness: tuple[Path, ...],
    anchors: tuple[Path, ...],
    checkpoint: Path | None,
    lineage: Path | None,
    spark: dict[str, Any],
    *,
    full: bool,
    progress: bool | None,
    as_json: bool,
) -> None:
    """Prove the logs of some nodes, or say what is wrong with them.

    Ends with 0 if the log is verified, with 1 if it is wrong, with 2 if what was given cannot be
    compared, or the extra is missing, and with 5 if it could not be checked: no Java, Spark lost, a
    full disk.
    """
    if full and checkpoint is None:
        raise click.UsageError("--full needs --checkpoint DIR: without it everything is read")
    given = {"witness": witness, "anchors": anchors, "checkpoint": checkpoint, "full": full}
    given |= {"lineage_file": lineage}
    shown = _terminal(progress, as_json)
    try:
        report = run(
            lambda app: app.verify(
                folders, **given, spark=app.SparkOptions.given(**spark), progress=shown
            ),
            UNCHECKED,
        )
    except KeyboardInterrupt:
        fail("interrupted, so nothing is proven: verify again", INTERRUPTED)
    if as_json:
        print_json(reported(report))
    else:
        say_lines(report.table().split("\n"))
    if report.findings:
        fail("the log is NOT verified; what was found is listed above")
    if not report.passed:
        fail(f"the log is NOT verified: {report.unfinished or 'no records were checked'}")


@replay.command()
@node_dirs
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder for it.")
@shows_progress
@on_spark
def report(
    folders: tuple[Path | str, ...], out: Path, spark: dict[str, Any], *, progress: bool | None
) -> None:
    """Write ownership.png, report.html and report.txt: who owned what, and what changed."""
    shown = _terminal(progress)
    written = run(
        lambda app: app.report(folders, out, spark=app.SparkOptions.given(**spark), progress=shown)
    )
    say_lines(written.text.read_text().split("\n"))
    say(f"written to {written.page}")


_group = click.option("--group", callback=group_name, help="Only this group.")


@replay.command()
@node_dirs
@click.option("--at", metavar="INDEX[.ORDINAL]|TIME", help="After this; default: the last record.")
@click.option("--log-time-ms", type=int, help="After all records up to this log time.")
@_group
@on_spark
@as_json
def state(
    folders: tuple[Path | str, ...],
    at: str | None,
    log_time_ms: int | None,
    group: str | None,
    spark: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print a past state as JSON: generations, members, who had what, committed offsets.

    TIME is log time in UTC, as in 2026-01-31T08:15:00.250Z.
    """
    del as_json  # a state is JSON in any case
    if at is not None and log_time_ms is not None:
        raise click.UsageError("--at and --log-time-ms both say when. Give one of them")
    place, time_ms = _place(at, "--at") if at is not None else (None, log_time_ms)
    when = {"at": place, "log_time_ms": time_ms}
    found = run(
        lambda app: app.plain_state(
            app.state(folders, **when, spark=app.SparkOptions.given(**spark)), group
        )
    )
    print_json(found)


@replay.command()
@node_dirs
@click.option("--from", "before", required=True, metavar="INDEX[.ORDINAL]|TIME", help="Before.")
@click.option("--to", "after", required=True, metavar="INDEX[.ORDINAL]|TIME", help="After.")
@_group
@on_spark
@as_json
def diff(
    folders: tuple[Path | str, ...],
    before: str,
    after: str,
    group: str | None,
    spark: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print what differs between two past states: a line for each thing, as a path in the state.

    TIME is log time in UTC, as in 2026-01-31T08:15:00.250Z.
    """
    one, two = _place(before, "--from"), _place(after, "--to")
    found = run(
        lambda app: app.difference(
            folders,
            app.Cut(*one),
            app.Cut(*two),
            group=group,
            spark=app.SparkOptions.given(**spark),
        )
    )
    if as_json:
        print_json({"from": found.before, "to": found.after, "differences": found.differing})
        return
    places = [f"index {x['applied_index']}, log time {x['log_time_ms']}" for x in found[:2]]
    say(f"from {places[0]} to {places[1]}: {len(found.differing)} differences")
    for each in found.differing:
        say(f"{each['path']}: {readable_json(each['from'])} -> {readable_json(each['to'])}")


@replay.command()
@node_dirs
@click.option("--group", callback=group_name, help="The group.")
@click.option("--generation", type=click.IntRange(1, INT32_MAX), help="Its generation, or epoch.")
@click.option("--partition", metavar="TOPIC/PARTITION", help="Who owned this one?")
@click.option("--at", metavar="INDEX[.ORDINAL]|TIME", help="After this; default: the last record.")
@as_json
def why(
    folders: tuple[Path | str, ...],
    group: str | None,
    generation: int | None,
    partition: str | None,
    at: str | None,
    *,
    as_json: bool,
) -> None:
    """Tell why a group had a generation, or an epoch; or who owned a partition, and since when.

    With --group and --generation: the cause, who caused it, what moved, as `holdfast group explain`
    does for the last ones. With --partition: its owner at a place of the log, with the token and
    the event that granted it, and who was before; --group is needed if several groups had it.
    TIME is log time in UTC, as in 2026-01-31T08:15:00.250Z. Needs no Java.
    """
    if partition is not None and generation is None:
        _tell_owner(folders, partition_of(partition), at, group, as_json=as_json)
    elif partition is None and at is None and group is not None and generation is not None:
        _tell_rebalance(folders, group, generation, as_json=as_json)
    else:
        raise click.UsageError(
            "give either --group and --generation, or --partition, with --at and --group if wanted"
        )


def _tell_rebalance(
    folders: tuple[Path | str, ...], group: str, generation: int, *, as_json: bool
) -> None:
    found = run(lambda app: app.why(folders, group, generation))
    told = as_message(found.rebalance)
    present = now(told.log_time_ms)
    if as_json:
        print_json(plain(told))
    elif found.is_epoch:
        say_lines(epochs.lines(told, found.newest, present))
    else:
        say_lines(explain.lines(told, present))


def _tell_owner(
    folders: tuple[Path | str, ...],
    partition: tuple[str, int],
    at: str | None,
    group: str | None,
    *,
    as_json: bool,
) -> None:
    place = _place(at, "--at") if at is not None else (None, None)
    found = run(lambda app: app.owner(folders, *partition, app.Cut(*place), group=group))
    if as_json:
        print_json(past_owners.plain(found))
    else:
        say_lines(past_owners.lines(found))


replay.add_command(tail)


@replay.command()
@click.option("--events", required=True, type=int, help="Records of the log, exactly so many.")
@click.option("--groups", type=int, default=100, show_default=True, help="Groups, at most.")
@click.option(
    "--skew",
    type=float,
    default=1.1,
    show_default=True,
    help="Exponent of Zipf's law, by which groups are chosen; 0: all alike.",
)
@click.option(
    "--giant",
    metavar="SHARE",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of all events that one group has; 0: none stands out so.",
)
@click.option(
    "--faults",
    metavar="A,B",
    default="bounces,expiries,failovers,deletions",
    show_default=True,
    help="What goes wrong; none: nothing.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same options, same bytes.")
@click.option("--nodes", type=int, default=3, show_default=True, help="Directories of nodes.")
@click.option(
    "--segment-events",
    type=int,
    default=100_000,
    show_default=True,
    help="A segment is sealed when it has so many records; memory grows with it.",
)
@click.option("--witness/--no-witness", default=True, help="Write what clients were told is done.")
@click.option(
    "--anchors",
    type=int,
    default=0,
    show_default=True,
    help="At how many places at most, chosen at random, anchors.jsonl tells a node's state.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder for it.")
@as_json
def generate(out: Path, faults: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - fields of a plan
    """Make the log of a cluster that never ran; needs no Spark.

    Groups of both protocols join, commit, fail and come back, by the coordinator's own rules. OUT
    gets a directory for each node, as verify reads it, witness.jsonl and the line anchor.json.
    """
    from holdfast.cli.offline import generated_history  # noqa: PLC0415 - needs the [server] extra

    generated_history.generate(out, faults, options, as_json=as_json)


@replay.command()
@node_dirs
def views(folders: tuple[Path, ...]) -> None:
    """Print the SQL by which DuckDB computes the whole state; needs no Java.

    `holdfast replay views --node-dir DIR > state.sql`, then `duckdb state.db -f state.sql`: the
    table holdfast.state has a row for each key, as verify compares them. Of several nodes, the one
    with the longest log is read.
    """
    say_lines(run(lambda app: app.views(folders)).splitlines())


@replay.command()
@click.option("--to", required=True, type=click.Path(path_type=Path), help="A folder for it.")
@as_json
def package(to: Path, *, as_json: bool) -> None:
    """Pack what workers on other machines need, and tell the commands that use it.

    Writes holdfast.zip, our packages, and holdfast_replay.py, a program for spark-submit. Needs no
    Java.
    """
    made = run(lambda app: app.package(to))
    if as_json:
        told = {key: each for key, each in made._asdict().items() if key not in _PATHS}
        print_json({"packages": str(made.packages), "script": str(made.script), **told})
        return
    say(f"{made.packages} has {made.files} files, all of Holdfast that is Python")
    say("other packages are compiled for a machine like the workers', so pack them on one, once:")
    say_lines([f"    {line}" for line in made.environment])
    say("then one of these; the folders must be there, under the same path, on every worker:")
    say_lines([f"    {made.submit}", f"    {made.direct}"])


def _place(text: str, option: str) -> tuple[Position | None, int | None]:
    from holdfast.coordinator.model.ids import Position  # noqa: PLC0415 - for this command alone

    place, log_time_ms = place_at(text, option)
    return (Position(*place) if place else None), log_time_ms
