"""What can go wrong at a start is one clear sentence, exit code 1, and loses nothing."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster.processes import INSECURE, holdfast, poll, refused, running
from harness.children import environment

if TYPE_CHECKING:
    from cluster.conftest import Stopped


def edited(file: Path, *changes: tuple[str, str]) -> Path:
    """A copy of a node's file with something changed, beside it."""
    text = file.read_text()
    for pattern, value in changes:
        text, count = re.subn(pattern, value, text)
        assert count, pattern
    copy = file.with_name("edited.toml")
    copy.write_text(text)
    return copy


def test_every_way_in_which_a_start_fails_is_told_in_one_sentence(tmp_path: Path) -> None:
    """S19: a directory in use, of another node or cluster, or empty."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        file = cluster.file("node-1")
        in_use = refused("node", "--config", str(file))
        own_ports = edited(file, (r"127\.0\.0\.1:\d+", "127.0.0.1:0"))
        same_directory = refused("node", "--config", str(own_ports))
        assert cluster.leader() == "node-1"
    elsewhere = edited(file, (r'data_dir = "data"', 'data_dir = "elsewhere"'))
    empty = refused("node", "--config", str(elsewhere))
    foreign = refused("node", "--config", str(edited(file, (r'id = "[^"]+"', 'id = "other"'))))
    other_node = refused("node", "--config", str(edited(file, ("node-1", "node-7"))))
    unknown = refused("node", "--config", str(file), "--set", "node.shutdown=5")

    assert "in use" in in_use and "client_address" in in_use  # noqa: PT018 - one sentence
    assert "in use" in same_directory
    assert "--bootstrap" in empty
    assert "another cluster" in foreign
    assert "another node" in other_node
    assert "node.shutdown_ms" in unknown


def address_in(file: Path, key: str) -> tuple[str, int]:
    """An address of a node, by its file."""
    host, _, port = tomllib.loads(file.read_text())["node"][key].rpartition(":")
    return host, int(port)


def test_a_taken_port_of_the_peers_is_told(tmp_path: Path, stopped: Stopped) -> None:
    file = stopped(1, tmp_path) / "node-1" / "node.toml"
    _, peer = address_in(file, "peer_address")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", peer))
        taken.listen()
        sentence = refused("node", "--config", str(file))

    assert "peer" in sentence
    assert str(peer) in sentence


def test_a_cluster_whose_port_is_taken_can_be_started_at_another_one(tmp_path: Path) -> None:
    """Nothing was laid out yet, so the next start is free to choose."""
    directory = tmp_path / "c"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        base = ("--port-base", str(taken.getsockname()[1]))
        told = refused("cluster", "start", "--nodes", "1", "--dir", str(directory), *base)
    assert "another process listens" in told
    assert "--port-base" in told
    assert not directory.exists()

    with running(directory, 1) as cluster:
        assert cluster.leader() == "node-1"


def test_a_directory_that_is_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    """S19: not even --bootstrap begins a cluster among a stranger's files, or under a file."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    node = tmp_path / "node.toml"
    node.write_text(
        '[node]\nname = "a"\ndata_dir = "home"\nclient_address = "127.0.0.1:0"\n'
        'peer_address = "127.0.0.1:0"\n[cluster]\nid = "c"\n[tls]\ninsecure_loopback = true\n'
    )
    strangers = refused("node", "--config", str(node), "--bootstrap")
    no_directory = refused(
        "node", "--config", str(node), "--bootstrap", "--set", "node.data_dir=file"
    )

    assert "thesis.tex" in strangers
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"
    assert "directory" in no_directory


@pytest.mark.parametrize(
    ("module", "extra"), [("uvloop", "server"), ("lmdb", "server"), ("aiohttp", "server")]
)
def test_a_missing_extra_is_told_with_the_command_to_install_it(module: str, extra: str) -> None:
    """The light client installs the command as well; it says what it lacks, code 2."""
    argv = ["holdfast", "node", "--config", "node.toml"]
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv = {argv}\n"
    code += "from holdfast.cli.entry import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"pip install 'holdfast[{extra}]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    """The configuration itself, and a certificate in it."""
    no_file = refused("node", "--config", str(tmp_path / "none.toml"))
    with running(tmp_path / "c", 1) as cluster:
        file = cluster.file("node-1")
    (file.parent / "certificate.pem").unlink()
    no_certificate = refused("node", "--config", str(file))

    assert "none.toml" in no_file
    assert "certificate.pem" in no_certificate


def test_a_dead_node_is_left_dead_and_comes_back_by_hand(tmp_path: Path) -> None:
    """It is reported and left dead; `holdfast node` brings it back and replaces its pid."""
    with running(tmp_path / "c", 3, *INSECURE) as cluster:
        victim = cluster.leader()
        cluster.kill(victim)
        out = tmp_path / "c.out"
        poll(lambda: f"{victim} died: signal SIGKILL" in out.read_text(), "the report")
        cluster.create_topic("t", 4)
        before = cluster.node(victim)["pid"]
        cluster.bring_back(victim)
        listed = cluster.ask("topic", "list", "--json")

        assert cluster.node(victim)["pid"] != before
        assert '"t"' in listed.stdout


