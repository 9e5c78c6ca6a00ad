"""What the generated parts of the documentation say: states as diagrams, errors as sentences.

Reads the tables that the service itself runs on, so a page cannot tell another story than the code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holdfast.client._session.consumer.states import IN_GROUP, RECONCILING, VIEW, Input, State
from holdfast.client._session.consumer.states import TABLE as MEMBER_TABLE
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


_BEATING: Final = frozenset({State.JOINING, *IN_GROUP})
"""Drawn as one state with states inside: what leads out of each of them is drawn once."""


def _arrows() -> dict[tuple[str, str], list[str]]:
    """Return the words on each arrow."""
    arrows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for what in Input:
        leads = {state: to for (state, each), to in MEMBER_TABLE.items() if each is what}
        shared = leads.keys() >= _BEATING and len({leads[state] for state in _BEATING}) == 1
        if shared:
            arrows["MEMBER", leads[State.STABLE].name].append(what.value)
        for state, to in leads.items():
            if state is not to and not (shared and state in _BEATING):
                arrows[state.name, to.name].append(what.value)
    return arrows


def member() -> str:
    """Draw which input takes a member of the heartbeat protocol from one state to another."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.UNSUBSCRIBED.name}"]
    lines += ["    state MEMBER {", "        state RECONCILING {"]
    lines += [f"            {state.name}" for state in State if state in RECONCILING]
    lines += ["        }"]
    lines += [f"        {state.name}" for state in State if state in _BEATING - RECONCILING]
    lines += ["    }"]
    for (state, to), words in _arrows().items():
        lines.append(f"    {state} --> {to}: {', '.join(words)}")
    return "\n".join([*lines, "```"])


def member_inputs() -> str:
    """Tabulate where each input leads, by state."""
    rows = [f"| {what.value} | {'; '.join(_led(what))} |" for what in Input]
    return "\n".join(["| what happens | from → to |", "| --- | --- |", *rows])


def _led(what: Input) -> list[str]:
    sources: dict[State, list[str]] = defaultdict(list)
    for (state, each), to in MEMBER_TABLE.items():
        if each is what:
            sources[to].append(state.name)
    return [f"{', '.join(names)} → {to.name}" for to, names in sources.items()]


def view() -> str:
    """Tabulate the five steps of a rebalance that the states of a member are seen as."""
    seen: dict[str, list[str]] = defaultdict(list)
    for state, step in VIEW.items():
        seen[step.name].append(state.name)
    rows = [f"| {step} | {', '.join(names)} |" for step, names in seen.items()]
    return "\n".join(["| GroupState | states |", "| --- | --- |", *rows])


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

    `states`, `within` of a classic group; `member`, `member inputs`, `view` of a member of the
    heartbeat protocol; or `says CODE`: the sentences that come with an error code or a status.
    """
    kind, _, subject = name.partition(" ")
    if kind == "says":
        return "\n>\n".join(f"> {_legible(text)}" for text in _sentences()[subject])
    return {
        "states": states,
        "within": within,
        "member": member,
        "member inputs": member_inputs,
        "view": view,
    }[name]()
