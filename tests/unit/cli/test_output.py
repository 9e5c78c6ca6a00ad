"""Output that cannot be written ends a command with one sentence and code 1, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.children import environment

FULL = "/dev/full"
"""Each write to it fails as on a full disk."""


def ended(redirection: str, *command: str, **setting: str) -> tuple[int, str]:
    """The exit code and standard error of a command whose output a shell has redirected so."""
    line = f'exec "$0" -m holdfast.cli "$@" {redirection}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, *command],
        env={**environment(), **setting},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", [("--help",), ("--version",), ("topic", "list", "--help")])
@pytest.mark.parametrize("setting", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_full_disk_is_told_in_one_sentence(
    command: tuple[str, ...], setting: dict[str, str]
) -> None:
    """Also where click writes the bytes itself, because the locale is one of ASCII."""
    told = "holdfast: cannot write the output: No space left on device\n"
    assert ended(f"> {FULL}", *command, **setting) == (1, told)


def test_output_that_nobody_opened_is_not_dropped_silently() -> None:
    told = "holdfast: cannot write the output: standard output is closed\n"
    assert ended(">&-", "--help") == (1, told)


def test_what_prints_nothing_needs_no_output() -> None:
    code, told = ended(">&-", "topic", "list", "--address", "no-port")
    assert code == 2
    assert "no-port" in told


def test_a_closed_pipe_ends_a_command_quietly() -> None:
    """`holdfast log tail | head` is daily life."""
    assert ended("> >(exec true)", "--help")[1] == ""
