"""ARCHITECTURE.md is true of the code: its files, names and bounds, and what each hop leads to."""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.repository import ROOT, import_roots, module_name, nodes, plant, syntax
from tidy.test_layers import ALLOWED, ALLOWED_MORE, imports, under

PAGE = "ARCHITECTURE.md"
LINES_MAX = 140
WIDTH_MAX = 190
LINKED_FROM = ("README.md", "CONTRIBUTING.md")
ROOM_CELLS = 5
"""A row of the table of rooms, split at its bars."""
PATHS = 4
"""A join, a heartbeat alone, a heartbeat on its stream, a call on a Session stream."""

CODE = re.compile(r"`([^`]+)`")
PLACE = re.compile(r"[\w./-]*/[\w./-]*|[\w-]+\.(?:py|md|toml)")
NAMED_IN = re.compile(r"`([\w.]+)` in `([^`]+\.py)`")
BOUND = re.compile(r"`(\w+)` = ([\d,]+)(?: (KiB|MiB))?")
HOP = re.compile(r"(\d+)\. `([^`]+)` `([^`]+)`: (.*)")
ON = re.compile(r"(?:↩ (\d+) )?→ `([\w.]+)`(?: \(`([^`]+)`\))?$")
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20}

Check = Callable[[Path], list[str]]


def page(root: Path) -> list[str]:
    return (root / PAGE).read_text().splitlines()


# --- what a file of code defines, uses, and takes from others ---------------------------------


def last(name: str) -> str:
    """Give the name by which code calls it: `Actors.ask` is `ask`."""
    return name.rpartition(".")[2]


