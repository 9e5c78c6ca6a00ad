"""Three nodes and the checkpoint of a first run over them; the nodes have gone on since."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from unit.replay.checkpoint.plain_run import CUT_AT, LOG, NODES, grown, run, sealed


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nodes as they are before the first run; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sealed(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(sound, tmp_path / "nodes")
    return [tmp_path / "nodes" / name for name in NODES]


@pytest.fixture
def kept(tmp_path: Path, nodes: list[Path]) -> Path:
    """The folder of the checkpoint."""
    folder = tmp_path / "checkpoint"
    first = run(nodes, folder).report
    assert (first.findings, first.trusted) == ((), None)
    assert first.kept == LOG.rows[CUT_AT[1] - 1].position
    grown(nodes)
    return folder
