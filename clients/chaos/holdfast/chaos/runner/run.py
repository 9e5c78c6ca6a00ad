"""One run from its start to its report: find or start a cluster, break it, judge the history.

`runner` does what happens on the cluster; this module does the rest.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from holdfast.chaos import nemesis
from holdfast.chaos.cluster.staging import Staging, StagingFailed, end_brought_back
from holdfast.chaos.cluster.target import Target
from holdfast.chaos.history.happenings import Happening
from holdfast.chaos.history.jsonl import write as write_history
from holdfast.chaos.runner import judging
from holdfast.chaos.runner.admission import admit, running
from holdfast.chaos.runner.plan import Plan, Refused, chosen_kinds, new_folder
from holdfast.chaos.runner.report import Report
from holdfast.chaos.runner.runner import CONDUCTOR, Runner
from holdfast.chaos.workload.recorder import Recorder

__all__ = ["Plan", "Refused", "Report", "StagingFailed", "new_folder", "run"]


async def run(plan: Plan, say: Callable[[str], None]) -> Report:
    """Run a plan. Raises Refused with nothing made, StagingFailed; all else is in the report."""
    kinds, absent = chosen_kinds(plan)
    _refuse_used(plan.folder)
    await admit(plan)
    report = Report(plan.seed, str(plan.cluster or plan.folder / "cluster"))
    report.missing = nemesis.missing(proxies=plan.cluster is None)
    report.left_out = tuple(kind.name for kind in absent)
    _make(plan)
    async with AsyncExitStack() as stack:
        runner = await _runner(plan, stack, report, say)
        history = await runner.run(kinds)
    judging.count(report, history)
    say(f"judging {len(history)} happenings")
    judging.judge(report, history)
    _keep_or_remove(plan, report, history)
    return report


def _refuse_used(folder: Path) -> None:
    """Refuse a folder with files: the run removes the folder's content when all is well."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"{folder} is no empty directory: name one for the evidence that is, or none")


def _make(plan: Plan) -> None:
    """Make the folder; a temporary one is readable by its owner alone. Raises Refused."""
    try:
        plan.folder.mkdir(mode=0o777 if plan.keep else 0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(
            f"{plan.folder} cannot be made ({error}): name another directory for the evidence"
        ) from error


def _keep_or_remove(plan: Plan, report: Report, history: Sequence[Happening]) -> None:
    if report.passed and not report.undecided and not plan.keep:
        shutil.rmtree(plan.folder)
        return
    write_history(plan.folder / "history.jsonl", history)
    report.evidence = str(plan.folder.resolve())
    (plan.folder / "report.json").write_text(json.dumps(report.as_json(), indent=2) + "\n")


async def _runner(
    plan: Plan, stack: AsyncExitStack, report: Report, say: Callable[[str], None]
) -> Runner:
    """Find or start the cluster, and prepare everything that runs beside it."""
    network, endpoints = None, tuple[str, ...]()
    if plan.cluster is None:
        say("starting a cluster whose nodes reach each other through proxies")
        staging = Staging(plan.folder / "cluster", plan.nodes, plan.seed, plan.arguments)
        await stack.enter_async_context(staging)
        network, endpoints = staging.network, staging.addresses()
        target = Target(staging.directory)
        stack.push_async_callback(end_brought_back, target)
    else:
        target = running(plan.cluster)
        endpoints = tuple(node.client_address for node in target.nodes())
    stack.push_async_callback(target.close)
    recorder = Recorder(plan.folder / CONDUCTOR, 0)
    stack.callback(recorder.close)
    return Runner(plan, target, network, endpoints, recorder, report, say)
