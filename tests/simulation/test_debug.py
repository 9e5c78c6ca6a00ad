"""The debugger steps through a trace and shows groups and nodes as of then."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from holdfast.chaos.history import jsonl
from holdfast.chaos.history.happenings import Recorded
from simulation import trace
from simulation.debug import Debugger
from simulation.outcome import BUSY, run_seed

if TYPE_CHECKING:
    from pathlib import Path


def test_a_trace_is_stepped_through(tmp_path: Path) -> None:
    """Written, read again, and shown: a moment, a group, a node, the verdict."""
    outcome = run_seed(1, shape=BUSY._replace(fault_s=(4.0, 6.0)))
    history = jsonl.read(trace.write(outcome, tmp_path))
    recorded = (one for one in history if isinstance(one, Recorded))
    first = next(one for one in recorded if one.kind == "AssignmentStored")
    shown = f"show group {first.group}\nshow node node-1"
    commands = f"next 2\nuntil AssignmentStored\n{shown}\njudge\nquit\n"
    said = StringIO()
    debugger = Debugger(history, stdin=StringIO(commands), stdout=said)
    debugger.use_rawinput = False

    debugger.cmdloop()

    assert trace.faults_of(history) == list(outcome.faults)
    assert "AssignmentStored" in said.getvalue()
    assert f"> {first.group}: Stable, generation {first.fields['generation']}" in said.getvalue()
    assert "exclusive ownership" in said.getvalue()
