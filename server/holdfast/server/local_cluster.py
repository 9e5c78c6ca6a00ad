"""Runs a laid-out local cluster: a process a node, in the foreground, until told to stop.

A dead node is reported and left dead. `cluster.json` is there exactly while all have served.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import grpc

from holdfast.server import cluster_file
from holdfast.server.address import is_taken
from holdfast.server.config import CannotStart, Tls, load
from holdfast.server.grpc_options import channel_options
from holdfast.server.layout import CLIENT_FOLDER, FORMED_NAME
from holdfast.server.security import channel_credentials
from holdfast.v1 import admin_pb2, admin_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.server.address import Address
    from holdfast.server.config import NodeConfig

START_SECONDS: Final = 60.0
"""How long all nodes may take until they serve."""
LOOK_SECONDS: Final = 0.1


class LocalCluster:
    """The processes of one local cluster. `say` prints a line for people."""

    def __init__(self, directory: Path, files: Sequence[Path], say: Callable[[str], None]) -> None:
        self._directory, self._say = directory.resolve(), say
        self._files = [file.resolve() for file in files]
        self._configs = [load(file, {}, ()) for file in self._files]
        self._formed = self._directory / FORMED_NAME
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._asked_to_stop = self._announced = False

    def run(self) -> None:
        """Start, report, and wait for SIGINT or SIGTERM. Raises CannotStart.

        A cluster is new until all its nodes have served once: the nodes are told to bootstrap,
        which one that has data does not. Later a node without data is refused (S19).
        The directory has to be claimed (`holdfast.server.claim`).
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        try:
            self._refuse_taken_ports()
            self._spawn(bootstrap=not self._formed.exists())
            self._await_serving()
            self._announce()
            self._watch()
        finally:
            if self._announced:
                (self._directory / cluster_file.NAME).unlink(missing_ok=True)
            self._stop()

    def _on_signal(self, number: int, frame: object) -> None:
        del number, frame
        self._asked_to_stop = True

    def _refuse_taken_ports(self) -> None:
        """What answers at our nodes' addresses has to be our nodes, not who was there before."""
        for config in self._configs:
            for key in ("client_address", "peer_address"):
                address: Address = getattr(config, key)
                if is_taken(address):
                    raise CannotStart(
                        f"{config.name} could not start: another process listens on {address}. "
                        f"Stop it, or change node.{key} in {self._directory}/{config.name}/"
                        "node.toml and that address in the files of the other nodes"
                    )

    def _spawn(self, *, bootstrap: bool) -> None:
        for config, file in zip(self._configs, self._files, strict=True):
            command = [sys.executable, "-P", "-m", "holdfast.server", "node", "--config", str(file)]
            with (file.parent / "node.log").open("ab") as log:
                self._processes[config.name] = subprocess.Popen(  # noqa: S603 - our own program
                    [*command, "--bootstrap"] if bootstrap else command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # a SIGINT of the terminal is for us to pass on
                )

    def _await_serving(self) -> None:
        """Until every node knows the same leader and the cluster is formed."""
        until = time.monotonic() + START_SECONDS
        waiting = {config.name: config for config in self._configs}
        with contextlib.ExitStack() as stack:
            stubs = {name: self._stub(config, stack) for name, config in waiting.items()}
            while waiting and not self._asked_to_stop:
                for name in [name for name in waiting if _serves(stubs[name])]:
                    del waiting[name]
                self._refuse_dead()
                if time.monotonic() > until:
                    raise CannotStart(
                        f"{', '.join(waiting)} did not serve within {START_SECONDS:.0f} s; see "
                        f"{self._directory}/<name>/node.log"
                    )
                time.sleep(LOOK_SECONDS)
        if not waiting:
            self._formed.touch()

    def _stub(
        self, config: NodeConfig, stack: contextlib.ExitStack
    ) -> admin_pb2_grpc.AdminServiceStub:
        address = str(config.client_address)
        if config.tls is None:
            channel = grpc.insecure_channel(address, channel_options())
        else:
            channel = grpc.secure_channel(
                address, channel_credentials(self._client_tls()), channel_options()
            )
        return admin_pb2_grpc.AdminServiceStub(stack.enter_context(channel))

    def _client_tls(self) -> Tls:
        folder = self._directory / CLIENT_FOLDER
        return Tls(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")

    def _refuse_dead(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise CannotStart(f"{name} could not start: {self._last_words(name)}")

    def _last_words(self, name: str) -> str:
        with contextlib.suppress(OSError):
            lines = (self._directory / name / "node.log").read_text(errors="replace").splitlines()
            if lines:
                return lines[-1].removeprefix("holdfast: ")
        return "it left no word"

    def _announce(self) -> None:
        if self._asked_to_stop:
            return
        nodes = tuple(
            cluster_file.NodeEntry(
                config.name,
                str(config.client_address),
                str(config.peer_address),
                self._processes[config.name].pid,
                str(self._directory / config.name),
            )
            for config in self._configs
        )
        secure = self._configs[0].tls is not None
        tls = self._client_tls()
        entry = cluster_file.TlsEntry(str(tls.ca), str(tls.certificate), str(tls.key))
        content = cluster_file.ClusterFile(
            self._configs[0].cluster_id, nodes, entry if secure else None
        )
        self._announced = True
        cluster_file.write(self._directory / cluster_file.NAME, content)
        for node in nodes:
            self._say(f"{node.name}  clients {node.client_address}  pid {node.pid}")
        self._say(f"serving; {self._directory / cluster_file.NAME} says where. Ctrl-C stops it")

    def _watch(self) -> None:
        """Report each death once; stop when asked."""
        dead: set[str] = set()
        while not self._asked_to_stop:
            for name, process in self._processes.items():
                if name not in dead and process.poll() is not None:
                    dead.add(name)
                    self._say(f"{name} died: {self._manner(name, process.returncode)}")
                    file = self._directory / name / "node.toml"
                    self._say(f"bring it back with: holdfast node --config {file}")
            time.sleep(LOOK_SECONDS)

    def _manner(self, name: str, returncode: int) -> str:
        if returncode < 0:
            return f"signal {signal.Signals(-returncode).name}"
        return f"exit code {returncode}; {self._last_words(name)}"

    def _stop(self) -> None:
        """Pass the stop on, and wait; what outlives its bound is killed."""
        running = [p for p in self._processes.values() if p.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        bound = max(config.shutdown_ms for config in self._configs) / 1000 + 5
        until = time.monotonic() + bound
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(f"process {process.pid} did not stop within {bound:.0f} s; killed")
                process.kill()
                process.wait()


def _serves(stub: admin_pb2_grpc.AdminServiceStub) -> bool:
    try:
        seen = stub.DescribeCluster(admin_pb2.DescribeClusterRequest(), timeout=1.0)
    except grpc.RpcError:
        return False
    return bool(seen.cluster_id and seen.leader)
