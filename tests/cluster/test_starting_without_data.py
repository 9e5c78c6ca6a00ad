"""S19: a start without the data of some nodes, or of all: what is lost is told, the rest serves."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.processes import INSECURE, PATIENCE_SECONDS, holdfast, poll, refused, running
from harness.children import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.conftest import Stopped


@contextmanager
def begun(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs until the block ends; what it says is left out."""
    command = [sys.executable, "-m", "holdfast.cli", *arguments]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment(), stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def lays_out(data: Path) -> bool:
    """Whether a node has made its empty environments there."""
    return (data / "state").exists() and not (data / "unfinished").exists()


def test_a_cluster_that_lost_all_its_data_is_not_begun_anew(
    tmp_path: Path, stopped: Stopped
) -> None:
    """S19: empty is not new; a volume may not be mounted."""
    data = stopped(1, tmp_path) / "node-1" / "data"
    data.rename(tmp_path / "elsewhere")
    told = refused("cluster", "start", "--dir", str(tmp_path / "c"))
    shutil.rmtree(data)
    (tmp_path / "elsewhere").rename(data)

    assert "node-1" in told and "bootstrap" in told  # noqa: PT018 - one sentence
    with running(tmp_path / "c", 1) as cluster:
        assert cluster.leader() == "node-1"


def test_one_lost_data_directory_does_not_stop_the_others(tmp_path: Path) -> None:
    """S19: a majority serves; the lost node is told with what rebuilds it, and that does."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        cluster.create_topic("kept", 4)
        cluster.settled()
        data = cluster.data("node-1")
    shutil.rmtree(data)
    (tmp_path / "c.out").write_text("")
    with running(tmp_path / "c", 3) as cluster:
        poll(lambda: "serving" in (tmp_path / "c.out").read_text(), "the majority serves")
        told = (tmp_path / "c.out").read_text()
        cluster.create_topic("made-without-node-1", 1)
    with running(tmp_path / "c", 3, "--rebuild", "node-1") as cluster:
        poll(lambda: "this node votes again" in cluster.words("node-1"), "it has rebuilt")
        equal = {(seen.applied_index, seen.digest) for seen in cluster.settled()}
        listed = cluster.ask("topic", "list", "--json").stdout

    assert "node-1 could not start: " in told
    assert "--rebuild node-1\n" in told
    assert f"holdfast cluster start --dir {tmp_path / 'c'} --rebuild node-1" in told
    assert f"holdfast node --config {tmp_path / 'c' / 'node-1' / 'node.toml'} --rebuild" in told
    assert told.index("--rebuild") < told.index("--bootstrap")
    assert "node-1  clients" in told and "does not run" in told  # noqa: PT018 - one line
    assert len(equal) == 1
    assert '"made-without-node-1"' in listed


def test_a_directory_that_a_node_refuses_does_not_stop_the_others(
    tmp_path: Path, stopped: Stopped
) -> None:
    """Another node's data, then a whole folder that is gone: told, and the majority serves."""
    stopped(3, tmp_path)
    shutil.rmtree(tmp_path / "c" / "node-3" / "data")
    shutil.copytree(tmp_path / "c" / "node-2" / "data", tmp_path / "c" / "node-3" / "data")
    (tmp_path / "c.out").write_text("")
    with running(tmp_path / "c", 3):
        poll(lambda: "serving" in (tmp_path / "c.out").read_text(), "the majority serves")
    foreign = (tmp_path / "c.out").read_text()
    (tmp_path / "c" / "node-3").rename(tmp_path / "elsewhere")
    (tmp_path / "c.out").write_text("")
    with running(tmp_path / "c", 3) as cluster:
        poll(lambda: "serving" in (tmp_path / "c.out").read_text(), "the majority serves")
        assert cluster.names == ["node-1", "node-2"]
    gone = (tmp_path / "c.out").read_text()

    assert "node-3 could not start: " in foreign
    assert "belongs to node 'node-2'" in foreign
    assert f"bring it back with: holdfast node --config {tmp_path}/c/node-3/node.toml" in foreign
    assert f"node-3 could not start: {tmp_path}/c/node-3/node.toml is missing" in gone


def test_without_a_majority_that_has_its_data_nothing_is_begun(
    tmp_path: Path, stopped: Stopped
) -> None:
    """S19: two of three lost: no rebuild can bring it back, so one sentence, and no process."""
    stopped(3, tmp_path)
    for name in ("node-1", "node-2"):
        (tmp_path / "c" / name / "data").rename(tmp_path / name)
    before = (tmp_path / "c" / "node-3" / "node.log").read_text()
    told = refused("cluster", "start", "--dir", str(tmp_path / "c"))
    one = refused("cluster", "start", "--dir", str(tmp_path / "c"), "--rebuild", "node-1")
    both = ("--rebuild", "node-1", "--rebuild", "node-2")
    rebuilt = refused("cluster", "start", "--dir", str(tmp_path / "c"), *both)

    for sentence in (told, one):
        assert "2 of 3 nodes are needed" in sentence
        assert "the data of node-1 and node-2 is not there" in sentence
    assert (tmp_path / "c" / "node-3" / "node.log").read_text() == before
    assert "1 of 3 nodes at most" in rebuilt


