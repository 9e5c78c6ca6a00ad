"""Whoever cites a rule writes its prefix, and the rule is there (docs/rules/README.md).

An id with a prefix is looked up wherever it stands. One without is forbidden in comments and
docstrings, in those of SQL, in the prose of stories, and in Markdown without its code. What stands
elsewhere is data or a name, which have ids without a prefix.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tidy.repository import ROOT, plant, sources, syntax, test_sources
from tidy.test_docs import documents, prose
from tidy.test_reasons import comments

Check = Callable[[Path], list[str]]
CATALOGUES = {
    "kafka.md": r"K-[A-Q]\d+",
    "engine.md": r"E-\d+",
    "client.md": r"T-\d+",
    "invariants.md": r"INV-\d+",
    "faults.md": r"FAULT-\d+",
    "safety.md": r"S\d+",
}
CITED = re.compile(r"(?<![\w-])(?:K-[A-Z]\d+|(?:E|T|INV|FAULT)-\d+|S\d{1,2}(?=[a-f]?\b))(?!\d)")
BARE = re.compile(r"(?<![\w-])(?:[A-QT]\d{1,2}|r[1-9])(?!\w)")
GONE = re.compile(r"\u00a7|\b(?:design|reference) \d")

NO_CITATIONS = {
    "coordinator/holdfast/coordinator/model/events.py": {
        "B3"
    },  # the cause on the log, as it looks there
    "coordinator/holdfast/coordinator/model/text.py": {"C0", "C1"},  # control characters
    "tests/raft/test_proposals.py": {"L1"},  # a leader
    "tests/stories/language.py": {"r1"},  # a request
    "tests/stories/retried_join.txt": {"r2"},  # a request
    "tests/tidy/test_scenarios.py": {"A1", "B2", "C3", "D4"},  # as scenarios.txt has them
    "tests/unit/chaos/checkers/test_exactly_once.py": {"r1"},  # a request
    "tests/unit/coordinator/assignors/test_assignors.py": {"C0", "C1", "C2"},  # consumers
    "tests/unit/coordinator/kernel/test_apply.py": {"L1"},  # a leader
}
"""What only looks like an id without its prefix."""


def catalogue(root: Path) -> list[str]:
    """All ids that have a line of their own; a lettered part belongs to its rule."""
    found = []
    for name, form in CATALOGUES.items():
        text = (root / "docs" / "rules" / name).read_text()
        found += re.findall(rf"^- \*\*({form})\b", text, re.MULTILINE)
    return found


def files(root: Path) -> Iterator[Path]:
    """Go through all that cites rules."""
    yield from [*sources(root), *test_sources(root), *root.glob("dev")]
    yield from sorted((root / "replay").rglob("*.sql"))
    yield from sorted((root / "tests" / "stories").glob("*.txt"))
    yield from documents(root)


@cache
def texts(root: Path) -> dict[str, str]:
    """What is told to a reader, by file."""
    return {str(path.relative_to(root)): told(path) for path in files(root)}


def told(path: Path) -> str:
    """What a file tells, without its code and data; nothing if it has nothing to look at."""
    text = path.read_text()
    if not (BARE.search(text) or GONE.search(text)):
        return ""  # most files; syntax and tokens of all of them would take seconds
    if path.suffix == ".md":
        return prose(path)
    if path.suffix == ".sql":
        return "\n".join(line for line in text.splitlines() if line.lstrip().startswith("-- "))
    if path.suffix == ".txt":
        return "\n".join(line for line in text.splitlines() if line.startswith("# "))
    return "\n".join([*(comment for _, comment in comments(path)), *docstrings(syntax(path))])


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Go through the strings that stand alone: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def check_cited(root: Path) -> list[str]:
    """What is cited has a line in its catalogue."""
    known = set(catalogue(root))
    return [
        f"{path.relative_to(root)}: {name} is in no catalogue of docs/rules"
        for path in files(root)
        for name in sorted(set(CITED.findall(path.read_text())) - known)
    ]


def check_prefixed(root: Path) -> list[str]:
    """No id stands without its prefix, but for what is none."""
    return [
        f"{where}: {name} has no prefix (docs/rules/README.md)"
        for where, text in texts(root).items()
        for name in sorted(set(BARE.findall(text)) - NO_CITATIONS.get(where, set()))
    ]


def check_sources(root: Path) -> list[str]:
    """Nothing is cited that is not in the repository."""
    return [
        f"{where}: {name!r} is not in the repository; cite a rule or a decision (ADR)"
        for where, text in texts(root).items()
        for name in GONE.findall(text)
    ]


def check_once(root: Path) -> list[str]:
    """An id has one line."""
    return [f"{name} has {n} lines" for name, n in Counter(catalogue(root)).items() if n > 1]


CHECKS = [check_cited, check_prefixed, check_sources, check_once]


@pytest.mark.parametrize("check", CHECKS)
def test_every_citation_leads_to_its_rule(check: Check) -> None:
    problems = check(ROOT)

    assert problems == [], "\n" + "\n".join(problems)


def test_the_catalogue_of_kafka_has_all_scenarios() -> None:
    text = (ROOT / "tests/conformance/scenarios.txt").read_text()
    names = catalogue(ROOT)
    rules = [name.removeprefix("K-") for name in names if name.startswith("K-")]
    of_clients = [name.replace("-", "") for name in names if name.startswith("T-")]

    assert rules == re.findall(r"^[A-Q]\d+", text, re.MULTILINE)
    kafkas = of_clients[8:19]  # before them the classic protocol's, behind them what Kafka has not
    assert kafkas == re.findall(r"^T\d+", text, re.MULTILINE)


def test_what_only_looks_like_an_id_still_stands_where_it_is_listed() -> None:
    """Else the list would one day excuse a real citation."""
    seen = {where: set(BARE.findall(text)) for where, text in texts(ROOT).items()}

    assert {where: seen[where] & ids for where, ids in NO_CITATIONS.items()} == NO_CITATIONS


PRODUCT = "raft/holdfast/raft/x.py"
MISSING = [f"{kind}-{number}" for kind, number in [("K", "B99"), ("K", "Z1"), ("E", 44), ("T", 55)]]
MISSING += [f"{kind}{number}" for kind, number in [("INV-", 99), ("FAULT-", 1), ("S", 99)]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A tree with one rule in each catalogue, each cited."""
    lines = {"kafka.md": "K-B3", "engine.md": "E-4", "client.md": "T-5"}
    lines |= {"invariants.md": "INV-9", "faults.md": "FAULT-17", "safety.md": "S9. Name."}
    planted = {f"docs/rules/{name}": f"- **{line}** A rule.\n" for name, line in lines.items()}
    planted[PRODUCT] = '"""K-B3 to K-B3, E-4, T-5, INV-9, FAULT-17, S9 b, S9a."""\n'
    return plant(tmp_path, planted)


