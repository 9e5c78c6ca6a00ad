"""`holdfast cluster start` on a laid-out directory: only what would change is called ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from click.testing import CliRunner

from holdfast.cli.ending import REMOVED
from holdfast.cli.local_cluster import layout, standing
from holdfast.cli.local_cluster import start as local_start
from holdfast.cli.local_cluster.disks import Disks
from holdfast.cli.local_cluster.local_cluster import LocalCluster
from holdfast.cli.local_cluster.standing import Standing
from holdfast.cli.main import main
from holdfast.server.config.node_config import load

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


@pytest.fixture
def started(local: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The configurations that are started."""
    found: list[Path] = []

    def begun(directory: Path, files: list[Path], *_: object) -> Idle:
        assert directory == local
        found.extend(files)
        return Idle()

    monkeypatch.setattr(local_start, "LocalCluster", begun)
    return found


def test_a_removed_node_is_not_brought_back(local: Path, started: list[Path]) -> None:
    """S25: it would only ask for votes until it is told that it is out."""
    standing.write(local, Standing(("node-2", "node-3"), (), ("node-1",), 9))
    ended = CliRunner().invoke(main, ["cluster", "start", "--dir", str(local)])

    assert [file.parent.name for file in started] == ["node-2", "node-3"]
    assert "node-1 was removed from the cluster (nodes.json), and is not started" in ended.output


def test_a_node_that_is_laid_out_only_is_not_waited_for(local: Path, started: list[Path]) -> None:
    """Nobody leads it before it is added. One that has data was added, whatever was noted."""
    standing.write(local, Standing(("node-1",), ()))
    (local / "node-3" / "data").mkdir()
    (local / "node-3" / "data" / "something").touch()
    ended = CliRunner().invoke(main, ["cluster", "start", "--dir", str(local)])

    assert [file.parent.name for file in started] == ["node-1", "node-3"]
    assert "node-2 is laid out, and no node of the cluster yet" in ended.output


@pytest.mark.parametrize(
    ("known", "needed", "absent"),
    [
        (None, 2, []),
        (Standing(("node-1", "node-2", "node-3", "node-4", "node-5")), 3, ["node-4", "node-5"]),
        (Standing(("node-1",), ("node-2",), ("node-3",)), 1, []),
    ],
)
def test_a_majority_is_one_of_the_voters_that_there_were(
    local: Path, known: Standing | None, needed: int, absent: list[str]
) -> None:
    """S25: the files say where the cluster began; a learner counts for nothing."""
    configs = [load(file, {}, ()) for file in layout.existing(local)]
    disks = Disks(local, configs, known)

    assert (disks.needed, disks.absent) == (needed, absent)


def test_a_learner_without_data_does_not_keep_the_voters_from_a_start(local: Path) -> None:
    configs = [load(file, {}, ()) for file in layout.existing(local)]
    disks = Disks(local, configs, Standing(("node-1",), ("node-2", "node-3")))
    disks.lacking = lambda: {"node-2": "is empty", "node-3": "is empty"}  # type: ignore[method-assign]  # of two learners

    disks.refuse_lost_majority()


class Ended:
    """A process that has ended, or one that runs."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def poll(self) -> int | None:
        """Return its exit code."""
        return self.code


def test_a_node_that_says_that_it_was_removed_does_not_count(local: Path) -> None:
    """S25: nobody had noted it; of three by their files two are left, and two serve."""
    said: list[str] = []
    (local / layout.FORMED_NAME).touch()
    running = LocalCluster(local, layout.existing(local), said.append)
    codes = {"node-1": REMOVED, "node-2": None, "node-3": None}
    running._processes = {name: cast("Any", Ended(code)) for name, code in codes.items()}

    assert running._ended() == ["node-1"]
    assert said == ["node-1 was removed from the cluster, and has stopped"]
    assert (running._disks.count, running._disks.needed) == (2, 2)
    assert running._ended() == []
