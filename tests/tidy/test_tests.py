"""Tests wait for what they need, never for a time: a sleep is too long here and too short there."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tidy.repository import ROOT, nodes, plant, test_sources, where

# The one helper that may sleep, between two looks at a real process; programs that pace a job or an
# attack; and the simulator, whose sleeps take no time: its loop's clock is virtual.
MAY_SLEEP = [
    "tests/harness/poll.py",
    "tests/harness/hostile.py",
    "tests/harness/strangers.py",
    "tests/harness/hostile_calls.py",
    "tests/demo/",
    "tests/bench/",
    "tests/chaos/",
    "tests/simulation/",
]
MODULES = {"time", "asyncio"}


def check_sleeps(root: Path) -> list[str]:
    """No sleeping in tests, outside the polling helper; `sleep(0)` only yields and is free."""
    return [
        f"{where(root, path, call)}: sleeps; poll with a deadline (harness.poll) or move the clock"
        for path in test_sources(root)
        if not str(path.relative_to(root)).startswith(tuple(MAY_SLEEP))
        for call in sleeps(nodes(path))
    ]


def sleeps(every: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """Go through the calls of time.sleep and asyncio.sleep, under whatever name."""
    imported = {
        alias.asname or alias.name
        for node in every
        if isinstance(node, ast.ImportFrom) and node.module in MODULES
        for alias in node.names
        if alias.name == "sleep"
    }
    for node in every:
        if isinstance(node, ast.Call) and is_sleep(node.func, imported) and not is_zero(node):
            yield node


def is_sleep(function: ast.expr, imported: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in imported
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "sleep"
        and isinstance(function.value, ast.Name)
        and function.value.id in MODULES
    )


def is_zero(call: ast.Call) -> bool:
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value == 0


def test_no_test_sleeps() -> None:
    assert check_sleeps(ROOT) == []


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(0.1)\n",
        "import asyncio\nasync def f():\n    await asyncio.sleep(delay)\n",
        "from time import sleep as wait\nwait(1)\n",
    ],
)
def test_a_sleep_is_found(text: str, tmp_path: Path) -> None:
    assert len(check_sleeps(plant(tmp_path, {"tests/unit/test_x.py": text}))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tests/unit/test_x.py", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n"),
        ("tests/unit/test_x.py", "clock.sleep(1)\n"),
        ("tests/harness/poll.py", "import time\ntime.sleep(0.02)\n"),
    ],
)
def test_what_does_not_wait_passes(name: str, text: str, tmp_path: Path) -> None:
    assert check_sleeps(plant(tmp_path, {name: text})) == []
