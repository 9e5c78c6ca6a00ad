"""The debugger steps through a trace and shows groups and nodes as of then."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from holdfast.chaos.history import jsonl
from holdfast.chaos.history.happenings import FORMAT, Began, NodesChanged, Recorded
from simulation import trace
from simulation.debug import Debugger
from simulation.outcome import BUSY, run_seed

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.chaos.history.happenings import Happening


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


def test_the_nodes_of_a_moment_are_shown() -> None:
    """S25: those of the beginning, and later what the newest committed change says."""
    history: list[Happening] = [
        Began(0, FORMAT, "simulation", ("node-1", "node-2"), 0.1, {}),
        NodesChanged(2_000_000, "node-1", 7, 3, ("node-1", "node-2"), ("node-3",), ()),
        NodesChanged(3_000_000, "node-1", 9, 3, ("node-1", "node-2", "node-3"), (), ()),
        NodesChanged(4_000_000, "node-2", 7, 3, ("node-1", "node-2"), ("node-3",), ()),
    ]
    said = StringIO()
    commands = "next\nshow nodes\nnext\nshow nodes\nnext 2\nshow nodes\nquit\n"
    debugger = Debugger(history, stdin=StringIO(commands), stdout=said)
    debugger.use_rawinput = False

    debugger.cmdloop()

    beginning, learner, voter = said.getvalue().split("voters ")[1:]
    assert beginning.startswith("node-1, node-2, as at the beginning")
    assert "learners node-3" in learner
    assert voter.startswith("node-1, node-2, node-3\n"), "what a node hears of late changes nothing"
