"""The programs in docs/clients.md run as they stand there, each against a node of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.client import sync
from holdfast.client.threads import LoopThread
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
ADDRESS = "127.0.0.1:7400"
WITHIN_S = 60
_NODE = LoopThread()


def programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


@contextmanager
def node() -> Iterator[str]:
    """A node with the topic that the page speaks of, served by a thread of its own."""
    running = served()
    address = _NODE.run(running.__aenter__()).address
    try:
        with sync.Admin(address) as admin:
            admin.create_topics({"documents": 4})
        yield address
    finally:
        _NODE.run(running.__aexit__(None, None, None))


@pytest.mark.parametrize("number", range(len(programs())))
def test_a_program_of_the_page_runs_to_its_end(number: int) -> None:
    program = programs()[number]
    assert ADDRESS in program
    with node() as address:
        ended = subprocess.run(
            [sys.executable, "-c", program.replace(ADDRESS, address)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr


def test_the_page_has_programs() -> None:
    assert len(programs()) >= 6
