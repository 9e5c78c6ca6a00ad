"""Clusters that the tests of a file share, and which files begin first."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.processes import INSECURE, running
from harness.file_order import longest_first

Stopped = Callable[[int, Path], Path]

HERE = Path(__file__).parent
LONGEST = (
    "test_upgrade.py",
    "test_peer_port.py",
    "test_chaos.py",
    "test_power_cut.py",
    "test_fetching.py",
    "test_restore.py",
    "test_starting.py",
    "test_certificates.py",
    "test_retention.py",
    "test_flips.py",
    "test_starting_without_data.py",
    "test_backup.py",
    "test_nodes.py",
    "test_copied_directory.py",
)
"""Files that begin before all others, the longest first: one that began last would end alone."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first if this folder runs by itself."""
    longest_first(items, HERE, LONGEST)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    """Puts a cluster of so many nodes, which served and was stopped, into a test's folder.

    One is started for each size, and copied. Nothing of it is started twice at the same time.
    """
    made: dict[int, Path] = {}

    def copied(nodes: int, folder: Path) -> Path:
        if nodes not in made:
            made[nodes] = tmp_path_factory.mktemp("stopped") / "c"
            with running(made[nodes], nodes, *INSECURE) as cluster:
                cluster.settled()
            assert cluster.process.returncode == 0
        return Path(shutil.copytree(made[nodes], folder / "c"))

    return copied