def test_rebuild_says_what_it_does_to_a_directory_with_data(tmp_path: Path) -> None:
    """Nothing: the cluster's command is refused with what to do, a node's goes on and says so."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        data, file = cluster.data("node-2"), cluster.file("node-2")
        cluster.stop_gracefully("node-2")
        cluster.bring_back("node-2", options=("--rebuild",))
        words = cluster.words("node-2")
    start = ("cluster", "start", "--dir", str(tmp_path / "c"), "--rebuild")
    told = refused(*start, "node-2")
    unknown = refused(*start, "node-7")
    new = refused("cluster", "start", "--dir", str(tmp_path / "d"), "--rebuild", "node-1")
    file.parent.joinpath("data").rename(tmp_path / "old")
    (tmp_path / "c" / "formed").unlink()
    unformed = refused(*start, "node-2")

    assert f"--rebuild touches no data: {data} is not empty" in words
    assert f"mv {data} {data}.old" in told
    assert "node-1, node-2, node-3" in unknown
    assert "no cluster in" in new
    assert not (tmp_path / "d").exists()
    assert "never served" in unformed


def test_a_node_that_never_got_the_data_counts_as_one_without(
    tmp_path: Path, stopped: Stopped
) -> None:
    """S19: one lost disk after the other: a directory that began to rebuild helps nobody."""
    cluster = stopped(3, tmp_path)
    for name in ("node-2", "node-3"):
        shutil.rmtree(tmp_path / "c" / name / "data")
    data = cluster / "node-2" / "data"
    with begun("node", "--config", str(cluster / "node-2" / "node.toml"), "--rebuild"):
        poll(lambda: lays_out(data), "it rebuilds")
    before = (tmp_path / "c" / "node-1" / "node.log").read_text()
    start = ("cluster", "start", "--dir", str(tmp_path / "c"))
    plainly, other = refused(*start), refused(*start, "--rebuild", "node-3")
    (tmp_path / "c" / "node-3").rename(tmp_path / "elsewhere")
    folder = refused(*start)

    for sentence in (plainly, other, folder):
        assert "the data of node-2 and node-3 is not there" in sentence
        assert f"{data} began to rebuild, and never got the data" in sentence
    assert f"{tmp_path}/c/node-3/data is missing or empty" in plainly
    assert f"{tmp_path}/c/node-3/node.toml is missing" in folder
    assert (tmp_path / "c" / "node-1" / "node.log").read_text() == before


def test_what_brings_a_node_back_is_told_only_where_it_can(
    tmp_path: Path, stopped: Stopped
) -> None:
    """S19: one disk is lost and another node cannot start: there is nobody to rebuild from."""
    stopped(3, tmp_path)
    shutil.rmtree(tmp_path / "c" / "node-2" / "data")
    shutil.rmtree(tmp_path / "c" / "node-3" / "data")
    shutil.copytree(tmp_path / "c" / "node-1" / "data", tmp_path / "c" / "node-3" / "data")
    done = holdfast("cluster", "start", "--dir", str(tmp_path / "c"))

    assert done.returncode == 1
    assert "2 of 3 nodes are needed" in done.stderr
    assert "rebuild it while the others serve" not in done.stdout
    assert "cluster start --dir" not in done.stdout


def test_a_start_that_is_interrupted_before_it_serves_has_not_succeeded(
    tmp_path: Path, stopped: Stopped
) -> None:
    """S19, S21: two damaged disks are set aside, so nobody leads; 130 is the shells' interrupt."""
    cluster = stopped(3, tmp_path)
    for name in ("node-2", "node-3"):
        (cluster / name / "data" / "raft" / "data.mdb").write_bytes(b"damaged" * 4096)
    logs = [tmp_path / "c" / name / "node.log" for name in ("node-2", "node-3")]
    with begun("cluster", "start", "--dir", str(tmp_path / "c")) as process:
        poll(lambda: all("set aside" in log.read_text() for log in logs), "both rebuild")
        process.send_signal(signal.SIGINT)
        ended = process.wait()

    assert ended == 130
    told = refused("cluster", "start", "--dir", str(tmp_path / "c"))
    assert "the data of node-2 and node-3 is not there" in told
