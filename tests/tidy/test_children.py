"""A Python that the product starts imports nothing from the directory in which it was started."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, nodes, plant, sources, where

SAFE = "-P"
"""Leaves the working directory out of sys.path (Python 3.11)."""
VARIABLE = "PYTHONSAFEPATH"
"""Does the same where another program puts the command together, as Spark does."""


def starters(root: Path) -> Iterator[Path]:
    """Product code, and the demo: what people run in directories of their own."""
    yield from sources(root)
    yield from sorted((root / "tests" / "demo").rglob("*.py"))


def check_children(root: Path) -> list[str]:
    """After `sys.executable` comes `-P`; in settings of others, PYTHONSAFEPATH stands beside it."""
    found = []
    for path in starters(root):
        every = nodes(path)
        safe = {id(node) for node in _followed_by_safe(every)}
        if any(isinstance(n, ast.Constant) and VARIABLE in str(n.value) for n in every):
            safe |= {id(node) for node in _values(every)}
        found += [
            f"{where(root, path, node)}: a child is started without {SAFE}"
            for node in every
            if isinstance(node, ast.expr) and _is_python(node) and id(node) not in safe
        ]
    return found


def _is_python(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
            return True
    return False


def _followed_by_safe(every: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in every:
        if isinstance(node, ast.List | ast.Tuple):
            for python, option in zip(node.elts, node.elts[1:], strict=False):
                if isinstance(option, ast.Constant) and option.value == SAFE:
                    yield python


def _values(every: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in every:
        if isinstance(node, ast.Dict):
            yield from node.values


def test_no_child_imports_from_the_working_directory() -> None:
    assert check_children(ROOT) == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("raft/holdfast/raft/x.py", 'c = [sys.executable, "-m", "holdfast.x"]'),
        ("server/holdfast/server/x.py", 'C = (sys.executable, "-m", "holdfast.cli")'),
        ("server/holdfast/server/x.py", 'c = ["nice", sys.executable, "x.py"]'),
        ("server/holdfast/server/x.py", "os.execv(sys.executable, arguments)"),
        ("replay/holdfast/replay/x.py", 's = {"spark.pyspark.python": sys.executable}'),
        ("tests/demo/x.py", 'c = [sys.executable, "-m", "demo.x"]'),
    ],
)
def test_a_child_without_it_is_found(name: str, code: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {name: f'"""A file."""\nimport sys\n{code}\n'})

    assert len(check_children(root)) == 1


@pytest.mark.parametrize(
    "code",
    [
        'c = [sys.executable, "-P", "-m", "holdfast.x"]',
        's = {"spark.pyspark.python": sys.executable, "spark.executorEnv.PYTHONSAFEPATH": "1"}',
    ],
)
def test_a_child_with_it_passes(code: str, tmp_path: Path) -> None:
    root = plant(tmp_path, {"raft/holdfast/raft/x.py": f'"""A file."""\nimport sys\n{code}\n'})

    assert check_children(root) == []
