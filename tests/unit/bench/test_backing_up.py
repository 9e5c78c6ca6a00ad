"""The row `backup`: when the nodes are quiet, and that a command which fails is no figure."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench import backing_up, sealing
from bench.nodes import Program
from bench.rig import Bench, Running, Say
from bench.sizes import QUICK
from bench.steady import Steady

if TYPE_CHECKING:
    from pathlib import Path


def test_a_command_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    command = tmp_path / "holdfast"
    command.write_text("#!/bin/sh\necho holdfast: no node answers >&2\nexit 1\n")
    command.chmod(0o755)
    bench = Bench(QUICK, tmp_path, Say(), program=Program((str(command),)))

    with pytest.raises(backing_up.CommandFailed, match="backup create: holdfast: no node answers"):
        asyncio.run(backing_up._run(bench, "create"))


def test_the_size_is_that_of_all_files_that_the_manifest_lists(tmp_path: Path) -> None:
    listed = {"state": {"size": 7}, "files": [{"size": 20}, {"size": 300}]}
    (tmp_path / "manifest.json").write_text(json.dumps(listed))
    assert backing_up._bytes(tmp_path) == 327


def test_nothing_is_measured_while_one_node_has_sealed_more_than_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They seal one after another, and the last one would do it beside the backup."""
    now, looks = [0.0], [[0, 0], [1, 0], *[[1, 0]] * 40, [1, 1]]

    async def during(_: object, seconds: float) -> list[float]:
        now[0] += 10 * seconds
        if len(looks) > 1:
            looks.pop(0)
        return []

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sealing, "sealed", lambda node: looks[0][node])
    running: Any = cast("Any", Running)(cast("Any", type("C", (), {"nodes": (0, 1)})), None)
    steady = cast("Steady", type("S", (), {"during": during})())
    asyncio.run(backing_up._until_quiet(Bench(QUICK, tmp_path, Say()), running, steady))

    assert looks == [[1, 1]]
    assert now[0] >= 42 * 2.0 + backing_up.QUIET_S
