"""Every scenario of Kafka's group coordinator is played somewhere, or listed with a reason.

`tests/conformance/scenarios.txt` has them all. One is played where its id stands

- in the `catalogue` of a transcript, unless that `requires` what we leave out,
- at the head of a story's prose, before a colon: `# K-B11, K-C13: the parked join …`,
- at the head of a test's docstring, likewise, or of its name: `test_b11_c13_the_parked_join`.

A transcript, as data, and a name have the bare id; prose has it as docs/rules/kafka.md does.
`bettered` after an id says that we differ from Kafka on purpose. Folders where `test_d1_` means
something else (the engine's defects) are not looked at.
"""

import ast
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, syntax

SCENARIOS = 349
LISTED_MAX = 45
TESTS = (
    *("unit/coordinator", "unit/storage", "unit/runtime", "unit/server", "unit/client"),
    "unit/cli",
    *("cluster", "conformance", "property"),
)
_SCENARIO = re.compile(r"[A-Q]\d+|T(?:9|1\d)")
_HEAD_WORD = re.compile(r"K-[A-Q]\d+|T-(?:9|1\d)|S\d+|KIP-\d+|bettered")
_PLAYED = {"kafka_4_3"}
"""What a transcript may require and we have."""


def scenarios(root: Path) -> dict[str, str]:
    """All ids with their titles."""
    text = (root / "tests/conformance/scenarios.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if _SCENARIO.match(line)]
    return {name: title for name, _, title in (line.partition(" ") for line in lines)}


def listed(root: Path) -> dict[str, str]:
    """Ids without a counterpart here, with the reason."""
    text = (root / "tests/conformance/not_applicable.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def played(root: Path) -> dict[str, set[str]]:
    """Which ids are played, and where."""
    found: dict[str, set[str]] = defaultdict(set)
    for where, names in _mentions(root / "tests"):
        for name in names:
            found[name].add(where)
    return found


def _mentions(tests: Path) -> Iterator[tuple[str, list[str]]]:
    for path in sorted((tests / "conformance/transcripts").rglob("*.json")):
        transcript = json.loads(path.read_text(encoding="utf-8"))
        played = set(transcript["requires"]) <= _PLAYED
        yield path.stem, transcript["catalogue"] if played else []
    for path in sorted((tests / "stories").glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.name, head(line[2:]) if line.startswith("# ") else []
    for folder in TESTS:
        for path in sorted((tests / folder).rglob("test_*.py")):
            for function in functions(syntax(path)):
                yield f"{path.name}::{function.name}", named(function)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Go through the tests of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            yield node


def named(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The ids at the head of a test's docstring and of its name."""
    text = (ast.get_docstring(function) or "").split("\n", 1)[0]
    words = function.name.upper().split("_")[1:]
    end = next((at for at, word in enumerate(words) if not _SCENARIO.fullmatch(word)), len(words))
    return [*head(text), *words[:end]]


def head(line: str) -> list[str]:
    """The ids before the colon, if nothing else stands there."""
    words = re.split(r"[,\s]+", line.partition(":")[0].strip())
    if ":" not in line or not all(map(_HEAD_WORD.fullmatch, words)):
        return []
    ids = [word for word in words if word.startswith(("K-", "T-"))]
    return [word.removeprefix("K-").replace("-", "") for word in ids]


def check(root: Path) -> list[str]:
    """What is missing, unknown, or both played and listed."""
    known, plays, lists = scenarios(root), played(root), listed(root)
    missing = [name for name in known if name not in plays and name not in lists]
    return [
        *(f"{name} is neither played nor listed: {known[name]}" for name in missing),
        *(f"{name} is no scenario: {sorted(plays[name])}" for name in plays if name not in known),
        *(f"{name} is listed and no scenario" for name in lists if name not in known),
        *(f"{name} is listed and played: {sorted(plays[name])}" for name in lists if name in plays),
        *(f"{name} is listed without a reason" for name, why in lists.items() if not why.strip()),
    ]


def test_every_scenario_is_played_or_listed() -> None:
    problems = check(ROOT)

    assert problems == [], "\n" + "\n".join(problems)


def test_all_are_counted() -> None:
    """Covered and listed make all of them; the list stays short."""
    covered = set(played(ROOT)) & set(scenarios(ROOT))

    assert len(scenarios(ROOT)) == SCENARIOS
    assert len(covered) + len(listed(ROOT)) == SCENARIOS
    assert len(listed(ROOT)) <= LISTED_MAX


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree: A1 is played by a transcript, B2 by a story, C3 by a test, and D4 is listed."""
    for name, text in {
        "conformance/scenarios.txt": "# all\nA1 one\nB2 two\nC3 three\nD4 four\n",
        "conformance/not_applicable.toml": 'D4 = "no such thing"\n',
        "conformance/transcripts/t.json": '{"requires": [], "catalogue": ["A1"]}',
        "stories/s.txt": "# Some words.\n# K-B2 bettered, S12: a rule.\njoin a\n----\n",
        "unit/coordinator/test_x.py": 'def test_y() -> None:\n    """K-C3: a rule."""\n',
    }.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_is_complete_passes(small: Path) -> None:
    assert check(small) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conformance/transcripts/t.json", '{"requires": [], "catalogue": []}'),
        ("conformance/transcripts/t.json", '{"requires": ["kafka_bug"], "catalogue": ["A1"]}'),
        ("stories/s.txt", "# A rule (K-B2), told.\njoin a\n----\n"),
        ("stories/s.txt", "# B2: a rule without its prefix.\njoin a\n----\n"),
        ("unit/coordinator/test_x.py", 'def test_y() -> None:\n    """A rule: K-C3."""\n'),
        ("unit/coordinator/test_x.py", 'def help_c3() -> None:\n    """K-C3: a rule."""\n'),
        ("unit/coordinator/test_x.py", "def test_c3_c4_a_rule() -> None: ...\n"),
        ("unit/coordinator/test_x.py", "def test_c3_d4_a_rule() -> None: ...\n"),
        ("conformance/not_applicable.toml", 'D4 = " "\n'),
        ("conformance/not_applicable.toml", 'D4 = "none"\nD5 = "none"\n'),
    ],
)
def test_what_is_missing_unknown_or_double_is_told(small: Path, name: str, text: str) -> None:
    (small / "tests" / name).write_text(text)

    assert len(check(small)) == 1


def test_a_name_counts_like_a_docstring(small: Path) -> None:
    (small / "tests/unit/coordinator/test_x.py").write_text("def test_c3_a_rule() -> None: ...\n")

    assert check(small) == []
