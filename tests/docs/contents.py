"""What the generated parts of the documentation say: states as diagrams, errors as sentences.

Reads the tables that the service itself runs on, so a page cannot tell another story than the code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.coordinator.classic.transitions import TRANSITIONS
from holdfast.coordinator.model.state import ABSENT
from holdfast.server.translate.refusals import TABLE, Coded
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "ERROR_CODE_"
_FIELD = re.compile(r"\{(\w+)(?:![rs])?\}")


def _moves() -> dict[tuple[str, str], list[str]]:
    moves: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (state, event), to in TRANSITIONS.items():
        moves[state, to].append(event)
    return moves


def _node(state: str) -> str:
    return "[*]" if state == ABSENT else state


def states() -> str:
    """Draw which event takes a group from one state to another (Mermaid)."""
    lines = ["```mermaid", "stateDiagram-v2"]
    for (state, to), events in _moves().items():
        if state != to:
            lines.append(f"    {_node(state)} --> {_node(to)}: {', '.join(events)}")
    return "\n".join([*lines, "```"])


def within() -> str:
    """Tabulate which events happen within a state."""
    inside = {state: events for (state, to), events in _moves().items() if state == to}
    names = sorted({event for events in inside.values() for event in events})
    head = f"| event | {' | '.join(inside)} |\n| --- |{' :-: |' * len(inside)}"
    rows = [
        f"| `{name}` | {' | '.join('yes' if name in inside[s] else '–' for s in inside)} |"
        for name in names
    ]
    return "\n".join([head, *rows])


def _legible(sentence: str) -> str:
    return _FIELD.sub(lambda field: f"*{field[1].replace('_', ' ')}*", sentence)


def _sentences() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for row in TABLE.values():
        if isinstance(row, Coded):
            found[ErrorCode.Name(row.code).removeprefix(_PREFIX)].append(row.text)
        else:
            found[row.status.name].append(row.text)
    return dict(found)


def make(name: str) -> str:
    """Return the text of a block; raise KeyError for one that nobody makes.

    `states`, `within`, or `says CODE`: the sentences that come with an error code or a status.
    """
    kind, _, subject = name.partition(" ")
    if kind == "says":
        return "\n>\n".join(f"> {_legible(text)}" for text in _sentences()[subject])
    return {"states": states, "within": within}[kind]()
