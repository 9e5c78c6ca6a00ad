"""The row `door`: what it measures is what a node does, and a refusal is no figure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc.aio
import pytest

from bench import door
from bench.rig import Bench, Say
from bench.sizes import QUICK
from holdfast.coordinator.model.state import State

if TYPE_CHECKING:
    from pathlib import Path

FEW = replace(QUICK, door_passes=1, door_calls=20)


def test_each_of_the_two_is_measured_and_has_its_goal(tmp_path: Path) -> None:
    bench = Bench(FEW, tmp_path, Say())
    asyncio.run(door.door(bench))

    goals = {figure.what: figure.goal and figure.goal.value for figure in bench.figures}
    assert goals["authorization of a commit"] == 10
    assert goals["metrics of a commit"] == 5
    assert all(figure.unit == "us/call" and figure.value > 0 for figure in bench.figures)


def test_a_commit_that_is_refused_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal is quick: a row that measured it would praise the wrong thing."""
    monkeypatch.setattr(door, "PRINCIPAL", "holdfast://client/nobody")
    granted = door.granting(4)
    monkeypatch.undo()
    state = door.applied(State(), granted)

    with pytest.raises(grpc.aio.AioRpcError, match="the commit is refused"):
        asyncio.run(
            door.over_tls(tmp_path / "tls", lambda at: door.authorization_us(state, 1, 1, at))
        )
