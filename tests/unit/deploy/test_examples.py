"""What deploy/ offers for copying is read by the code that it is for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.server.config import load

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_the_example_configuration_is_one(tmp_path: Path) -> None:
    for name in ("ca.pem", "node-1.pem", "node-1.key"):
        (tmp_path / name).write_text("a certificate")
    shutil.copy(DEPLOY / "node.toml", tmp_path)

    config = load(tmp_path / "node.toml", {}, ())

    assert config.name == "node-1"
    assert [peer.name for peer in config.peers] == ["node-1", "node-2", "node-3"]
    assert dict(config.settings) == {"group.initial_rebalance_delay_ms": "3000"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd on this machine")
def test_the_unit_is_understood_by_systemd(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "holdfast.service").read_text()
    runnable = unit.replace("/opt/holdfast/bin/holdfast", "/bin/true")
    (tmp_path / "holdfast.service").write_text(runnable)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "holdfast.service")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "holdfast.service" not in done.stderr, done.stderr
