"""Clusters that the tests of a file share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.processes import INSECURE, running

Stopped = Callable[[int, Path], Path]


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
