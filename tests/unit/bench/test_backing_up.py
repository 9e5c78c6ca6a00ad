"""The row `backup`: when the nodes are quiet, and that a command which fails is no figure."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench import backing_up, commands, sealing
from bench.nodes import Node, Program
from bench.rig import Bench, Running, Say
from bench.sizes import QUICK
from bench.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_command_that_fails_is_told_with_its_own_words(tmp_path: Path) -> None:
    command = tmp_path / "holdfast"
    command.write_text("#!/bin/sh\necho holdfast: no node answers >&2\nexit 1\n")
    command.chmod(0o755)
    bench = Bench(QUICK, tmp_path, Say(), program=Program((str(command),)))

    with pytest.raises(commands.CommandFailed, match="backup create: holdfast: no node answers"):
        asyncio.run(commands.run(bench, "backup", "create"))


def test_the_size_is_that_of_all_files_that_the_manifest_lists(tmp_path: Path) -> None:
    listed = {"state": {"size": 7}, "files": [{"size": 20}, {"size": 300}]}
    (tmp_path / "manifest.json").write_text(json.dumps(listed))
    assert backing_up._bytes(tmp_path) == 327


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[list[int]]], float]:
    """Waits until two nodes are quiet that are seen at these entries; returns the time it took."""

    def wait(looks: list[list[int]]) -> float:
        now = [0.0]

        async def during(_: object, seconds: float) -> list[float]:
            now[0] += 10 * seconds
            if len(looks) > 1:
                looks.pop(0)
            return []

        monkeypatch.setattr(time, "perf_counter", lambda: now[0])
        monkeypatch.setattr(sealing, "sealed_up_to", lambda node: looks[0][node])
        cluster = type("C", (), {"nodes": (0, 1)})
        running: Any = cast("Any", Running)(cluster, None)
        steady = cast("Steady", type("S", (), {"during": during})())
        asyncio.run(backing_up._until_quiet(Bench(QUICK, tmp_path, Say()), running, steady))
        return now[0]

    return wait


def test_nothing_is_measured_while_one_node_has_sealed_more_than_another(
    quiet: Callable[[list[list[int]]], float],
) -> None:
    """They seal one after another, and the last one would do it beside the backup."""
    looks = [[0, 0], [9, 0], *[[9, 0]] * 40, [9, 9]]
    assert quiet(looks) >= 42 * 2.0 + backing_up.QUIET_S
    assert looks == [[9, 9]]


def test_a_node_has_sealed_up_to_the_end_of_its_newest_segment(tmp_path: Path) -> None:
    """A late node makes one segment of two, so their number says nothing."""
    node = Node("node-1", "", 0, tmp_path)
    (tmp_path / "node.log").write_text("")
    assert sealing.sealed_up_to(node) == 0
    (tmp_path / "node.log").write_text(
        'message="sealed segment 00000002-00001110"\n'
        'level=warning message="no room"\n'
        'message="sealed segment 00001111-00004590"\n'
    )
    assert sealing.sealed_up_to(node) == 4590
