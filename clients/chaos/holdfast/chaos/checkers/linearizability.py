"""INV-7: reads and writes of group state are linearizable (no stale read).

Committed offsets are registers: for each (group, topic, partition) an order is searched for that a
single copy could have gone through (`wgl`, `offset_registers`). Membership and generations are
judged by the order that the log has (`group_reads`). A search that was given up is reported as
undecided, never as passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import calls_of
from holdfast.chaos.evidence.group_reads import Log, misfits, of_groups
from holdfast.chaos.evidence.log_view import by_group, label, records_of
from holdfast.chaos.evidence.offset_registers import (
    NONE,
    UNKNOWN,
    Register,
    initial,
    registers,
    step,
)
from holdfast.chaos.evidence.wgl import STEPS_MAX, Operation, Outcome, search
from holdfast.chaos.history.happenings import Happening

INVARIANT: Final = "I7"


def check(history: Sequence[Happening], steps_max: int = STEPS_MAX) -> Verdict:
    """Find registers without an order, and answers about a group that were never true."""
    own = registers(history)
    first = initial(records_of(history))
    found: list[Violation] = []
    undecided: list[str] = []
    for register, operations in own.items():
        begin = first.get(register[0], UNKNOWN if first else NONE)
        outcome = search(operations, begin, step, steps_max)
        if outcome.linearizable is None:
            undecided.append(_given_up(register, operations, outcome))
        elif not outcome.linearizable:
            found.append(_no_order(register, outcome))
    answers, wrong = _groups(history)
    counts = {
        "offset operations": sum(map(len, own.values())),
        "registers": len(own),
        "answers about groups": answers,
    }
    return Verdict(counts, [*found, *wrong], undecided)


def _no_order(register: Register, outcome: Outcome) -> Violation:
    blocked = outcome.blocked
    shown = ", ".join(_said(each) for each in outcome.placed)
    what = f"{label(register)}: no order of its operations explains what was read"
    if blocked is not None:
        what += f"; {_said(blocked)} has no place after {shown or 'nothing'}"
    return Violation(INVARIANT, (blocked.end_us or blocked.start_us) if blocked else 0, what)


def _said(operation: Operation) -> str:
    return f"{operation.call} {operation.what.kind} {operation.what.value}"


def _given_up(register: Register, operations: Sequence[Operation], outcome: Outcome) -> str:
    return (
        f"{label(register)}: no order found for {len(operations)} operations in {outcome.steps} "
        "steps; it may be linearizable or not"
    )


def _groups(history: Sequence[Happening]) -> tuple[int, list[Violation]]:
    calls = of_groups(calls_of(history))
    total, found = 0, []
    for group, records in by_group(records_of(history)).items():
        log = Log(records, calls.get(group, ()))
        if not group or not log.whole:
            continue  # of a group that began before the history, the log does not tell enough
        count, wrong = misfits(log, calls.get(group, ()))
        total += count
        found += [Violation(INVARIANT, each.at_us, each.what) for each in wrong]
    return total, found