def problems(root: Path) -> list[str]:
    return [problem for check in CHECKS for problem in check(root)]


def test_a_rule_that_is_there_passes(small: Path) -> None:
    assert problems(small) == []


@pytest.mark.parametrize(
    "text",
    ['x = cause("B3")\n', "def test_b3_x(): ...\n", "# KIP-345, CVE-2019-1, UTF-8, v1, S101\n"],
)
def test_data_names_and_other_numbers_pass(small: Path, text: str) -> None:
    (small / PRODUCT).write_text(text)

    assert problems(small) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((PRODUCT, f"# A rule ({name}).\n") for name in MISSING),
        (PRODUCT, "x = 1  # B3\n"),
        (PRODUCT, '"""A module (I9)."""\n'),
        (PRODUCT, 'class X:\n    y = 1\n    """An attribute: T5."""\n'),
        ("replay/holdfast/replay/x.sql", "select\n  -- A rule (B3).\n  'B3'\n"),
        ("replay/holdfast/replay/x.sql", f"-- A rule ({MISSING[0]}).\nselect 1\n"),
        ("tests/raft/test_x.py", 'def test_x():\n    """r6: a rule."""\n'),
        ("tests/stories/x.txt", "# D4: a rule.\njoin a request=r1\n"),
        ("docs/x.md", "A rule (B3), as `B3` in data.\n\n    why: B3\n"),
        ("docs/x.md", "The \u00a7 of something else.\n"),
        (PRODUCT, "# As in {} 4.\n".format("design")),
        ("docs/rules/more.md", "See {} 4.\n".format("reference")),
        ("docs/rules/engine.md", "- **E-4** A rule.\n- **E-4** Another.\n"),
    ],
)
def test_a_citation_that_leads_nowhere_is_found(small: Path, name: str, text: str) -> None:
    (small / name).parent.mkdir(parents=True, exist_ok=True)
    (small / name).write_text(text)

    assert len(problems(small)) == 1
