"""What the checks of tests/tidy look at: the roots, the sources, their syntax.

Every check takes the repository's root as an argument and returns sentences, one a violation, so
that its self-test can hand it a small bad tree. Knows files and syntax; never imports what it
reads.
"""

import ast
import gc
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("_pb2.py", "_pb2_grpc.py")


def pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def import_roots(root: Path) -> list[str]:
    """Name the folders that hold a `holdfast/` folder, as pyproject.toml lists them."""
    roots: list[str] = pyproject(root)["tool"]["hatch"]["build"]["dev-mode-dirs"]
    return roots


def sources(root: Path) -> Iterator[Path]:
    """Go through the product's own modules; generated ones are left out."""
    for place in import_roots(root):
        yield from _python_files(root / place / "holdfast")


def test_sources(root: Path) -> Iterator[Path]:
    """Go through everything under tests/: tests, harness, demo, bench."""
    yield from _python_files(root / "tests")


test_sources.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever its name


def _python_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.py")):
        if not path.name.endswith(GENERATED):
            yield path


def module_name(root: Path, path: Path) -> str:
    """Name the module of a file: raft/holdfast/raft/x.py is holdfast.raft.x."""
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts[parts.index("holdfast") :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def syntax(path: Path) -> ast.Module:
    """Parse a file, without the search for cycles that ever more syntax in memory would prolong.

    Syntax has no cycles, stays until the end, and is parsed in a third of the time.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text(), filename=str(path))
    finally:
        gc.enable()
        gc.freeze()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """List all nodes of a file as `ast.walk` does, which takes much longer than to look at them."""
    return tuple(ast.walk(syntax(path)))


def where(root: Path, path: Path, node: ast.stmt | ast.expr | None = None) -> str:
    """Give the place of a violation in the form that editors open."""
    line = f":{node.lineno}" if node is not None else ""
    return f"{path.relative_to(root)}{line}"


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Write a small repository for a self-test; its pyproject names the real import roots."""
    (root / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
