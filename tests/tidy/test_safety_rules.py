"""Every safety rule has its scenario played, in a test that is named by the rule's id.

The table, `safety_scenarios.txt`, says for each rule what goes wrong without it and where that is
played. A place is a test function whose name begins with the id (`test_s9...`), or a story whose
first line does (`# S16...`). An empty test plays nothing: it must assert, raise or be a scenario
under `@guards`. Rules that the overlay can leave out are moreover run without them
(`harness.teeth`), which `tests/raft/test_proposals.py` checks for all of them.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.repository import ROOT, nodes, plant

RULES = range(1, 27)
LETTERS = {9: "ab", 10: "abcde", 25: "abcdef"}
"""Rules whose parts are lettered: each part needs a scenario (of S9 the first has two)."""

SAYS_SOMETHING = ("assert ", "pytest.raises(", "guards(")


class Scenario(NamedTuple):
    """What happens without the rule, and where that is played, below tests/."""

    rule: str
    harm: str
    place: str


def scenarios(text: str) -> list[Scenario]:
    """Read the table: a line `rule: harm`, and below it, indented, the place."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    told = [(*said.partition(": ")[::2], place.strip()) for said, place in pairs]
    return [Scenario(rule, harm, place) for rule, harm, place in told]


SCENARIOS = scenarios((ROOT / "tests/tidy/safety_scenarios.txt").read_text())


def needed() -> list[str]:
    """Every rule, or its parts where it has any."""
    return [f"S{rule}{letter}" for rule in RULES for letter in LETTERS.get(rule, "") or [""]]


def missing(root: Path, table: list[Scenario]) -> list[str]:
    """Name the rules without a scenario, and the scenarios that are not played where it says."""
    told = {scenario.rule for scenario in table}
    lacking = [f"{rule} has no scenario" for rule in needed() if rule not in told]
    return lacking + [
        f"{scenario.rule} ({scenario.harm}): {problem}"
        for scenario in table
        if (problem := _problem(root / "tests", scenario))
    ]


def _problem(tests: Path, scenario: Scenario) -> str:
    """Say why a scenario is not played at its place, or nothing."""
    name, _, function = scenario.place.partition("::")
    path = tests / name
    if not path.is_file():
        return f"there is no tests/{name}"
    if not function:
        first = path.read_text().partition("\n")[0]
        begins = re.match(rf"# {scenario.rule}\b", first)
        return "" if begins else f"the first line of tests/{name} does not begin with the id"
    if not re.match(rf"test_{scenario.rule.rstrip('a').lower()}[a-f]?_", function):
        return f"{function} is not named by the id"
    called = [each for each in nodes(path) if _is_called(each, function)]
    if not called:
        return f"there is no {function} in tests/{name}"
    text = ast.unparse(called[0])
    return "" if any(word in text for word in SAYS_SOMETHING) else f"{function} says nothing"


def _is_called(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name


def test_every_safety_rule_has_its_scenario_played() -> None:
    """The list of what is missing is empty."""
    assert missing(ROOT, SCENARIOS) == []


def test_every_rule_that_the_overlay_can_leave_out_is_a_safety_rule_or_mends_the_engine() -> None:
    """A switch without a rule would be a switch that nobody needs."""
    text = (ROOT / "raft/holdfast/raft/core/context.py").read_text()
    switches = re.findall(r'^    S(\d+)_\w+ = "S(\d+)', text, re.MULTILINE)
    assert len(switches) > 10
    assert all(name == told and int(name) in RULES for name, told in switches)


GOOD = 'def test_s1_x() -> None:\n    """S1."""\n    assert True\n'


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("raft/test_x.py::test_s1_x", GOOD, ""),
        ("raft/test_y.py::test_s1_x", GOOD, "there is no tests/raft/test_y.py"),
        ("raft/test_x.py::test_s1_y", GOOD, "there is no test_s1_y"),
        ("raft/test_x.py::test_s12_x", GOOD, "not named by the id"),
        ("raft/test_x.py::test_x", GOOD.replace("s1_", ""), "not named by the id"),
        ("raft/test_x.py::test_s1_x", GOOD.replace("assert True", "pass"), "says nothing"),
        ("stories/x.txt", "# S1, A3: a rule.\n", ""),
        ("stories/x.txt", "# S12: a rule.\n", "does not begin with the id"),
        ("stories/x.txt", "# Something about S1.\n", "does not begin with the id"),
    ],
)
def test_a_scenario_that_is_not_played_is_found(
    tmp_path: Path, place: str, text: str, said: str
) -> None:
    """A check that cannot fail is a defect."""
    file = place.partition("::")[0].replace("test_y", "test_x")
    root = plant(tmp_path, {f"tests/{file}": text})
    problems = [p for p in missing(root, [Scenario("S1", "harm", place)]) if p.startswith("S1 (")]

    assert len(problems) == (1 if said else 0)
    assert all(said in problem for problem in problems)


def test_a_rule_without_a_scenario_is_listed() -> None:
    """Also one whose parts are lettered."""
    without = [each for each in SCENARIOS if each.rule not in {"S7", "S10d"}]

    assert missing(ROOT, without) == ["S7 has no scenario", "S10d has no scenario"]
