"""The cluster under test: `cluster.json` names its nodes; they are asked, killed, brought back.

Nodes are processes of the public command `holdfast node`; nothing of the server is imported. A
process is signalled only while its command line names this cluster's directory, so that a process
id that the system has reused is left alone. Knows no fault.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio

from holdfast.client import Tls
from holdfast.v1 import admin_pb2, admin_pb2_grpc, log_pb2_grpc

COMMAND: Final = (sys.executable, "-P", "-m", "holdfast.cli")
PAUSE_S: Final = 0.05
PATIENCE_S: Final = 90.0
"""Seconds that anything expected may take before it counts as never."""
_ASK_S: Final = 1.5
_OPTIONS: Final = (
    # A pool of its own and short pauses: a node that is back must be found at once.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.max_receive_message_length", 16 << 20),
)


class NotHealed(Exception):
    """Something expected did not happen in time."""

    def __init__(self, what: str, patience_s: float = PATIENCE_S) -> None:
        """Make the sentence; `what` is a sentence about what was expected."""
        super().__init__(f"{what}: not within {patience_s:.0f} s")
        self.what = what


class NodeInfo(NamedTuple):
    """One node of cluster.json."""

    name: str
    client_address: str
    peer_address: str
    pid: int
    directory: Path


async def until(
    holds: Callable[[], Awaitable[object] | object], what: str, patience_s: float = PATIENCE_S
) -> None:
    """Ask repeatedly until the answer is true. Raises NotHealed."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = holds()
        if await answer if isinstance(answer, Awaitable) else answer:
            return
        if time.monotonic() > deadline:
            raise NotHealed(what, patience_s)
        await asyncio.sleep(PAUSE_S)


