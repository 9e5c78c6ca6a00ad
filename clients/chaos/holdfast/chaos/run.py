"""One run from its beginning to its report: find or start a cluster, break it, judge what was seen.

`field` has what happens on the cluster; here is what is around it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.chaos import judging, nemesis
from holdfast.chaos.cluster.staging import Staging, StagingFailed, end_brought_back
from holdfast.chaos.cluster.target import Target
from holdfast.chaos.field import CONDUCTOR, Field
from holdfast.chaos.history import Happening
from holdfast.chaos.history_file import write as write_history
from holdfast.chaos.plan import Plan, Refused, chosen_kinds
from holdfast.chaos.report import Report
from holdfast.chaos.workload.recorder import Recorder

__all__ = ["Plan", "Refused", "Report", "StagingFailed", "run"]


async def run(plan: Plan, say: Callable[[str], None]) -> Report:
    """Do it all. Raises Refused, StagingFailed; everything later is in the report."""
    kinds, absent = chosen_kinds(plan)
    report = Report(plan.seed, str(plan.cluster or plan.folder / "cluster"))
    report.missing = nemesis.missing(proxies=plan.cluster is None)
    report.left_out = tuple(kind.name for kind in absent)
    _make_folder(plan.folder)
    history: list[Happening] = []
    try:
        async with AsyncExitStack() as stack:
            field = await _field(plan, stack, report, say)
            history = await field.fight(kinds)
    except Refused:
        shutil.rmtree(plan.folder)  # it was empty, and nothing happened
        raise
    judging.count(report, history)
    say(f"judging {len(history)} happenings")
    judging.judge(report, history)
    _keep_or_remove(plan, report, history)
    return report


def _make_folder(folder: Path) -> None:
    """Never among somebody's files: what is in it is removed when all is well."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise Refused(f"{folder} is not empty: name a directory for the evidence that is, or none")


def _keep_or_remove(plan: Plan, report: Report, history: Sequence[Happening]) -> None:
    if report.passed and not plan.keep:
        shutil.rmtree(plan.folder)
        return
    write_history(plan.folder / "history.jsonl", history)
    report.evidence = str(plan.folder.resolve())
    (plan.folder / "report.json").write_text(json.dumps(report.as_json(), indent=2) + "\n")


async def _field(
    plan: Plan, stack: AsyncExitStack, report: Report, say: Callable[[str], None]
) -> Field:
    """Find or start the cluster, and get everything ready that runs beside it."""
    network, endpoints = None, tuple[str, ...]()
    if plan.cluster is None:
        say("starting a cluster whose nodes reach each other through proxies")
        staging = Staging(plan.folder / "cluster", plan.nodes, plan.seed, plan.arguments)
        await stack.enter_async_context(staging)
        network, endpoints = staging.network, staging.addresses()
        target = Target(staging.directory)
        stack.push_async_callback(end_brought_back, target)
    else:
        target = _running(plan.cluster)
        endpoints = tuple(node.client_address for node in target.nodes())
    stack.push_async_callback(target.close)
    recorder = Recorder(plan.folder / CONDUCTOR, 0)
    stack.callback(recorder.close)
    return Field(plan, target, network, endpoints, recorder, report, say)


def _running(directory: Path) -> Target:
    try:
        return Target(directory)
    except (OSError, ValueError, KeyError) as error:
        raise Refused(
            f"no running cluster at {directory} ({error}): start one with `holdfast cluster start "
            f"--dir {directory}`, or leave --cluster out for one that is made for the run"
        ) from error
