"""Run every checker over a history, and put the verdicts into the report.

Knows a history, and nothing of its cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.chaos import checkers
from holdfast.chaos.clock import US_PER_S
from holdfast.chaos.history.happenings import Granted, Happening, Recorded, Returned, Wrote
from holdfast.chaos.runner.report import Report


def count(report: Report, history: Sequence[Happening]) -> None:
    """Fill in the numbers that need no checker."""
    report.acknowledged = sum(
        isinstance(each, Returned) and each.outcome == "ok" and "position" in each.result
        for each in history
    )
    report.grants = sum(isinstance(each, Granted) for each in history)
    report.records = sum(isinstance(each, Recorded) for each in history)
    writes = [each for each in history if isinstance(each, Wrote)]
    report.writes = len(writes)
    report.refused_writes = sum(not write.accepted for write in writes)


def judge(report: Report, history: Sequence[Happening]) -> None:
    """Check every invariant; a history that contradicts itself is a fault of the run."""
    began_us = history[0].at_us
    if not report.records:
        report.undecided.append("no node's log could be read, so nothing was judged")
        return
    try:
        judgement = checkers.judge(history)
    except checkers.Unsound as error:
        report.wrong.append(str(error))
        return
    for name, verdict in judgement.verdicts.items():
        report.checked[name] = dict(verdict.checked)
    for violation in judgement.violations:
        at_s = (violation.at_us - began_us) / US_PER_S
        report.violations.append(f"{violation.invariant} at {at_s:.3f} s: {violation.what}")
    report.undecided += judgement.undecided
    report.unjudged = tuple(judgement.empty)
