"""Real nodes in real processes, on 127.0.0.1; each ends with its test.

Everything goes through the public commands and what they leave behind: `cluster.json`, the nodes'
files and logs, and gRPC. Processes stay in the tests' process group, so that whatever ends the
tests ends them too.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import tomllib
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from click.testing import CliRunner
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from cluster import ports
from harness.children import environment
from harness.poll import until
from holdfast.cli.main import main
from holdfast.client import Tls
from holdfast.v1.admin_pb2 import (
    CreatableTopic,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.errors_pb2 import ERROR_CODE_NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PATIENCE_SECONDS = 60.0
"""How long a test waits for what must come about; far more than it ever takes."""
INSECURE = ("--insecure-loopback", "--set", "group.initial_rebalance_delay_ms=0")
GROUPS = "holdfast.v1.GroupService"
_COMMAND = (sys.executable, "-m", "holdfast.cli")

poll = partial(until, within_s=PATIENCE_SECONDS)


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*_COMMAND, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def in_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in this process, of which the start would cost more than the rest.

    Not for `holdfast node`, and not beside other threads: the output of all goes to the command's.
    """
    ours = {name: None for name in os.environ if name.startswith("HOLDFAST_")}
    done = CliRunner().invoke(main, arguments, env=ours)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def _is_alone() -> bool:
    """Whether nothing else of the test runs in this process: gRPC's own threads are daemons."""
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    return all(each.daemon for each in others)


def refused(
    *arguments: str, run: Callable[..., subprocess.CompletedProcess[str]] = holdfast
) -> str:
    """The one sentence with which a command was refused."""
    done = run(*arguments)
    lines = [line for line in done.stderr.splitlines() if line.startswith("holdfast: ")]

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert len(lines) == 1, done.stderr
    return lines[0]