def test_a_cluster_starts_again_with_what_it_had(tmp_path: Path) -> None:
    """Nothing acknowledged is lost by a stop; the second start needs no bootstrap."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        assert cluster.ask("topic", "create", "t", "--partitions", "4").returncode == 0
        assert cluster.ask("settings", "set", "group.max_size=77").returncode == 0
    stopped = not (tmp_path / "c" / "cluster.json").exists()
    with running(tmp_path / "c", 1) as cluster:
        topics = cluster.ask("topic", "list").stdout
        settings = cluster.ask("settings", "list", "group.max_size").stdout

    assert stopped
    assert re.search(r"^t\s+4$", topics, re.MULTILINE)
    assert re.search(r"^group\.max_size\s+77", settings, re.MULTILINE)


def test_a_command_without_a_cluster_says_so(tmp_path: Path) -> None:
    """One sentence that names the option, no traceback."""
    done = holdfast("topic", "list", "--cluster", str(tmp_path))

    assert done.returncode == 1
    assert "--cluster" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cluster_that_runs_is_not_started_again_nor_touched(tmp_path: Path) -> None:
    """One command runs a directory; a second is refused at once and leaves cluster.json alone."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        before = (tmp_path / "c" / "cluster.json").read_bytes()
        sentence = refused("cluster", "start", "--dir", str(tmp_path / "c"))

        assert (tmp_path / "c" / "cluster.json").read_bytes() == before
        assert "runs already" in sentence
        assert f"pid {cluster.process.pid}" in sentence
        assert cluster.ask("topic", "list").returncode == 0


def test_nodes_whose_command_was_killed_are_found(tmp_path: Path) -> None:
    """They still serve, so their cluster.json stays; once they are dead too it is replaced."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        before = (tmp_path / "c" / "cluster.json").read_bytes()
        cluster.process.kill()
        cluster.process.wait()
        sentence = refused("cluster", "start", "--dir", str(tmp_path / "c"))

        assert f"node-1 (pid {cluster.node('node-1')['pid']})" in sentence
        assert (tmp_path / "c" / "cluster.json").read_bytes() == before
        cluster.kill("node-1")
    (tmp_path / "c.out").write_text("")
    with running(tmp_path / "c", 1, "--port-base", "7400", "--set", "x.y=1") as cluster:
        poll(lambda: "serving" in (tmp_path / "c.out").read_text(), "the start")
        ignored = (tmp_path / "c.out").read_text()

        assert cluster.leader() == "node-1"
    assert "ignored" in ignored
    assert "--port-base, --set" in ignored


def test_nodes_that_were_brought_back_are_found_without_a_cluster_file(tmp_path: Path) -> None:
    """What they answer is not the new command's serving, and nothing of theirs is touched."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.kill("node-1")
        cluster.bring_back("node-1")
        pid = cluster.node("node-1")["pid"]
        cluster.process.send_signal(signal.SIGINT)
        cluster.process.wait()
        assert not (tmp_path / "c" / "cluster.json").exists()
        sentence = refused("cluster", "start", "--dir", str(tmp_path / "c"))

    assert f"node-1 (pid {pid})" in sentence


@pytest.mark.parametrize("key", ["client_address", "peer_address"])
def test_whoever_listens_at_a_nodes_address_is_not_taken_for_the_node(
    tmp_path: Path, stopped: Stopped, key: str
) -> None:
    """Told before any node runs, so that a stranger's answer is never called serving."""
    node = stopped(1, tmp_path) / "node-1"
    host, port = address_in(node / "node.toml", key)
    before = (node / "node.log").read_text()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))
        taken.listen()
        sentence = refused("cluster", "start", "--dir", str(tmp_path / "c"))

    assert f"listens on {host}:{port}" in sentence
    assert (node / "node.log").read_text() == before


def test_a_foreign_cluster_file_is_left_alone(tmp_path: Path, stopped: Stopped) -> None:
    stopped(1, tmp_path)
    (tmp_path / "c" / "cluster.json").write_text("[]")
    sentence = refused("cluster", "start", "--dir", str(tmp_path / "c"))

    assert "cluster.json" in sentence
    assert (tmp_path / "c" / "cluster.json").read_text() == "[]"


def test_a_copied_folder_beside_the_nodes_is_no_node(tmp_path: Path, stopped: Stopped) -> None:
    """It was run as well, on the same ports, and outlived the command."""
    stopped(1, tmp_path)
    shutil.copytree(tmp_path / "c" / "node-1", tmp_path / "c" / "node-1.old")
    told = refused("cluster", "start", "--dir", str(tmp_path / "c"))

    assert f"Move {tmp_path}/c/node-1.old out of" in told