class Target:
    """A running local cluster, as its directory shows it."""

    def __init__(self, directory: Path) -> None:
        """Read cluster.json; raises OSError or ValueError if no cluster runs in `directory`."""
        self.directory = directory.resolve()
        self.brought_back: dict[str, subprocess.Popen[bytes]] = {}
        self._channels: dict[str, grpc.aio.Channel] = {}
        self.names = tuple(node.name for node in self.nodes())

    # --- who is who ---

    def nodes(self) -> list[NodeInfo]:
        """List all nodes, dead ones included."""
        return [
            NodeInfo(n["name"], n["client_address"], n["peer_address"], n["pid"],
                     Path(n["directory"]))
            for n in self._content()["nodes"]
        ]  # fmt: skip

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.directory / "cluster.json").read_text())
        return content

    def node(self, name: str) -> NodeInfo:
        """Return the node of a name."""
        return next(node for node in self.nodes() if node.name == name)

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return str(self._content()["cluster_id"])

    @property
    def tls(self) -> Tls | None:
        """The TLS files of a client; None on an insecure loopback."""
        tls = self._content()["tls"]
        return Tls(tls["ca"], tls["certificate"], tls["key"]) if tls else None

    def data(self, name: str) -> Path:
        """Return a node's data directory."""
        return self.directory / name / "data"

    def log(self, name: str) -> Path:
        """Return the path of a node's log for people."""
        return self.directory / name / "node.log"

    def others(self, *names: str) -> list[str]:
        """Return all nodes but these."""
        return [name for name in self.names if name not in names]

    # --- asking ---

    def channel(self, name: str) -> grpc.aio.Channel:
        """Return the one channel to a node, which goes through no proxy."""
        if name not in self._channels:
            address, tls = self.node(name).client_address, self.tls
            self._channels[name] = (
                grpc.aio.secure_channel(address, tls.credentials(), _OPTIONS)
                if tls
                else grpc.aio.insecure_channel(address, _OPTIONS)
            )
        return self._channels[name]

    def log_service(self, name: str) -> log_pb2_grpc.LogServiceAsyncStub:
        """Return a stub for a node's event log."""
        return log_pb2_grpc.LogServiceStub(self.channel(name))

    async def describe(
        self, name: str, *, anchor: bool = False
    ) -> admin_pb2.DescribeClusterResponse | None:
        """Ask one node for the cluster as it sees it; None if it does not answer.

        `anchor`: it is to tell what its log and its state are now, too.
        """
        stub = admin_pb2_grpc.AdminServiceStub(self.channel(name))
        request = admin_pb2.DescribeClusterRequest(anchor=anchor)
        try:
            call = stub.DescribeCluster(request, timeout=_ASK_S)
            seen: admin_pb2.DescribeClusterResponse = await call
        except grpc.aio.AioRpcError:
            return None
        return seen

    async def seen(self) -> dict[str, admin_pb2.DescribeClusterResponse]:
        """Ask all nodes; return the answers of those that answer."""
        answers = await asyncio.gather(*(self.describe(name) for name in self.names))
        pairs = zip(self.names, answers, strict=True)
        return {name: answer for name, answer in pairs if answer is not None}

    async def leader(self) -> str:
        """Wait for a leader: it says so itself, and a majority agrees. Raises NotHealed."""
        found: list[str] = []

        async def known() -> bool:
            seen = await self.seen()
            named = [one.leader for one in seen.values()]
            found[:] = [
                name
                for name, one in seen.items()
                if one.leader == name and named.count(name) * 2 > len(self.names)
            ]
            return bool(found)

        await until(known, "a majority agrees on who leads")
        return found[0]

    async def whole(self) -> None:
        """Wait until all nodes follow one leader and have applied what it had. Raises NotHealed."""
        await until(self._is_whole, "all nodes follow one leader and have its log")

    async def _is_whole(self) -> bool:
        seen = await self.seen()
        leaders = {one.leader for one in seen.values()}
        if len(seen) < len(self.names) or len(leaders) != 1 or leaders == {""}:
            return False
        leading = seen[next(iter(leaders))]
        roles = [node.role for node in leading.nodes if node.name != leading.node]
        behind = [one for one in seen.values() if one.applied_index + 200 < leading.commit_index]
        return not behind and all(role == "follower" for role in roles)

    # --- processes ---

    def pid(self, name: str) -> int:
        """Return a node's process id; 0 if no process of this cluster has it any more."""
        pid = self.node(name).pid
        return pid if os.fsencode(self.directory) in _command(pid) else 0

    def alive(self, name: str) -> bool:
        """Return whether the node's process runs; one that waits to be reaped does not."""
        started = self.brought_back.get(name)
        if started is not None:
            started.poll()  # reaps it
        return bool(self.pid(name))

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a node that runs."""
        if pid := self.pid(name):
            os.kill(pid, number)

    async def gone(self, *names: str) -> None:
        """Wait until these processes have ended."""
        await until(
            lambda: not any(self.alive(name) for name in names), f"{', '.join(names)} ended"
        )

    async def kill(self, *names: str) -> None:
        """Kill these nodes (SIGKILL), all at once."""
        for name in names:
            self.signal(name, signal.SIGKILL)
        await self.gone(*names)

    async def stop(self, name: str) -> None:
        """Stop a node (SIGTERM), and wait for its end."""
        self.signal(name, signal.SIGTERM)
        await self.gone(name)

    def limit_files(self, name: str, most: int | None) -> None:
        """Limit the bytes of each file of a node (RLIMIT_FSIZE); None: no limit."""
        pid = self.pid(name)
        if not pid:
            return
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if most is None else most, hard))

    async def bring_back(
        self,
        *names: str,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start dead nodes as an operator would; wait until cluster.json has their pids.

        Raises NotHealed if one ends instead.
        """
        for name in names:
            command = (*COMMAND, "node", "--config", str(self.directory / name / "node.toml"))
            with self.log(name).open("ab") as log:
                self.brought_back[name] = subprocess.Popen(  # noqa: ASYNC220, S603 - it starts at once; our own program
                    [*command, *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **(variables or {})},
                    start_new_session=True,  # it outlives the run, as the node it stands for
                )
        for name in names:
            await until(lambda name=name: self._is_back(name), f"{name} is back")  # type: ignore[misc]  # mypy has no type for the default
            if self.brought_back[name].poll() is not None:
                raise NotHealed(f"{name} is back, and not: {self.last_words(name)}")

    def _is_back(self, name: str) -> bool:
        process = self.brought_back[name]
        return process.poll() is not None or self.node(name).pid == process.pid

    def last_words(self, name: str) -> str:
        """Return the last line that a node wrote."""
        lines = self.log(name).read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it left no word"

    async def close(self) -> None:
        """Close the channels; the nodes go on."""
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
