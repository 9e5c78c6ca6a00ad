"""What a file of ours must have, and what it must not grow into."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidy.repository import ROOT, nodes, plant, sources, syntax, test_sources, where

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 450
Check = Callable[[Path], list[str]]


def all_files(root: Path) -> Iterator[Path]:
    yield from sources(root)
    yield from test_sources(root)
    yield from root.glob("dev")


def check_function_length(root: Path) -> list[str]:
    """A function fits on a screen: at most 70 lines."""
    found = []
    for path in all_files(root):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    found.append(f"{where(root, path, node)}: {node.name} has {lines} lines")
    return found


def check_file_length(root: Path) -> list[str]:
    """A file has one subject: at most 450 lines (`dev` is one file on purpose)."""
    lengths = {path: len(path.read_text().splitlines()) for path in all_files(root)}
    return [
        f"{where(root, path)}: {lines} lines"
        for path, lines in lengths.items()
        if lines > FILE_LINES_MAX and path.name != "dev"
    ]


def check_docstrings(root: Path) -> list[str]:
    """A file opens by saying what it is for."""
    return [
        f"{where(root, path)}: no docstring"
        for path in all_files(root)
        if ast.get_docstring(syntax(path)) is None
    ]


def check_public_names(root: Path) -> list[str]:
    """A package says what is public: `__all__` in each `__init__.py` that has names, all bound."""
    found = []
    for path in sources(root):
        if path.name != "__init__.py":
            continue
        bound, public = names_bound(syntax(path)), names_public(syntax(path))
        if public is None and any(not name.startswith("_") for name in bound):
            found.append(f"{where(root, path)}: no __all__")
        found += [
            f"{where(root, path)}: __all__ names {name}, which is not there"
            for name in sorted({*(public or ())} - bound)
        ]
    return found


def names_bound(tree: ast.Module) -> set[str]:
    """Collect the names that a module binds at its top, `__future__` aside."""
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            bound |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign):
            bound |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            bound.add(node.target.id)
    return bound


def names_public(tree: ast.Module) -> list[str] | None:
    """Read the literal `__all__`; None if there is none."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id == "__all__" and isinstance(node, ast.Assign):
            return [str(name) for name in ast.literal_eval(node.value)]
    return None


CHECKS = [check_function_length, check_file_length, check_docstrings, check_public_names]
LONG = '"""A file."""\n\ndef long() -> None:\n' + "    pass\n" * FUNCTION_LINES_MAX
PACKAGE = "raft/holdfast/raft/__init__.py"
BAD = [
    (check_function_length, "raft/holdfast/raft/x.py", LONG),
    (check_function_length, "tests/unit/test_x.py", LONG.replace("def", "async def")),
    (check_file_length, "raft/holdfast/raft/x.py", '"""A file."""\n' * (FILE_LINES_MAX + 1)),
    (check_docstrings, "raft/holdfast/raft/x.py", "x = 1\n"),
    (check_docstrings, "tests/unit/test_x.py", "# a comment is no docstring\n"),
    (check_public_names, PACKAGE, '"""A package."""\nfrom holdfast.raft.x import y\n'),
    (check_public_names, PACKAGE, '"""A package."""\n__all__ = ["y"]\n'),
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_repository_is_tidy(check: Check) -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(("check", "name", "text"), BAD)
def test_each_check_finds_what_it_forbids(
    check: Check, name: str, text: str, tmp_path: Path
) -> None:
    assert len(check(plant(tmp_path, {name: text}))) == 1


def test_a_function_of_the_longest_length_passes(tmp_path: Path) -> None:
    longest = LONG.removesuffix("    pass\n")
    root = plant(tmp_path, {"raft/holdfast/raft/x.py": longest})

    assert check_function_length(root) == []
