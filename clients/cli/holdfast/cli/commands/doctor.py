"""`holdfast doctor`: looks for what is wrong in a cluster, or with a node on this machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.connect import Cluster
from holdfast.cli.doctor import cluster_checks, installed_checks
from holdfast.cli.doctor.asking import seen_by
from holdfast.cli.doctor.findings import ERROR, OF_MACHINES, WARNING, Report, in_order
from holdfast.cli.ending import UNREACHED, fail, print_json
from holdfast.cli.options import as_json, finds_cluster
from holdfast.cli.render.speaking import say
from holdfast.cli.target import NotRunning

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.target import Target


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check the node of this file on this machine, instead of a cluster.",
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="As of the node.")
@click.option("--strict", is_flag=True, help="End with 1 if there are warnings, too.")
@as_json
@finds_cluster
def doctor(
    find: Callable[[], Target],
    file: Path | None,
    overrides: tuple[str, ...],
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """Look for what is wrong in a cluster, or with a node on this machine.

    Each finding says what, why it matters, and what to do. Asks every node of a cluster, or with
    --config looks at a node's configuration, certificates and disk on this machine, whether it runs
    or not. Changes nothing. What nodes tell of their machines is for readers of the cluster. Ends
    with 0 if there are no errors, with 1 if there are, with 3 if no node answered.
    """
    report = _on_this_machine(file, overrides) if file else _in_the_cluster(find)
    found = in_order(report.findings)
    if as_json:
        told = [each._asdict() for each in found]
        print_json({"findings": told, "checked": report.checked})
    else:
        _show(report._replace(findings=found))
    counted = [each for each in found if strict or each.severity == ERROR]
    if counted:
        fail(f"{len(counted)} of {len(found)} findings must be mended")


def _in_the_cluster(find: Callable[[], Target]) -> Report:
    try:
        target = find()
    except NotRunning as error:
        fail(str(error))
    with Cluster(target) as cluster:
        seen = seen_by(cluster)
        if not any(one.answer for one in seen):
            fail(f"no node answered; last: {cluster.last_failure}", UNREACHED)
    return cluster_checks.report_on(seen, _now_ms())


def _on_this_machine(file: Path, overrides: tuple[str, ...]) -> Report:
    from holdfast.cli.doctor.looking import installed  # noqa: PLC0415 - needs the [server] extra
    from holdfast.server.config.node_config import ConfigError, load  # noqa: PLC0415 - as above

    try:
        config = load(file, os.environ, overrides)
    except ConfigError as error:
        refused = [installed_checks.configuration_refused(str(error))]
        return Report(refused, frozenset({"settings"}))
    return Report(installed_checks.findings_of(installed(config), _now_ms()), OF_MACHINES)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _show(report: Report) -> None:
    found = report.findings
    for each in found:
        place = f" {each.place}:" if each.place else ""
        say(f"{each.severity.upper()} {each.check}:{place} {each.what}")
        say(f"    {each.why}.")
        say(f"    To do: {each.do}.")
    errors = sum(each.severity == ERROR for each in found)
    warnings = sum(each.severity == WARNING for each in found)
    say(f"errors: {errors}, warnings: {warnings}; checked: {', '.join(report.checked)}")
