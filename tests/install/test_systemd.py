"""The unit in deploy/systemd: systemd's own tools accept it, and it is what the node expects."""

from __future__ import annotations

import shutil
import subprocess
from configparser import RawConfigParser
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.ending import REMOVED, STOPPED
from tidy.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

UNIT = ROOT / "deploy" / "systemd" / "holdfast.service"
EXPOSURE_MAX = 25
"""Ten times the exposure that `systemd-analyze security` may find: 2.5."""
NO_SUCH_COMMAND = "is not executable: No such file or directory"
"""On a machine where Holdfast is not installed as the unit says: all that `verify` may find."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on PATH"
)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False
    )


def unit() -> RawConfigParser:
    """The unit's settings; of one that is set several times the last value stays."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys have capitals
    parser.read(UNIT)
    return parser


@needs_systemd
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    shutil.copy(UNIT, copy)
    told = analyze("verify", str(copy)).stderr.splitlines()

    assert [line for line in told if NO_SUCH_COMMAND not in line and "holdfast" in line] == []


@needs_systemd
def test_a_node_may_do_little_on_its_machine() -> None:
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", str(UNIT))

    assert done.returncode == 0, done.stdout


def test_a_node_that_must_not_go_on_is_not_started_again() -> None:
    """S6, S21: a person looks first. All else is started until it stays up (a late network).

    S25 e: and one that was removed from the cluster would only be told so again.
    """
    settings = unit()

    assert settings["Service"]["RestartPreventExitStatus"] == f"{STOPPED} {REMOVED}"
    assert settings["Unit"]["StartLimitIntervalSec"] == "0"
    assert settings["Service"]["Restart"] == "on-failure"


def test_the_supervisor_waits_for_what_the_node_tells() -> None:
    """`holdfast.server.process.supervisor` sends all from the main process."""
    service = unit()["Service"]

    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert int(service["WatchdogSec"]) > 0
