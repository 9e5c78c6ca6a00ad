"""The job: one result row for every .py file of the running Python's standard library.

Pure functions over files; `python -m demo.job FILE` is the plain single process that the cluster's
result is compared with. Knows neither Holdfast nor the store.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import sysconfig
import warnings
import zlib
from pathlib import Path
from typing import Final, NamedTuple

GROUP: Final = "stdlib-indexers"
TOPIC: Final = "stdlib-files"
PARTITIONS: Final = 21
"""Seven workers have three each. Of a number that seven does not divide, Kafka's rule gives the
seventh one more if its member id comes early (K-P13), and then one more moves than has to."""
_NOT_THE_LIBRARY: Final = {"site-packages", "dist-packages", "__pycache__"}
_NICENESS: Final = 10


class Row(NamedTuple):
    """What the index says about a file. `functions`, `classes`: -1 if it is no valid Python."""

    path: str
    size: int
    lines: int
    functions: int
    classes: int
    sha256: str


def library() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib"))


def files(root: Path) -> list[str]:
    """Every .py file below `root` that the library itself brings, as relative paths in order."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return sorted(str(path) for path in found if not _NOT_THE_LIBRARY.intersection(path.parts))


def partition_of(path: str) -> int:
    """The partition that a file belongs to: by hash of its path, the same in every process."""
    return zlib.crc32(path.encode()) % PARTITIONS


def index(root: Path, path: str) -> Row:
    """Read one file and count what is in it."""
    content = (root / path).read_bytes()
    functions, classes = _count(content)
    return Row(
        path,
        len(content),
        len(content.splitlines()),
        functions,
        classes,
        hashlib.sha256(content).hexdigest(),
    )


def _count(content: bytes) -> tuple[int, int]:
    """Functions and classes. The library has broken files on purpose: food for its own tests."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the style of other people's code
            nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return -1, -1
    functions = sum(isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef) for n in nodes)
    return functions, sum(isinstance(n, ast.ClassDef) for n in nodes)


def read_rows(file: Path) -> list[Row]:
    """What the plain process has written."""
    return [Row(*values) for values in json.loads(file.read_text())]


def main(out: Path) -> None:
    """Compute the whole index alone, one file after another."""
    os.nice(_NICENESS)  # the cluster's job is the one that people watch
    root = library()
    draft = out.with_suffix(".draft")
    draft.write_text(json.dumps([index(root, path) for path in files(root)]))
    draft.replace(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
