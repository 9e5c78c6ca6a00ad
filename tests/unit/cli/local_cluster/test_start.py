"""`holdfast cluster start` on a laid-out directory: only what would change is called ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from holdfast.cli.local_cluster import layout
from holdfast.cli.local_cluster import start as local_start
from holdfast.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

FIRST = (
    *("--nodes", "3", "--port-base", "7400", "--insecure-loopback"),
    *("--set", "raft.heartbeat_ms=70", "--set", "group.max_size=9"),
)


class Idle:
    """A cluster that was asked to stop when it had served."""

    served = True

    def __init__(self, *_arguments: object) -> None:
        """As the real one is made."""

    def run(self) -> bool:
        """Nothing."""
        return self.served


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a cluster that was started with FIRST."""
    monkeypatch.setattr(local_start, "LocalCluster", Idle)
    monkeypatch.setattr(layout, "is_taken", lambda _address: False)
    assert start(tmp_path / "local", *FIRST) == ""
    return tmp_path / "local"


def start(directory: Path, *options: str) -> str:
    """What it says on standard error."""
    ended = CliRunner().invoke(main, ["cluster", "start", "--dir", str(directory), *options])
    assert ended.exit_code == 0, ended.output
    return ended.stderr


@pytest.mark.parametrize("options", [(), FIRST, ("--set", "raft.heartbeat_ms = 070")])
def test_what_is_in_force_already_is_no_news(local: Path, options: tuple[str, ...]) -> None:
    assert start(local, *options) == ""


@pytest.mark.parametrize(
    ("differs", "named"),
    [
        (("--nodes", "5"), "--nodes"),
        (("--port-base", "7401"), "--port-base"),
        (("--set", "raft.heartbeat_ms=71"), "--set raft.heartbeat_ms=71"),
        (("--set", "node.disk_reserve_bytes=5"), "--set node.disk_reserve_bytes=5"),
        (("--set", "group.max_size=10"), "--set group.max_size=10"),
        (("--set", "nonsense=1"), "--set nonsense=1"),
    ],
)
def test_what_differs_from_what_is_in_force_is_named_and_nothing_else(
    local: Path, differs: tuple[str, str], named: str
) -> None:
    """Of several --set each for itself."""
    assert f"already: {named}. " in start(local, *FIRST, *differs)


def test_insecure_loopback_is_named_where_the_nodes_have_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_start, "LocalCluster", Idle)
    assert start(tmp_path / "local", "--nodes", "1") == ""

    assert "already: --insecure-loopback. " in start(tmp_path / "local", "--insecure-loopback")


def test_a_cluster_that_never_served_does_not_end_as_one_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shells' convention: 130 is an interrupt."""
    monkeypatch.setattr(local_start, "LocalCluster", Idle)
    monkeypatch.setattr(Idle, "served", False)
    ended = CliRunner().invoke(main, ["cluster", "start", "--dir", str(tmp_path / "local")])

    assert ended.exit_code == 130
    assert "before the cluster served" in ended.stderr
