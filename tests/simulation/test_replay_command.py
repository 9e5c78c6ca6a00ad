"""What a broken seed prints can be run again as it stands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple, cast

import pytest

from simulation import run
from simulation.faults import Planned

if TYPE_CHECKING:
    from simulation.outcome import Outcome


class Done(NamedTuple):
    """As much of an outcome as the command needs."""

    seed: int
    faults: list[Planned]


@pytest.mark.parametrize("numbers", [(), (3,), (3, 7, 12)])
def test_the_printed_command_asks_for_the_same_faults(
    monkeypatch: pytest.MonkeyPatch, numbers: tuple[int, ...]
) -> None:
    """A shell takes it apart; that no fault is needed must come out as none, not as all."""
    asked: list[tuple[int, str | None]] = []

    def one(seed: int, *, shrinking: bool, only: str | None) -> int:
        del shrinking
        asked.append((seed, only))
        return 0

    monkeypatch.setattr(run, "_one", one)
    faults = [Planned(number, number, "crash", "leader", 0) for number in numbers]
    command = run.replay_command(cast("Outcome", Done(7, faults)))
    tool, name, *arguments = shlex.split(command)
    run.main(arguments)

    assert (tool, name) == ("./dev", "sim")
    assert asked == [(7, ",".join(map(str, numbers)))]