def defined(path: Path) -> set[str]:
    """Collect functions, classes, methods, variables and attributes that a file gives a value."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, NAMED):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def used(path: Path) -> set[str]:
    """Collect the names that a file reads, but for its own variables: `x.commit`, not `commit`."""
    words = [node for node in nodes(path) if isinstance(node, ast.Name | ast.Attribute)]
    names = [node for node in words if isinstance(node, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    return (read - own) | {node.attr for node in words if isinstance(node, ast.Attribute)}


def taken(path: Path) -> set[str]:
    """Collect the names that a file imports from modules."""
    froms = (node for node in nodes(path) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in froms for alias in node.names}


def has(path: Path, name: str) -> bool:
    """Whether a file defines a function, a class, or a method of a class: `Actors.ask`."""
    where: list[ast.stmt] | None = syntax(path).body
    for part in name.split("."):
        named = (node for node in where or () if isinstance(node, NAMED) and node.name == part)
        where = next((node.body for node in named), None)
    return where is not None


def may_call(root: Path, here: Path, there: Path) -> bool:
    """Whether one file's package stands above the other's; it may call it by way of a port."""
    one, other = (module_name(root, path).removeprefix("holdfast.") for path in (here, there))
    below = {allowed.partition(".")[0] for allowed in ALLOWED[one.partition(".")[0]]}
    return under(other, [*below])


def imports_module(root: Path, here: Path, there: Path) -> bool:
    names = [each.name for each in imports(here, module_name(root, here))]
    return any(under(name, [module_name(root, there)]) for name in names)


# --- the checks ----------------------------------------------------------------------------------


def check_size(root: Path) -> list[str]:
    """It stays one page."""
    lines = page(root)
    found = [
        f"{PAGE}:{n}: wider than {WIDTH_MAX}" for n, t in _numbered(lines) if len(t) > WIDTH_MAX
    ]
    return found + ([f"{PAGE}: more than {LINES_MAX} lines"] if len(lines) > LINES_MAX else [])


def _numbered(lines: list[str]) -> Iterator[tuple[int, str]]:
    return enumerate(lines, start=1)


def check_links(root: Path) -> list[str]:
    """Who comes to the project finds it."""
    link = f"]({PAGE})"
    return [name for name in LINKED_FROM if link not in (root / name).read_text()]


def check_places(root: Path) -> list[str]:
    """Every file, folder and module that it names is there.

    A short name (`classic/`) lies in a folder that was named before on the same line.
    """
    found = []
    for number, line in _numbered(page(root)):
        homes = [root]
        for name in CODE.findall(line):
            if PLACE.fullmatch(name):
                place = next((h / name for h in homes if (h / name).exists()), None)
                if place is None:
                    found.append(f"{PAGE}:{number}: there is no {name}")
                elif place.is_dir():
                    homes.append(place)
            elif re.fullmatch(r"holdfast(\.\w+)+", name) and not _is_module(root, name):
                found.append(f"{PAGE}:{number}: there is no module {name}")
    return found


def _is_module(root: Path, name: str) -> bool:
    file = Path(*name.split(".")).with_suffix(".py")
    return any((root / place / file).is_file() for place in import_roots(root))


def check_names(root: Path) -> list[str]:
    """What it says to be in a file is defined there."""
    return [
        f"{PAGE}:{number}: {file} has no {name}"
        for number, line in _numbered(page(root))
        for name, file in NAMED_IN.findall(line)
        if (root / file).is_file() and not has(root / file, name)
    ]


def check_imports(root: Path) -> list[str]:
    """Where a room may import single files of a package, the layers allow just these files."""
    found = []
    for number, line in _numbered(page(root)):
        cells = line.split("|")
        room = CODE.findall(cells[1])[:1] if len(cells) == ROOM_CELLS else []
        stated = set(_modules(root, cells[3])) if room and room[0].endswith("/") else set()
        if stated:
            others = {module.partition(".")[0] for module in stated}
            allowed = allowed_of(module_name(root, root / room[0] / "x.py").split(".")[1])
            due = {module for module in allowed if module.partition(".")[0] in others}
            if due != stated:
                found.append(f"{PAGE}:{number}: it may import {sorted(due)}")
    return found


def _modules(root: Path, cell: str) -> Iterator[str]:
    """Give the modules of the files that a cell names, in the folder before it if it is short."""
    home = root
    for name in CODE.findall(cell):
        if name.endswith("/"):
            home = root / name
        elif name.endswith(".py"):
            file = root / name if (root / name).is_file() else home / name
            yield module_name(root, file).removeprefix("holdfast.")


def allowed_of(package: str) -> set[str]:
    """Collect the single modules of other packages that a package, or a part of it, may import."""
    parts = [more for part, more in ALLOWED_MORE.items() if part.partition(".")[0] == package]
    return {module for more in (ALLOWED[package], *parts) for module in more if "." in module}


def check_bounds(root: Path) -> list[str]:
    """Each bound has, in the file that stands behind it, the value that is stated."""
    found = []
    for number, line in _numbered(page(root)):
        for match in BOUND.finditer(line):
            name, digits, unit = match.groups(default="")
            stated = int(digits.replace(",", "")) * UNITS[unit]
            named = [root / each for each in CODE.findall(line[match.end() :])]
            files = [path for path in named if path.is_file()]
            value = constant(files[0], name) if files else None
            if value != stated:
                found.append(f"{PAGE}:{number}: {name} is {value}, not {stated}")
    return found


def constant(path: Path, name: str) -> int | None:
    """Reckon the number that a file gives to a name, at its top or in a class."""
    for node in nodes(path):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                return number_of(path, node.value)
    return None


def number_of(path: Path, value: ast.expr) -> int | None:
    if isinstance(value, ast.Constant) and isinstance(value.value, int):
        return value.value
    if isinstance(value, ast.Name):
        return constant(path, value.id)
    if isinstance(value, ast.BinOp):
        left, right = number_of(path, value.left), number_of(path, value.right)
        if left is not None and right is not None and isinstance(value.op, ast.Mult | ast.LShift):
            return left * right if isinstance(value.op, ast.Mult) else left << right
    return None


class Hop(NamedTuple):
    """One step of a path: `back` is the hop that it returns to, `by` the file that connects."""

    number: int
    line: int
    file: str
    symbol: str
    back: int
    name: str
    by: str


def paths(root: Path) -> list[list[Hop]]:
    """Give the numbered lists of the page; each begins with 1."""
    found: list[list[Hop]] = []
    for line, text in _numbered(page(root)):
        match = HOP.fullmatch(text)
        if match is None:
            continue
        number, file, symbol, rest = match.groups()
        on = ON.search(rest)
        back, name, by = on.groups(default="") if on else ("", "", "")
        if number == "1":
            found.append([])
        found[-1].append(Hop(int(number), line, file, symbol, int(back or number), name, by))
    return found


def check_hops(root: Path) -> list[str]:
    """Each hop is in its file, and leads to the next one by a name that both know."""
    found = []
    for path in paths(root):
        files = {file for hop in path for file in (hop.file, hop.by) if file}
        if not all((root / file).is_file() for file in files):
            continue  # `check_places` tells of it
        found += [
            f"{PAGE}:{hop.line}: {hop.file} has no {hop.symbol}"
            for hop in path
            if not has(root / hop.file, hop.symbol)
        ]
        for hop, following in pairwise(path):
            here = path[hop.back - 1].file
            if following.number != hop.number + 1:
                found.append(f"{PAGE}:{following.line}: follows hop {hop.number}")
            if not leads(root, root / here, root / following.file, hop):
                found.append(f"{PAGE}:{hop.line}: {here} and {following.file}: no {hop.name!r}")
        if path[-1].name:
            found.append(f"{PAGE}:{path[-1].line}: leads nowhere")
    return found


def leads(root: Path, here: Path, there: Path, hop: Hop) -> bool:
    """Whether `here` calls what `there` defines, or `there` takes it from `here`, as layers allow.

    Or both import it from a third one; or `by`, which imports `here` or is imported by it, calls
    what `there` defines.
    """
    name = last(hop.name)
    if hop.by:
        between = root / hop.by
        knows = imports_module(root, between, here) or imports_module(root, here, between)
        return knows and _calls(root, between, there, name)
    shared = name in taken(here) & taken(there)
    return shared or _calls(root, here, there, name) or _calls(root, there, here, name)


def _calls(root: Path, caller: Path, callee: Path, name: str) -> bool:
    return name in used(caller) and name in defined(callee) and may_call(root, caller, callee)


CHECKS = [
    check_size,
    check_links,
    check_places,
    check_names,
    check_imports,
    check_bounds,
    check_hops,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_page_is_true(check: Check) -> None:
    assert check(ROOT) == []


def test_the_page_has_its_paths_and_bounds() -> None:
    assert [len(path) > 3 for path in paths(ROOT)] == [True] * PATHS
    assert len(BOUND.findall("\n".join(page(ROOT)))) > 20


# --- each check finds what is wrong ------------------------------------------------------------

FILES = {
    "raft/holdfast/raft/a.py": "from holdfast.raft.b import B\nN = 4 << 10\ndef go(): B().take()\n",
    "raft/holdfast/raft/b.py": "class B:\n    n: int = 3\n    def take(self): self.heard()\n",
    "raft/holdfast/raft/c.py": "from x import Y\ndef take(): ...\ndef o(): ...\n",
    "raft/holdfast/raft/d.py": "from x import Y\ndef f(b): o = b.heard = o\ndef send(c): c.up()\n",
    "server/holdfast/server/e.py": "def up(): send()\n",
}
A, B, C, D, E = (f"`{name}`" for name in FILES)


def paged(root: Path, text: str, linked: str = f"[page]({PAGE})") -> Path:
    return plant(root, {**FILES, PAGE: text, "README.md": linked, "CONTRIBUTING.md": linked})


BAD = [
    (check_size, "line\n" * (LINES_MAX + 1)),
    (check_size, "x" * (WIDTH_MAX + 1)),
    (check_places, "`raft/holdfast/raft/gone.py`"),
    (check_places, "`raft/holdfast/raft/` and `gone/`"),
    (check_places, "`gone.py`"),
    (check_places, "`holdfast.raft.gone`"),
    (check_places, "`raft/holdfast/raft/`\n`a.py`"),
    (check_names, f"`B.give` in {B}"),
    (check_names, f"`take` in {B}"),
    (check_imports, f"| `runtime/holdfast/runtime/` | x | of raft {A} |"),
    (check_bounds, f"`N` = 4,097 in {A}"),
    (check_bounds, f"`N` = 4 MiB in {A}"),
    (check_bounds, f"`M` = 4 KiB in {A}"),
    (check_bounds, f"`n` = 3 in {A}, `n` = 3 in {B}"),
    (check_bounds, "`N` = 4 KiB somewhere"),
    (check_hops, f"1. {A} `gone`: x"),
    (check_hops, f"1. {A} `go`: x → `take`"),
    (check_hops, f"1. {A} `go`: x\n2. {B} `B`: x"),
    (check_hops, f"1. {A} `go`: x → `give`\n2. {B} `B`: x"),
    (check_hops, f"1. {A} `go`: x → `take`\n3. {B} `B`: x"),
    (check_hops, f"1. {A} `go`: x → `take`\n2. {D} `f`: x"),
    (check_hops, f"1. {D} `f`: only a variable there → `o`\n2. {C} `o`: x"),
    (check_hops, f"1. {D} `send`: up against the layers → `up`\n2. {E} `up`: x"),
    (check_hops, f"1. {D} `f`: x → `take` ({A})\n2. {B} `B`: x"),
]
GOOD = [
    "line\n" * 120,
    "`raft/holdfast/raft/` and `a.py`, `holdfast.raft.a`, `S9`, `engine-<node>`",
    f"`B.take` in {B}, `go` in {A}",
    f"| `raft/holdfast/raft/` | has {A} | storage |\n| x `raft-<n>` | y | {A} |",
    f"`N` = 4 KiB {A}\n`N` = 4,096; {A}\n`n` = 3 {B}",
    f"1. {A} `go`: calls. → `B.take`\n2. {B} `B.take`: is handed. → `heard`\n3. {D} `f`: x",
    f"1. {C} `take`: shares. → `Y`\n2. {D} `f`: x\n\n1. {B} `B`: goes up. → `take`\n2. {A} `go`: x",
    f"1. {E} `up`: calls down. → `send`\n2. {D} `send`: is taken. → `send`\n3. {E} `up`: x",
    f"1. {A} `go`: x → `take`\n2. {B} `B`: x ↩ 1 → `take`\n3. {C} `take`: x",
    f"1. {B} `B`: x → `take` ({A})\n2. {C} `take`: x",
]


@pytest.mark.parametrize(("check", "text"), BAD)
def test_each_check_finds_what_is_wrong(check: Check, text: str, tmp_path: Path) -> None:
    assert len(check(paged(tmp_path, text))) == 1


@pytest.mark.parametrize("text", GOOD)
def test_what_is_true_passes_every_check(text: str, tmp_path: Path) -> None:
    root = paged(tmp_path, text)

    assert [check(root) for check in CHECKS] == [[]] * len(CHECKS)


def test_a_page_that_nobody_links_is_found(tmp_path: Path) -> None:
    root = paged(tmp_path, "true\n", linked="ARCHITECTURE.md")

    assert check_links(root) == list(LINKED_FROM)
