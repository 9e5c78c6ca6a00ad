"""`./dev chaos` ends with the exit codes that docs/chaos.md gives `holdfast chaos`."""

from __future__ import annotations

import sys

import pytest

from chaos import run as command
from holdfast.chaos.runner.run import Refused, StagingFailed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused("somebody's"), 2),
        (StagingFailed("the cluster did not start"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_a_run_that_judged_nothing_says_why_by_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["chaos"])
    monkeypatch.setattr(command, "run", fails)

    assert command.main() == code
