"""Whoever switches a check off says why, where it is switched off."""

import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, plant, sources, test_sources, where

Check = Callable[[Path], list[str]]
NOQA = re.compile(r"#\s*noqa\b(?!: [A-Z]+\d+(, ?[A-Z]+\d+)* - \S)")
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore\b(?!\[[\w-]+(, ?[\w-]+)*\]  # \S)")
RULE = re.compile(r'^\s+"[A-Z]+\d*",')


def comments(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def check_inline(root: Path) -> list[str]:
    """`# noqa: CODE - why` and `# type: ignore[code]  # why`: never without code and reason."""
    files = [*sources(root), *test_sources(root), *root.glob("dev")]
    return [
        f"{where(root, path)}:{line}: no reason given: {comment}"
        for path in files
        for line, comment in comments(path)
        if NOQA.search(comment) or TYPE_IGNORE.search(comment)
    ]


def check_pyproject(root: Path) -> list[str]:
    """Each rule that pyproject.toml leaves out stands on a line of its own, with its reason."""
    _, _, lint = (root / "pyproject.toml").read_text().partition("[tool.ruff.lint]")
    rules = lint.partition("\n[tool.ruff.lint.isort]")[0].splitlines()
    return [
        f"pyproject.toml: no reason given: {line.strip()}"
        for line in rules
        if RULE.match(line) and not re.search(r"# \S", line)
    ]


@pytest.mark.parametrize("check", [check_inline, check_pyproject])
def test_every_exception_gives_its_reason(check: Check) -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: S101",
        "# noqa: S101, T201",
        "# type: ignore",
        "# type: ignore[attr-defined]",
    ],
)
def test_an_exception_without_a_reason_is_found(comment: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {"raft/holdfast/raft/x.py": f"x = 1  {comment}\n"})

    assert len(check_inline(root)) == 1


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: S101 - the engine's own check",
        "# noqa: S101, T201 - a script",
        "# type: ignore[attr-defined]  # set by pytest",
    ],
)
def test_an_exception_with_a_reason_passes(comment: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {"raft/holdfast/raft/x.py": f"x = 1  {comment}\n"})

    assert check_inline(root) == []


def test_a_rule_left_out_without_a_reason_is_found(tmp_path: Path) -> None:
    plant(tmp_path, {})
    whole = (tmp_path / "pyproject.toml").read_text()
    bare = re.sub(r'(    "CPY001",).*', r"\1", whole)
    assert bare != whole

    (tmp_path / "pyproject.toml").write_text(bare)

    assert check_pyproject(tmp_path) == ['pyproject.toml: no reason given: "CPY001",']
