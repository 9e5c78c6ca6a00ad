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

from holdfast.cli.local_cluster.layout import CLIENT_FOLDER
from holdfast.client import sync
from holdfast.client.sync.threads import LoopThread
from holdfast.coordinator.model.events import LevelRaised
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.server.security.certificates import issue, make_authority
from unit.server.nodes import served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unit.server.nodes import Served

PAGE = Path(__file__).parents[3] / "docs" / "clients.md"
ADDRESS = "127.0.0.1:7400"
WITHIN_S = 60
_NODE = LoopThread()


def programs() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


@contextmanager
def node(directory: Path) -> Iterator[Served]:
    """A node with the topic that the page speaks of, served by a thread of its own.

    Its files lie as `holdfast cluster start --dir local` puts them.
    """
    authority, local = make_authority("c"), directory / "local"
    tls = issue(authority, local / "node-1", "n", "holdfast://node/node-1", ["127.0.0.1"])
    issue(authority, local / CLIENT_FOLDER, "local", "holdfast://client/local", [])
    running = served(tls=tls)
    node = _NODE.run(running.__aenter__())
    try:
        node.replica.slip_in("", LevelRaised(LEVEL_MAX))  # as a new cluster has it
        with sync.Admin(node.address) as admin:
            admin.create_topics({"documents": 4})
        yield node
    finally:
        _NODE.run(running.__aexit__(None, None, None))


@pytest.mark.parametrize("number", range(len(programs())))
def test_a_program_of_the_page_runs_to_its_end(number: int, tmp_path: Path) -> None:
    program = programs()[number]
    assert ADDRESS in program
    path = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
    with node(tmp_path) as running:
        address = running.secure_address if "credentials=" in program else running.address
        ended = subprocess.run(
            [sys.executable, "-c", program.replace(ADDRESS, address)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "HOSTNAME": "indexer-0"},
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr


def test_the_page_has_programs() -> None:
    assert len(programs()) >= 6


def test_the_page_has_a_program_with_tls() -> None:
    """TLS is what a cluster has unless told otherwise."""
    assert any("credentials=" in program for program in programs())
