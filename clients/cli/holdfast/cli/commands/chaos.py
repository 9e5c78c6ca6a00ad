"""`holdfast chaos`: break a staging cluster on purpose, and judge whether it held.

The work is `holdfast.chaos`, a client program of its own, which is imported when a command runs.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli.ending import UNREACHED, fail, print_json
from holdfast.cli.options import table
from holdfast.cli.render.speaking import say, say_lines

WARNING = (
    "This kills, freezes and damages the nodes of {where} on purpose, one fault after another. A "
    "defect that it finds may cost the cluster its data. Go on?"
)

REFUSED: Final = click.UsageError.exit_code
INTERRUPTED: Final = 128 + signal.SIGINT
"""The code that a shell reports for a program that SIGINT ended."""


@click.command()
@click.option(
    "--cluster",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="A cluster that `holdfast cluster start --dir DIR` runs; default: one made for the run.",
)
@click.option("--minutes", type=click.FloatRange(min=0), default=5.0, show_default=True)
@click.option(
    "--rounds", type=click.IntRange(min=1), help="Each kind so often, instead of minutes."
)
@click.option("--kinds", metavar="A,B", default="", help="Only these kinds of faults.")
@click.option("--seed", type=int, help="Of the schedule; default: a new one, which is printed.")
@click.option("--out", type=click.Path(path_type=Path), help="For evidence; kept if it is named.")
@click.option("--other-groups", is_flag=True, help="Also where groups are that no run made.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, for programs.")
@click.option(
    "--list", "listed", is_flag=True, help="Name the kinds of faults, and what is missing."
)
def chaos(  # noqa: PLR0913 - an option each
    cluster: Path | None,
    minutes: float,
    rounds: int | None,
    kinds: str,
    seed: int | None,
    out: Path | None,
    *,
    other_groups: bool,
    yes: bool,
    as_json: bool,
    listed: bool,
) -> None:
    """Break a cluster on purpose, under load, and judge whether it held.

    Ends with code 0 if nothing was violated, also when Ctrl-C cut it short; with 1 if something
    was, and what was found is kept and named. With 2 if there was nothing to judge, because it was
    refused; with 3 if the cluster made for the run did not start.
    """
    if listed:
        _list(own=cluster is None)
        return
    if cluster is not None and not yes:
        _ask(cluster)
    program = import_module("holdfast.chaos.runner.run")
    plan = program.Plan(
        folder=out or program.new_folder(),
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        cluster=cluster,
        seconds=minutes * 60,
        rounds=rounds or 0,
        kinds=tuple(name for name in kinds.split(",") if name),
        other_groups=other_groups,
        keep=out is not None,
    )
    say(f"seed {plan.seed}", err=True)
    report = _run(program, plan)
    if as_json:
        print_json(report.as_json())
    else:
        say_lines(["", *report.table().split("\n")])
    if not report.passed:
        fail("the cluster did NOT hold; what was found is listed above")


def _ask(cluster: Path) -> None:
    """Ask for consent; a refusal has an exit code of its own, since it is no verdict."""
    try:
        agreed = click.confirm(WARNING.format(where=cluster), err=True)
    except click.Abort:  # nobody is there to answer
        agreed = False
    if not agreed:
        fail("nothing was broken; --yes does not ask", REFUSED)


def _run(program: Any, plan: Any) -> Any:  # noqa: ANN401 - holdfast.chaos.runner.run, unknown here
    """Run a plan; ends the command with one sentence if it cannot begin or is interrupted."""
    try:
        return asyncio.run(program.run(plan, lambda line: say(line, err=True)))
    except program.Refused as error:
        fail(str(error), REFUSED)
    except program.StagingFailed as error:
        fail(str(error), UNREACHED)
    except KeyboardInterrupt:
        left = f"; what was seen is in {plan.folder}" if plan.folder.exists() else ""
        fail(f"ended at once, so nothing was judged{left}", INTERRUPTED)


def _list(*, own: bool) -> None:
    """List every kind, and whether it is available here."""
    nemesis = import_module("holdfast.chaos.nemesis")
    lacking = nemesis.missing(proxies=own)
    rows = []
    for kind in nemesis.KINDS:
        absent = [need for need in kind.needs if need in lacking]
        rows.append((kind.name, f"no: {', '.join(absent)}" if absent else "yes", kind.about))
    table(("KIND", "HERE", "WHAT IT DOES"), rows)
    for need, sentence in lacking.items():
        say(f"{need}: {sentence}")
