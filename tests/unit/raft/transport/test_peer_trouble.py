"""Warnings about peers: told once and again when they last, and bounded."""

from __future__ import annotations

import logging

import pytest

from holdfast.raft.transport.peer_trouble import AGAIN_SECONDS, LASTING_SECONDS, TEXTS_MAX, Trouble


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the logger `holdfast.raft` was told, from warnings on."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("holdfast.raft") and record.levelno >= logging.WARNING
    ]


def test_a_lasting_trouble_is_told_again_and_an_old_one_that_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    trouble = Trouble(lambda: now[0])
    for _ in range(5):
        trouble.warn("b", "unlike")
    assert warnings(caplog) == ["unlike"]

    now[0] = AGAIN_SECONDS
    trouble.warn("b", "unlike")
    assert warnings(caplog) == ["unlike"] * 2

    trouble.over("b")
    trouble.warn("b", "unlike")
    assert warnings(caplog) == ["unlike"] * 3


def test_trouble_lasts_while_it_is_met() -> None:
    """`holdfast cluster status` shows it: not after it is over, nor after the peer fell silent."""
    now = [0.0]
    trouble = Trouble(lambda: now[0])
    trouble.warn("from b", "unlike")
    trouble.warn("to b", "refuses")
    assert trouble.lasting() == ["unlike", "refuses"]

    trouble.over("to b")
    assert trouble.lasting() == ["unlike"]

    now[0] = LASTING_SECONDS / 2
    trouble.warn("from b", "unlike")
    now[0] = LASTING_SECONDS
    assert trouble.lasting() == ["unlike"]
    now[0] = 2 * LASTING_SECONDS
    assert trouble.lasting() == []


def test_strangers_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """They choose the name that they are refused for."""
    trouble = Trouble(lambda: 0.0)
    for number in range(10 * TEXTS_MAX):
        trouble.warn("", f"{number} is no peer")

    assert len(warnings(caplog)) == TEXTS_MAX + 1, "and one that says that more are not written"


def test_the_log_says_when_warnings_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is swallowed: a node that is refused later is not told of, and that is told."""
    now = [0.0]
    trouble = Trouble(lambda: now[0])
    for number in range(TEXTS_MAX):
        trouble.warn("", f"{number} is no peer")
    assert len(warnings(caplog)) == TEXTS_MAX

    trouble.warn("", "a certificate has expired")
    assert "not written" in warnings(caplog)[-1]
    assert "a certificate has expired" in warnings(caplog)[-1]

    now[0] = AGAIN_SECONDS
    trouble.warn("", "a certificate has expired")
    assert warnings(caplog)[-1] == "a certificate has expired"
    assert len(warnings(caplog)) == TEXTS_MAX + 2


def test_a_kind_of_trouble_is_told_once_whatever_its_text(caplog: pytest.LogCaptureFixture) -> None:
    """A peer that sends something else at each redial does not fill the log."""
    now = [0.0]
    trouble = Trouble(lambda: now[0])
    for number in range(10 * TEXTS_MAX):
        now[0] += LASTING_SECONDS / 2
        trouble.warn("b", f"{number} too many", "unreadable")
        assert trouble.lasting() == [f"{number} too many"], "people who ask are told the newest"
        assert len(warnings(caplog)) == 1 + int((now[0] - LASTING_SECONDS / 2) // AGAIN_SECONDS)

    caplog.clear()
    now[0] += LASTING_SECONDS + 1
    trouble.warn("b", "again", "unreadable")
    assert warnings(caplog) == ["again"], "it was over, and is not"
