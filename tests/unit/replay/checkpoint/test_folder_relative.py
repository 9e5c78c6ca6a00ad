"""Workers of a cluster open the checkpoint's state from a folder of their own (docs/replay.md)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from holdfast.replay import app
from holdfast.replay.findings import Report
from holdfast.replay.read.node_logs import NodeLog

pytestmark = pytest.mark.slow  # it imports pyspark


def test_a_relative_folder_is_completed_before_workers_get_paths_in_it(
    nodes: list[Path], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on from what a first one left, so its logs begin in that folder."""
    begun: list[NodeLog] = []

    def verify_logs(_: object, logs: Sequence[NodeLog], *__: object) -> Report:
        begun.extend(logs)
        return Report(())

    monkeypatch.setattr(app, "verify_logs", verify_logs)
    monkeypatch.setattr(app, "_session", lambda *_: nullcontext())
    monkeypatch.chdir(kept.parent)

    app.verify(nodes, checkpoint=Path(kept.name))

    states = {Path(log.begins.path) for log in begun}
    assert {state.parent for state in states} == {kept}
