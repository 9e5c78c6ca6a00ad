"""What can go wrong at a start is one clear sentence, exit code 1, and loses nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

from cluster.processes import INSECURE, poll, refused, running


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
    """Issue A, bad input; S19: a directory in use, of another node or cluster, or empty."""
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        file = tmp_path / "c" / "node-1" / "node.toml"
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


def test_a_taken_port_of_the_peers_is_told(tmp_path: Path) -> None:
    with running(tmp_path / "c", 1, *INSECURE):
        pass
    file = tmp_path / "c" / "node-1" / "node.toml"
    peer = re.search(r'peer_address = "127\.0\.0\.1:(\d+)"', file.read_text())
    assert peer is not None
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(peer[1])))
        taken.listen()
        sentence = refused("node", "--config", str(file))

    assert "peer" in sentence
    assert peer[1] in sentence


def test_a_dead_node_is_left_dead_and_comes_back_by_hand(tmp_path: Path) -> None:
    """Design §11: reported, left dead; `holdfast node` brings it back and replaces its pid."""
    with running(tmp_path / "c", 3) as cluster:
        victim = cluster.leader()
        pid = cluster.node(victim)["pid"]
        os.kill(pid, signal.SIGKILL)
        out = tmp_path / "c.out"
        poll(lambda: f"{victim} died: signal SIGKILL" in out.read_text(), "the report")
        created = cluster.ask("topic", "create", "t", "--partitions", "4")
        cluster.bring_back(victim)
        listed = cluster.ask("topic", "list", "--json")
        replaced = cluster.node(victim)["pid"] != pid

        assert created.returncode == 0, created.stderr
        assert '"t"' in listed.stdout
        assert replaced


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
