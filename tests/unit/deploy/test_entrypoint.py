"""The first process of a container: passes signals and the exit code on, and holds after code 6."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from harness.poll import until
from holdfast.cli.ending import REMOVED, STOPPED
from tidy.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENTRYPOINT = ROOT / "deploy" / "docker" / "entrypoint"
MARK = "held=/tmp/holdfast-held"
SECONDS_MAX = 30.0
WAITS = 'trap "echo told; exit 0" TERM; echo runs; while :; do sleep 0.05; done'


class Place:
    """A folder with an entrypoint whose mark lies there, and a shell script as `holdfast`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, folder / "held"
        self.started: list[subprocess.Popen[str]] = []

    def start(self, script: str, *words: str) -> subprocess.Popen[str]:
        text = ENTRYPOINT.read_text()
        assert text.count(MARK) == 1
        for name, content in (
            ("entrypoint", text.replace(MARK, f"held={self.mark}")),
            ("holdfast", f'#!/bin/sh\necho "$@" >> {self.folder}/calls\n{script}\n'),
        ):
            (self.folder / name).write_text(content)
            (self.folder / name).chmod(0o755)
        path = os.pathsep.join([str(self.folder), os.environ["PATH"]])
        with (self.folder / "log").open("a") as log:
            process = subprocess.Popen(
                [str(self.folder / "entrypoint"), *words],
                env={"PATH": path}, stdout=log, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def says(self, text: str) -> None:
        until(lambda: text in (self.folder / "log").read_text(), text, within_s=SECONDS_MAX)

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for each in made.started:
        with suppress(ProcessLookupError):  # of its group, `sleep` is left where it has ended
            os.killpg(each.pid, signal.SIGKILL)
        each.wait()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_nodes_exit_code_is_passed_on(place: Place, code: int) -> None:
    assert place.start(f"exit {code}", "node", "--config", "a b").wait(SECONDS_MAX) == code
    assert place.calls == ["node --config a b"]
    assert not place.mark.exists()


def test_a_stop_reaches_the_node_and_its_end_is_waited_for(place: Place) -> None:
    """The kernel gives process 1 no signal without a handler, and here is one from the start."""
    process = place.start(WAITS, "node")
    place.says("runs")
    process.terminate()

    assert process.wait(SECONDS_MAX) == 0
    place.says("told")


def test_a_node_that_must_not_go_on_is_held_and_not_started_again(place: Place) -> None:
    """As RestartPreventExitStatus= in the unit: supervisors of containers start everything."""
    process = place.start(f"exit {STOPPED}", "node")
    place.says("It is not started again before somebody has looked")
    again = place.start("exit 0", "node")  # its supervisor has started the container again

    until(lambda: (place.folder / "log").read_text().count("stopped because") == 2, "both hold")
    assert place.calls == ["node"]
    for each in (process, again):
        each.terminate()
        assert each.wait(SECONDS_MAX) == STOPPED


def test_s25e_a_removed_node_is_held_with_its_own_code_and_sentence(place: Place) -> None:
    """It would be told again that it is out, for as long as its supervisor starts it."""
    process = place.start(f"exit {REMOVED}", "node")
    place.says("remove this container and its data")
    again = place.start("exit 0", "node")

    until(lambda: (place.folder / "log").read_text().count("was removed") == 2, "both hold")
    assert place.calls == ["node"]
    for each in (process, again):
        each.terminate()
        assert each.wait(SECONDS_MAX) == REMOVED


@pytest.mark.parametrize("words", [("cluster", "status"), ("node", "recover", "--from-survivor")])
def test_another_command_takes_the_entrypoints_place(place: Place, words: tuple[str, ...]) -> None:
    """So that it may ask the person at the terminal, also beside a node that is held."""
    place.mark.touch()
    process = place.start(f"exit {STOPPED}", *words)

    assert process.wait(SECONDS_MAX) == STOPPED
    assert place.calls == [" ".join(words)]
