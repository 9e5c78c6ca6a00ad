"""A cluster that cannot be had for a run ends the run in one sentence."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.cluster import staging, target
from holdfast.chaos.cluster.staging import Staging, StagingFailed

if TYPE_CHECKING:
    from pathlib import Path

SILENT = "import signal; print('still waiting', flush=True); signal.pause()"
DIES = "raise SystemExit('no port is free')"


@pytest.mark.parametrize(
    ("program", "said"),
    [(SILENT, "runs, but does not serve"), (DIES, "did not start: no port is free")],
)
def test_a_cluster_that_never_serves_is_a_failed_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """docs/chaos.md: exit code 3, which `holdfast chaos` gives for StagingFailed alone."""
    monkeypatch.setattr(staging, "COMMAND", (sys.executable, "-c", program))
    if program is SILENT:
        monkeypatch.setattr(target, "PATIENCE_S", 0.0)

    async def stages() -> None:
        async with Staging(tmp_path / "cluster", 3, 7, ()):
            pytest.fail("there is no cluster")

    with pytest.raises(StagingFailed, match=said):
        asyncio.run(stages())
