"""Which cluster a command means: an explicit option beats the environment, and two must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.server import cluster_file
from holdfast.server.cli import main, patience

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "127.0.0.1:1"
"""Nobody may listen on this port."""


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a cluster without TLS that HOLDFAST_CLUSTER names; it does not answer."""
    monkeypatch.setattr(patience, "UNCONNECTED_SECONDS", 0.0)
    node = cluster_file.NodeEntry("node-1", "127.0.0.1:2", "127.0.0.1:3", 1, "data")
    content = cluster_file.ClusterFile("c", (node,), None)
    cluster_file.write(tmp_path / cluster_file.NAME, content)
    monkeypatch.setenv("HOLDFAST_CLUSTER", str(tmp_path))
    return tmp_path


def told(code: int, *options: str) -> str:
    """What a command with these options says on standard error."""
    ended = CliRunner().invoke(main, ["group", "list", *options])
    assert ended.exit_code == code, ended.output
    return ended.stderr


@pytest.mark.usefixtures("local")
def test_the_environment_names_the_cluster_where_no_option_does() -> None:
    assert "127.0.0.1:2" in told(3)


@pytest.mark.usefixtures("local")
def test_an_address_beats_the_environment() -> None:
    assert f"last: {NOWHERE}" in told(3, "--address", NOWHERE)


def test_a_cluster_and_an_address_contradict_each_other(local: Path) -> None:
    sentence = told(2, "--address", NOWHERE, "--cluster", str(local))

    assert "--cluster" in sentence
    assert "--address" in sentence
    assert "one of them" in sentence


@pytest.mark.parametrize("named", [False, True])
def test_tls_is_what_is_shown_however_the_cluster_was_found(local: Path, *, named: bool) -> None:
    """Its files are looked at first, so a folder that has none is told."""
    options = ("--cluster", str(local)) if named else ()

    assert f"cannot read {local}/none/ca.pem" in told(1, "--tls", f"{local}/none", *options)