class RunningCluster:
    """A cluster that `holdfast cluster start` runs, and the nodes that were brought back."""

    def __init__(self, directory: Path, process: subprocess.Popen[bytes]) -> None:
        self.directory, self.process = directory, process
        self._brought_back: list[subprocess.Popen[bytes]] = []
        self._channels: dict[str, grpc.Channel] = {}
        self._seen_pids: set[int] = set()
        self.environment: Mapping[str, str] | None = None
        """Of the nodes that are brought back, if they run another version; None: ours."""

    # --- what it says of itself ---

    @property
    def content(self) -> dict[str, Any]:
        """What cluster.json says."""
        made: dict[str, Any] = json.loads((self.directory / "cluster.json").read_text())
        self._seen_pids.update(node["pid"] for node in made["nodes"])
        return made

    @property
    def names(self) -> list[str]:
        """All nodes, dead ones included."""
        return [node["name"] for node in self.content["nodes"]]

    @property
    def addresses(self) -> list[str]:
        """Where clients find the nodes."""
        return [node["client_address"] for node in self.content["nodes"]]

    @property
    def tls(self) -> Tls | None:
        """What a client shows; None for an insecure loopback."""
        tls = self.content["tls"]
        return Tls(tls["ca"], tls["certificate"], tls["key"]) if tls else None

    def node(self, name: str) -> dict[str, Any]:
        """One node's line of cluster.json."""
        return next(node for node in self.content["nodes"] if node["name"] == name)

    def file(self, name: str) -> Path:
        """A node's configuration."""
        return self.directory / name / "node.toml"

    def configuration(self, name: str) -> dict[str, Any]:
        """What a node's configuration says."""
        return tomllib.loads(self.file(name).read_text())

    def data(self, name: str) -> Path:
        """A node's data directory."""
        return self.directory / name / "data"

    def words(self, name: str) -> str:
        """What a node has written to its logger since the first start."""
        return (self.directory / name / "node.log").read_text(errors="replace")

    # --- asking ---

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an administrative command against this cluster."""
        return self.run(*arguments, "--cluster", str(self.directory))

    @staticmethod
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, wherever that costs least."""
        return (in_process if _is_alone() else holdfast)(*arguments)

    def channel(self, name: str) -> grpc.Channel:
        """The tests' one channel to a node."""
        if name not in self._channels:
            address = self.node(name)["client_address"]
            # A pool of its own, and short pauses: a node that is back must be found at once.
            options = [
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 50),
                ("grpc.min_reconnect_backoff_ms", 50),
                ("grpc.max_reconnect_backoff_ms", 100),
            ]
            tls = self.tls
            self._channels[name] = (
                grpc.secure_channel(address, tls.credentials(), options)
                if tls
                else grpc.insecure_channel(address, options)
            )
        return self._channels[name]

    def connect_anew(self) -> None:
        """Have the tests' channels show, and trust, the certificates that are there now."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def describe(self, name: str) -> DescribeClusterResponse | None:
        """The cluster as one node sees it; None if it does not answer."""
        try:
            stub = AdminServiceStub(self.channel(name))
            seen: DescribeClusterResponse = stub.DescribeCluster(
                DescribeClusterRequest(), timeout=2.0
            )
        except grpc.RpcError:
            return None
        return seen

    def leader(self, *, other_than: str = "") -> str:
        """Wait until one node, and not this other one, says that it leads and is ready."""
        names: list[str] = []

        def found() -> bool:
            names[:] = [name for name in self.names if name != other_than and self.ready(name)]
            return len(names) == 1

        poll(found, "one leader")
        return names[0]

    def ready(self, name: str) -> bool:
        """Whether a node's health service says that it serves groups, as only the leader does."""
        try:
            stub = health_pb2_grpc.HealthStub(self.channel(name))
            answer = stub.Check(HealthCheckRequest(service=GROUPS), timeout=2.0)
        except grpc.RpcError:
            return False
        return bool(answer.status == HealthCheckResponse.SERVING)

    def follower(self) -> str:
        """A node that does not lead."""
        leader = self.leader()
        return next(name for name in self.names if name != leader)

    def settled(self) -> list[DescribeClusterResponse]:
        """Wait until all nodes have applied the same entries, all there are."""
        seen: list[DescribeClusterResponse] = []

        def equal() -> bool:
            answers = [self.describe(name) for name in self.names]
            seen[:] = [answer for answer in answers if answer]
            indexes = {i for a in seen for i in (a.applied_index, a.commit_index)}
            return len(seen) == len(answers) and len(indexes) == 1

        poll(equal, "all nodes have applied the same entries")
        return seen

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic on the node that leads."""
        topic = CreatableTopic(name=name, num_partitions=partitions)
        stub = AdminServiceStub(self.channel(self.leader()))
        made = stub.CreateTopics(CreateTopicsRequest(topics=[topic]), timeout=PATIENCE_SECONDS)
        assert [result.error_code for result in made.topics] == [ERROR_CODE_NONE]

    # --- faults ---

    def kill(self, *names: str) -> None:
        """Kill -9, all at once."""
        pids = [int(self.node(name)["pid"]) for name in names]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        poll(lambda: not any(_runs(pid) for pid in pids), f"{names} are dead")

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """SIGSTOP for as long as the block runs, then SIGCONT."""
        pid = int(self.node(name)["pid"])
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def limit_file_size(self, name: str, most: int) -> None:
        """No file of a running node may grow beyond this size, in bytes (RLIMIT_FSIZE)."""
        resource.prlimit(int(self.node(name)["pid"]), resource.RLIMIT_FSIZE, (most, most))

    def bring_back(
        self, *names: str, options: Sequence[str] = (), files_max: int | None = None
    ) -> list[subprocess.Popen[bytes]]:
        """Start dead or new nodes as an operator would, and wait until cluster.json has their pids.

        `files_max`: the hard limit on open files under which they start. Returns their processes.
        """
        limit = ("sh", "-c", f'ulimit -n {files_max} && exec "$@"', "sh") if files_max else ()
        started = {name: self.start(name, options, limit) for name in names}
        for name, process in started.items():
            poll(partial(self._is_back, name, process), f"{name} is back")
            assert process.poll() is None, self.words(name)
        return [*started.values()]

    def try_to_start(self, name: str) -> str:
        """Start a dead node that is to be refused; return what it says until it ends."""
        before = len(self.words(name))
        process = self.start(name)
        poll(lambda: process.poll() is not None, f"{name} has ended")
        assert process.returncode == 1, self.words(name)
        return self.words(name)[before:]

    def start(
        self, name: str, options: Sequence[str] = (), limit: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a node's process; it ends with the cluster."""
        with (self.directory / name / "node.log").open("ab") as log:
            process = subprocess.Popen(
                [*limit, *_COMMAND, "node", "--config", str(self.file(name)), *options],
                env=self.environment or environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._brought_back.append(process)
        return process

    def _is_back(self, name: str, process: subprocess.Popen[bytes]) -> bool:
        pids = {node["name"]: node["pid"] for node in self.content["nodes"]}
        return process.poll() is not None or pids.get(name) == process.pid

    def stop_gracefully(self, name: str) -> None:
        """SIGTERM, and wait for the end."""
        pid = int(self.node(name)["pid"])
        os.kill(pid, signal.SIGTERM)
        poll(lambda: not _runs(pid), f"{name} stopped")

    def stop_at_one_index(self) -> None:
        """Stop followers first: nobody takes over, no entry is added, so all end at one index."""
        self.settled()
        leader = self.leader()
        for name in sorted(self.names, key=lambda name: name == leader):
            self.stop_gracefully(name)

    # --- the end ---

    def end(self) -> None:
        """End everything that was started, politely first. Nothing may be left."""
        with contextlib.suppress(OSError):
            _ = self.content
        for channel in self._channels.values():
            channel.close()
        for process in self._brought_back:
            process.terminate()
        self.process.send_signal(signal.SIGINT)
        for process in [*self._brought_back, self.process]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_SECONDS)
            process.kill()
            process.wait()
        for pid in self._seen_pids:
            if _command(pid).count(os.fsencode(self.directory)):  # pids are used again
                os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _runs(pid: int) -> bool:
    """Whether the process lives; one that only waits to be reaped has no command any more."""
    return bool(_command(pid))


@contextmanager
def running(directory: Path, nodes: int, *arguments: str) -> Iterator[RunningCluster]:
    """A local cluster that serves; it is stopped, and its processes are gone, at the end."""
    command = ["cluster", "start", "--nodes", str(nodes), "--dir", str(directory)]
    if not directory.exists() and "--port-base" not in arguments:
        command += ["--port-base", str(ports.reserve())]
    command += arguments
    out = directory.parent / f"{directory.name}.out"
    with out.open("ab") as stream:
        process = subprocess.Popen(
            [*_COMMAND, *command], env=environment(), stdout=stream, stderr=stream
        )
    cluster = RunningCluster(directory, process)
    try:
        poll(lambda: (directory / "cluster.json").exists() or process.poll() is not None, "start")
        assert process.poll() is None, out.read_text()
        _ = cluster.content
        yield cluster
    finally:
        cluster.end()
