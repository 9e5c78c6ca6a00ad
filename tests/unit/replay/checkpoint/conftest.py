"""Three nodes and the checkpoint of a first run over them; the nodes have gone on since."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.replay.checkpoint.plain_run import CUT_AT, LOG, grown, run, sealed


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return sealed(tmp_path / "nodes")


@pytest.fixture
def kept(tmp_path: Path, nodes: list[Path]) -> Path:
    """The folder of the checkpoint."""
    folder = tmp_path / "checkpoint"
    first = run(nodes, folder).report
    assert (first.findings, first.trusted) == ((), None)
    assert first.kept == LOG.rows[CUT_AT[1] - 1].position
    grown(nodes)
    return folder
