"""The three nodes that are measured: started by `holdfast cluster start`, killed, brought back.

`cluster.json` says who is who. Only processes that this file has started are ended, by their ids.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from harness.poll import until

START_S: Final = 60.0
STOP_S: Final = 30.0


class Node(NamedTuple):
    """One node, as cluster.json has it."""

    name: str
    address: str
    pid: int
    directory: Path


class Credentials(NamedTuple):
    """What a client shows, PEM: authority, key, certificate."""

    ca: bytes
    key: bytes
    certificate: bytes


class Program(NamedTuple):
    """How `holdfast` is started. `environment`: None is this process's own."""

    command: tuple[str, ...]
    environment: Mapping[str, str] | None = None


OWN: Final = Program((sys.executable, "-P", "-m", "holdfast.cli"))


class Cluster:
    """Running nodes; a context manager that leaves neither processes nor data behind."""

    def __init__(
        self,
        directory: Path,
        settings: dict[str, int] | None = None,
        count: int = 3,
        program: Program = OWN,
    ) -> None:
        self.directory, self._home = directory, directory / "cluster"
        self._settings, self._count, self._program = settings or {}, count, program
        self._processes: list[subprocess.Popen[bytes]] = []
        self.nodes: tuple[Node, ...] = ()

    def __enter__(self) -> Self:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start all nodes and wait until they serve. Raises RuntimeError if they do not."""
        command = ["cluster", "start", "--nodes", str(self._count)]
        command += ["--dir", str(self._home)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        starter = self._spawn(command)
        file = self._home / "cluster.json"
        until(
            lambda: file.exists() or starter.poll() is not None,
            "the nodes serve",
            within_s=START_S,
        )
        if not file.exists():
            said = (self.directory / "cluster.log").read_text().strip()
            raise RuntimeError(f"the cluster did not start: {said}")
        self.look()

    def _spawn(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / "cluster.log").open("ab") as log:
            process = subprocess.Popen(
                [*self._program.command, *arguments], env=self._program.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def look(self) -> None:
        """Read again who is who: a node that came back has another process id."""
        content = json.loads((self._home / "cluster.json").read_text())
        self.nodes = tuple(
            Node(node["name"], node["client_address"], node["pid"], Path(node["directory"]))
            for node in content["nodes"]
        )

    def credentials(self) -> Credentials:
        """What the cluster made for clients of this machine."""
        ca, certificate, key = (Path(file).read_bytes() for file in self.tls_files())
        return Credentials(ca=ca, key=key, certificate=certificate)

    def tls_files(self) -> tuple[str, str, str]:
        """Where the cluster put what its clients show: authority, certificate, key."""
        tls = json.loads((self._home / "cluster.json").read_text())["tls"]
        return tls["ca"], tls["certificate"], tls["key"]

    def stop(self) -> None:
        """End every process, gracefully if it can."""
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            if process.poll() is None:
                process.kill()
                process.wait()
        for node in self.nodes:
            if self._is_ours(node):
                os.kill(node.pid, signal.SIGKILL)
        self._processes, self.nodes = [], ()

    def _is_ours(self, node: Node) -> bool:
        """Whether the process is still the node that we started: ids are used again."""
        try:
            command = Path(f"/proc/{node.pid}/cmdline").read_bytes()
        except OSError:
            return False
        return os.fsencode(node.directory) in command

    def named(self, name: str) -> Node:
        """The node of this name."""
        return next(node for node in self.nodes if node.name == name)

    def kill(self, node: Node) -> None:
        """Kill -9 a node."""
        os.kill(node.pid, signal.SIGKILL)

    def revive(self, node: Node) -> None:
        """Bring a dead node back, as an operator would, and wait for its process."""
        self.launch(node)
        until(lambda: self._has_new_pid(node), f"{node.name} is back", within_s=START_S)

    def launch(self, node: Node, *options: str) -> int:
        """Start one node's process, as an operator would; its process id."""
        command = ["node", "--config", str(node.directory / "node.toml"), *options]
        return self._spawn(command).pid

    def _has_new_pid(self, node: Node) -> bool:
        self.look()
        return self.named(node.name).pid != node.pid
