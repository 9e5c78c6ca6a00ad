"""What an event does to members is said once: by a table that no event can be missing from."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, module_name, nodes, plant, sources, syntax, where
from tidy.test_layers import under
from tidy.test_rooms import JUDGES

Check = Callable[[Path], list[str]]

MODEL = "coordinator/holdfast/coordinator/model/"
EVENTS, TABLE = f"{MODEL}events.py", f"{MODEL}membership.py"
UNIONS = ("GroupEvent", "ClusterEvent", "Event")
WENT = {"LEFT", "REMOVED", "EXPIRED", "REFUSED", "LATE", "REPLACED"}
"""The words of the table for how a member id went."""
ENDINGS = {"MembersLeft", "MembersRemoved", "MemberExpired", "MemberRefused"}
THEIR_OWN = [
    "holdfast.coordinator.classic",  # decides them, and folds them
    "holdfast.coordinator.consumer",  # the same
    "holdfast.coordinator.model",
    "holdfast.replay.verify.sql.state",  # says the rules a second time
    *JUDGES,
]


def _assigned(tree: ast.Module, name: str) -> ast.expr:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == name:
            assert node.value is not None
            return node.value
    raise AssertionError(f"nothing is called {name}")


def _name(node: ast.AST | None) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def check_total(root: Path) -> list[str]:
    """Each event has a line in the table, also one that leaves all members alone."""
    tree = syntax(root / EVENTS)
    named = (ast.walk(_assigned(tree, union)) for union in UNIONS)
    events = {_name(node) for nodes in named for node in nodes if isinstance(node, ast.Name)}
    table = _assigned(syntax(root / TABLE), "TABLE")
    assert isinstance(table, ast.Dict)
    lines = {_name(key) for key in table.keys}
    return [f"{TABLE}: no line for {event}" for event in sorted(events - {*UNIONS} - lines)]


def _tables(path: Path) -> Iterator[tuple[ast.Dict, set[str]]]:
    """Dictionaries by how a member went; one word alone may be there for another reason."""
    for node in nodes(path):
        if isinstance(node, ast.Dict):
            keys = {_name(key) for key in node.keys}
            if len(keys & (WENT - {"REPLACED"})) > 0:
                yield node, keys


def check_words(root: Path) -> list[str]:
    """Who says something of members that went says it of all ways to go."""
    return [
        f"{where(root, path, node)}: nothing for {', '.join(sorted(WENT - keys))}"
        for path in sources(root)
        for node, keys in _tables(path)
        if WENT - keys
    ]


def check_asked(root: Path) -> list[str]:
    """Nobody looks for the events by which members go: the table knows all of them."""
    return [
        f"{where(root, path, node)}: {module_name(root, path)} names {_name(node)}; ask line_of"
        for path in sources(root)
        if not under(module_name(root, path), THEIR_OWN)
        for node in nodes(path)
        if isinstance(node, ast.Name | ast.Attribute) and _name(node) in ENDINGS
    ]


CHECKS = [check_total, check_words, check_asked]
UNION = "A: X = E | F\nGroupEvent: T = E | F\nClusterEvent: T = G\nEvent: T = GroupEvent | H\n"
BAD = [
    (check_total, {EVENTS: UNION, TABLE: "TABLE: T = {ev.E: a, ev.F: a, ev.H: a}"}),
    (check_total, {EVENTS: UNION, TABLE: "TABLE: T = {ev.E: a, ev.F: a, ev.G: a}"}),
    (check_total, {EVENTS: UNION, TABLE: "TABLE: T = {ev.E: a, ev.G: a, ev.H: a}"}),
    (check_words, {"server/holdfast/server/x.py": 'W = {LEFT: "", REMOVED: "", EXPIRED: ""}'}),
    (check_words, {"replay/holdfast/replay/x.py": 'W = {m.LATE: "late"}'}),
    (
        check_asked,
        {"server/holdfast/server/x.py": "match e:\n    case MembersLeft():\n        a()"},
    ),
    (check_asked, {"runtime/holdfast/runtime/x.py": "isinstance(e, ev.MemberExpired | A)"}),
]


@pytest.mark.parametrize("check", CHECKS)
def test_what_happens_to_members_is_asked_of_a_table_that_is_whole(check: Check) -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(("check", "files"), BAD)
def test_each_check_finds_what_it_forbids(
    check: Check, files: dict[str, str], tmp_path: Path
) -> None:
    assert len(check(plant(tmp_path, files))) == 1


def test_a_whole_table_is_found_whole(tmp_path: Path) -> None:
    table = "TABLE: T = {ev.E: a, ev.F: a, ev.G: a, ev.H: a}"

    assert check_total(plant(tmp_path, {EVENTS: UNION, TABLE: table})) == []
