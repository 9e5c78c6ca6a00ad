"""Run a laid-out local cluster: a process a node, in the foreground, until told to stop.

A new cluster begins with all its nodes (S19). A formed one serves while a majority runs: a node
that cannot start, or dies, is reported with advice how to bring it back, and not restarted.
`cluster.json` exists from when every node that could start has served.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import grpc

from holdfast.cli.ending import REMOVED
from holdfast.cli.local_cluster import standing
from holdfast.cli.local_cluster.disks import Disks
from holdfast.cli.local_cluster.layout import CLIENT_FOLDER, FORMED_NAME
from holdfast.cli.local_cluster.node_log import NodeLog
from holdfast.cli.local_cluster.nodes_watch import NodesWatch
from holdfast.client import Tls
from holdfast.client._rpc.channel import OPTIONS
from holdfast.server.config import cluster_file
from holdfast.server.config.address import is_taken
from holdfast.server.config.node_config import CannotStart, load
from holdfast.storage.directory.data_directory import is_empty
from holdfast.v1 import admin_pb2, admin_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from holdfast.server.config.address import Address
    from holdfast.server.config.node_config import NodeConfig

START_SECONDS: Final = 60.0
"""How long all nodes may take until they serve."""
LOOK_SECONDS: Final = 0.1
NODES_SECONDS: Final = 1.0
"""Between two looks at which nodes there are."""


class LocalCluster:
    """The processes of one local cluster. `say` prints a line for people.

    `rebuild`: nodes with new disks, which fetch everything from the others.
    """

    def __init__(
        self,
        directory: Path,
        files: Sequence[Path],
        say: Callable[[str], None],
        rebuild: Sequence[str] = (),
    ) -> None:
        self._directory, self._say = directory.resolve(), say
        self._rebuild = frozenset(rebuild)
        self._configs = {file.resolve(): load(file, {}, ()) for file in files}
        self._formed = self._directory / FORMED_NAME
        self._disks = Disks(
            self._directory, list(self._configs.values()), standing.read(self._directory)
        )
        self._logs = {c.name: NodeLog(self._directory / c.name) for c in self._configs.values()}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._out: dict[str, str] = {}
        """The nodes that could not start, and why: a sentence each."""
        self._advice: list[str] = []
        """How to bring them back; printed when a majority serves, since before it may not help."""
        self._asked_to_stop = self._announced = False

    def run(self) -> bool:
        """Start, report, and wait for SIGINT or SIGTERM. Raises CannotStart without a majority.

        Returns whether it has served: it may be told to stop before that.

        A cluster is new until all its nodes have served once: the nodes are told to bootstrap,
        and those that have data ignore that. Later a node without data is refused (S19).
        The caller holds the directory's lock (`holdfast.cli.local_cluster.cluster_lock`).
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        self._refuse_copied_folders()
        self._disks.refuse_rebuilds(self._rebuild, formed=self._formed.exists())
        if self._formed.exists():
            self._disks.refuse_lost_majority()
        try:
            self._refuse_taken_ports()
            self._leave_out_absent()
            self._spawn(bootstrap=not self._formed.exists())
            self._await_serving()
            self._announce()
            self._watch()
            return self._announced
        finally:
            if self._announced:
                (self._directory / cluster_file.NAME).unlink(missing_ok=True)
            self._stop()

    def _on_signal(self, number: int, frame: object) -> None:
        del number, frame
        self._asked_to_stop = True

    def _refuse_copied_folders(self) -> None:
        """Refuse two folders of one node: one would run unseen, on the other's ports."""
        for file, config in self._configs.items():
            if file.parent.name != config.name:
                raise CannotStart(
                    f"{file} is a configuration of {config.name}: a copy of its folder. Move "
                    f"{file.parent} out of {self._directory}"
                )

    def _refuse_taken_ports(self) -> None:
        """Refuse addresses in use: what answers there must be our nodes."""
        for config in self._configs.values():
            for key in ("client_address", "peer_address"):
                address: Address = getattr(config, key)
                if is_taken(address):
                    raise CannotStart(
                        f"{config.name} could not start: another process listens on {address}. "
                        f"Stop it, or change node.{key} in {self._directory}/{config.name}/"
                        "node.toml and that address in the files of the other nodes"
                    )
            if config.http_address and is_taken(config.http_address):
                raise CannotStart(
                    f"{config.name} could not start: another process listens on "
                    f"{config.http_address}. Stop it, or change http.address in "
                    f"{self._directory}/{config.name}/node.toml"
                )

    def _leave_out_absent(self) -> None:
        """Leave out nodes of a formed cluster whose whole folder is gone."""
        for name in self._disks.absent:
            file = self._directory / name / "node.toml"
            self._leave_out(name, f"{file} is missing, and what lies beside it may be as well")
            self._advice.append(
                f"put back {file} and the certificates; if its data is lost, go on then as for an "
                f"empty disk: {self._start_rebuilding(name)}"
            )

    def _leave_out(self, name: str, why: str) -> None:
        """Go on without a node that could not start. Raises CannotStart without a majority."""
        self._out[name] = why
        told = "; ".join(
            f"{each} could not start: {words.rstrip('.')}" for each, words in self._out.items()
        )
        if not self._formed.exists():
            raise CannotStart(told)
        if self._disks.count == 1:
            raise CannotStart(told)
        if self._disks.count - len(self._disks.voters & self._out.keys()) < self._disks.needed:
            raise CannotStart(
                f"{told}. The cluster cannot serve: {self._disks.needed} of {self._disks.count} "
                "nodes are needed, with their data. Bring back what these lack; --rebuild "
                "helps only where a majority has its data"
            )
        self._say(f"{name} could not start: {why}")

    def _spawn(self, *, bootstrap: bool) -> None:
        for file, config in self._configs.items():
            command = [sys.executable, "-P", "-m", "holdfast.cli", "node", "--config", str(file)]
            command += ["--bootstrap"] if bootstrap else []
            command += ["--rebuild"] if config.name in self._rebuild else []
            with self._logs[config.name].begin() as log:
                self._processes[config.name] = subprocess.Popen(  # noqa: S603 - our own program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # a SIGINT of the terminal is for us to pass on
                )

    def _await_serving(self) -> None:
        """Wait until all nodes that can start know the same leader and a new cluster is formed."""
        until = time.monotonic() + START_SECONDS
        waiting = {config.name: config for config in self._configs.values()}
        with contextlib.ExitStack() as stack:
            stubs = {n: self._stub(str(c.client_address), stack) for n, c in waiting.items()}
            while waiting and not self._asked_to_stop:
                for name in [name for name in waiting if _serves(stubs[name])]:
                    del waiting[name]
                for name in self._ended():
                    waiting.pop(name, None)
                if time.monotonic() > until:
                    self._stop()  # so that their disks can be asked
                    raise CannotStart(self._not_serving(list(waiting)))
                time.sleep(LOOK_SECONDS)
        if waiting:
            return
        if not self._out:
            self._formed.touch()
        for line in self._advice:
            self._say(line)

    def _not_serving(self, waiting: Sequence[str]) -> str:
        """Describe each node that did not serve in time; the nodes are stopped by now."""
        lacking = self._disks.lacking() if self._formed.exists() else {}
        some = len(lacking) <= self._disks.count - self._disks.needed
        whence = "from the others" if some else "and waits for a majority with data"
        told = [f"{', '.join(waiting)} did not serve within {START_SECONDS:.0f} s"]
        for name in waiting:
            log = self._logs[name]
            doing = f" rebuilds {whence}, and" if name in lacking else ""
            warned = log.last_warning()
            words = f'warned last: "{warned}"' if warned else "has warned of nothing"
            told.append(f"{name}{doing} {words} (see {log.path})")
        return "; ".join(told)

    def _ended(self) -> list[str]:
        """Return the nodes that ended since the last call; report each, with advice."""
        found = []
        for config in self._configs.values():
            name = config.name
            if name in self._out or (ended := self._processes[name].poll()) is None:
                continue
            found.append(name)
            if ended == REMOVED:
                self._disks.forget(name)
                self._out[name] = "it was removed"
                self._say(_was_removed(name))
            else:
                self._leave_out(name, self._logs[name].last_words())
                if is_empty(config.data_dir):
                    self._advice += self._ways_to_rebuild(name)
                else:
                    self._advice.append(self._bringing_back(name))
        return found

    def _bringing_back(self, name: str) -> str:
        return f"bring it back with: {self._node_command(name)}"

    def _ways_to_rebuild(self, name: str) -> list[str]:
        return [
            f"if the disk of {name} was lost or replaced, rebuild it while the others serve:",
            f"    {self._node_command(name)} --rebuild",
            "or end this, and start all together:",
            f"    {self._start_rebuilding(name)}",
        ]

    def _node_command(self, name: str) -> str:
        file = self._directory / name / "node.toml"
        return f"holdfast node --config {shlex.quote(str(file))}"

    def _start_rebuilding(self, name: str) -> str:
        directory = shlex.quote(str(self._directory))
        return f"holdfast cluster start --dir {directory} --rebuild {name}"

    def _stub(self, address: str, stack: contextlib.ExitStack) -> admin_pb2_grpc.AdminServiceStub:
        if next(iter(self._configs.values())).tls is None:
            channel = grpc.insecure_channel(address, OPTIONS)
        else:
            channel = grpc.secure_channel(address, self._client_credentials(), OPTIONS)
        # Until grpcio 1.78 a call does not dial again where nobody listened yet; a listener does.
        channel.subscribe(lambda _: None, try_to_connect=True)
        return admin_pb2_grpc.AdminServiceStub(stack.enter_context(channel))

    def _client_credentials(self) -> grpc.ChannelCredentials:
        try:
            return self._client_tls().credentials()
        except OSError as error:
            raise CannotStart(f"cannot read {error.filename}: {error.strerror}") from error

    def _client_tls(self) -> Tls:
        folder = self._directory / CLIENT_FOLDER
        return Tls(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")

    def _announce(self) -> None:
        if self._asked_to_stop:
            return
        configs = list(self._configs.values())
        nodes = tuple(self._entry(config) for config in configs)
        tls = self._client_tls()
        entry = cluster_file.TlsEntry(str(tls.ca), str(tls.certificate), str(tls.key))
        http = {each.name: str(each.http_address) for each in configs if each.http_address}
        content = cluster_file.ClusterFile(
            configs[0].cluster_id, nodes, entry if configs[0].tls else None, http
        )
        self._announced = True
        cluster_file.write(self._directory / cluster_file.NAME, content)
        for node in nodes:
            runs = "does not run" if node.name in self._out else f"pid {node.pid}"
            self._say(f"{node.name}  clients {node.client_address}  {runs}")
        self._say(f"serving; {self._directory / cluster_file.NAME} says where. Ctrl-C stops it")

    def _entry(self, config: NodeConfig) -> cluster_file.NodeEntry:
        return cluster_file.NodeEntry(
            config.name,
            str(config.client_address),
            str(config.peer_address),
            self._processes[config.name].pid,
            str(self._directory / config.name),
        )

    def _watch(self) -> None:
        """Report each end of a node once; note which nodes there are; stop when asked."""
        dead, looked_at = set(self._out), 0.0
        with contextlib.ExitStack() as stack:
            nodes = NodesWatch(
                self._directory, functools.cache(lambda address: self._stub(address, stack))
            )
            while not self._asked_to_stop:
                ended = [
                    name
                    for name, process in self._processes.items()
                    if name not in dead and process.poll() is not None
                ]
                if ended or time.monotonic() - looked_at >= NODES_SECONDS:
                    nodes.look()
                    looked_at = time.monotonic()
                for name in ended:
                    dead.add(name)
                    code = self._processes[name].returncode
                    self._tell_end(name, removed=code == REMOVED or nodes.is_removed(name))
                time.sleep(LOOK_SECONDS)

    def _tell_end(self, name: str, *, removed: bool) -> None:
        """Say that a node has ended: for good, or how, and what brings it back."""
        if removed:
            self._say(_was_removed(name))
            return
        self._say(f"{name} died: {self._manner(name, self._processes[name].returncode)}")
        self._say(self._bringing_back(name))

    def _manner(self, name: str, returncode: int) -> str:
        if returncode < 0:
            return f"signal {signal.Signals(-returncode).name}"
        return f"exit code {returncode}; {self._logs[name].last_words()}"

    def _stop(self) -> None:
        """Stop all nodes and wait; kill those that take longer than their bound."""
        running = [p for p in self._processes.values() if p.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        bound = max(config.shutdown_ms for config in self._configs.values()) / 1000 + 5
        until = time.monotonic() + bound
        for process in running:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._say(f"process {process.pid} did not stop within {bound:.0f} s; killed")
                process.kill()
                process.wait()


def _was_removed(name: str) -> str:
    return f"{name} was removed from the cluster, and has stopped"


def _serves(stub: admin_pb2_grpc.AdminServiceStub) -> bool:
    try:
        seen = stub.DescribeCluster(admin_pb2.DescribeClusterRequest(), timeout=1.0)
    except grpc.RpcError:
        return False
    return bool(seen.cluster_id and seen.leader)
