"""docs/other-languages.md: the member in Node.js runs against real nodes, beside one in Python."""

from __future__ import annotations

import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster.processes import INSECURE, poll, running
from harness.children import environment
from holdfast.client import sync

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "node" / "member.js"
PACKAGES = ("@grpc/grpc-js", "@grpc/proto-loader", "protobufjs")
WITHIN_S = 60


def node_js() -> str:
    """The command `node`; the test is left out, and says so, where it or its packages are not."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    tried = "".join(f"require.resolve('{package}');" for package in PACKAGES)
    found = subprocess.run([node, "-e", tried], env=environment(), check=False, capture_output=True)
    if found.returncode:
        names = " ".join(PACKAGES)
        pytest.skip(f"node finds no {names}: `npm install {names}`, and name it in NODE_PATH")
    return node


@contextmanager
def member_js(out: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The example as a process; whatever it says goes to a file."""
    with out.open("wb") as stream:
        command = [node_js(), str(EXAMPLE), *arguments]
        process = subprocess.Popen(command, env=environment(), stdout=stream, stderr=stream)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_member_in_another_language_shares_a_group_with_one_in_python(tmp_path: Path) -> None:
    """It leads the group, assigns, gives a part up, restarts in its place, and leaves."""
    node_js()
    said = tmp_path / "said"
    with running(tmp_path / "c", 1, *INSECURE) as cluster:
        cluster.create_topic("documents", 4)
        (address,) = cluster.addresses
        with member_js(said, address, "g", "documents", "js-0") as process:
            poll(lambda: "owns [0,1,2,3]" in said.read_text(), "it owns all")
            with sync.Member(address, group="g", topics=["documents"]) as member:
                own = [member.next_owned(), member.next_owned()]
                poll(lambda: said.read_text().count("owns [") == 2, "it gave two up")
                assert {p.number for p in own if p} | _last(said) == {0, 1, 2, 3}
                process.send_signal(signal.SIGTERM)
                assert process.wait(WITHIN_S) == 0, said.read_text()
                place = cluster.ask("group", "describe", "g").stdout
                assert "js-0" in place, "a planned restart keeps its place"


def _last(said: Path) -> set[int]:
    line = [each for each in said.read_text().splitlines() if each.startswith("owns")][-1]
    numbers = line.partition("[")[2].partition("]")[0]
    return {int(number) for number in numbers.split(",")}
