"""The three nodes: started by `holdfast cluster start`, asked, one killed and brought back.

Everything goes through the public commands and the public client. `cluster.json` says who is who.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from demo import job
from demo.group import Group, Protocol
from demo.settings import OPERATOR
from demo.witness import write_witness
from harness.poll import until
from holdfast.client import HoldfastError, Tls
from holdfast.client.sync import Admin

if TYPE_CHECKING:
    from collections.abc import Callable

    from demo.settings import Place
    from holdfast.client import Acknowledged
    from holdfast.v1.admin_pb2 import DescribeClusterResponse

NODES: Final = 3
SEGMENT_EVENTS: Final = 40
"""So few that the run seals some segments; what is left is exported as a tail."""

_START_S: Final = 60.0
_STOP_S: Final = 30.0
_KILL_S: Final = 3.0
_HOLDFAST: Final = (sys.executable, "-P", "-m", "holdfast.cli")


class Node(NamedTuple):
    """One node, as cluster.json has it."""

    name: str
    address: str
    pid: int
    directory: Path

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.directory / "data"


class Published(NamedTuple):
    """What a live node says about its log: the digest after an index."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    digest: bytes


class Cluster:
    """The running nodes. Use as a context manager: they end with the block, whatever happens."""

    def __init__(self, place: Place, protocol: Protocol) -> None:
        self._place, self.protocol = place, protocol
        self._starter: subprocess.Popen[bytes] | None = None
        self._revived: list[subprocess.Popen[bytes]] = []
        self._admin: Admin | None = None
        self.nodes: tuple[Node, ...] = ()
        self.cluster_id = ""
        self._tls: Tls | None = None
        self._witness: Callable[[Acknowledged], None] | None = None

    # --- life ---

    def start(self) -> None:
        """Start three nodes, wait until they serve, make the topic. Raises if they do not."""
        settings = {**self.protocol.settings, "log.segment_events_max": SEGMENT_EVENTS}
        command = [*_HOLDFAST, "cluster", "start", "--nodes", str(NODES)]
        command += ["--dir", str(self._place.cluster)]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        starter = self._starter = self._spawn(command, "cluster.log")
        file = self._place.cluster / "cluster.json"
        until(
            lambda: file.exists() or starter.poll() is not None,
            "the nodes serve",
            within_s=_START_S,
        )
        if not file.exists():
            log = self._place.folder / "cluster.log"
            raise RuntimeError(f"the cluster did not start: {log.read_text().strip()}")
        self._read(file)
        self._witness = write_witness(self._place.witness(OPERATOR))
        self._admin = self.admin([node.address for node in self.nodes])
        results = self._admin.create_topics({job.TOPIC: job.PARTITIONS})
        if (refusal := results[job.TOPIC]) is not None:
            raise refusal

    def _spawn(self, command: list[str], log_name: str) -> subprocess.Popen[bytes]:
        with (self._place.folder / log_name).open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _read(self, file: Path) -> None:
        content = json.loads(file.read_text())
        self.cluster_id = content["cluster_id"]
        self.nodes = tuple(
            Node(node["name"], node["client_address"], node["pid"], Path(node["directory"]))
            for node in content["nodes"]
        )
        tls = content["tls"]
        self._tls = Tls(tls["ca"], tls["certificate"], tls["key"]) if tls else None

    def stop(self) -> None:
        """Stop all nodes gracefully, which makes their logs durable. Raises if one does not."""
        if self._admin is not None:
            self._admin.close()
        running = [*self._revived, *([self._starter] if self._starter else [])]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            code = process.wait(_STOP_S)
            if code:
                raise RuntimeError(f"process {process.pid} of the cluster ended with code {code}")

    def kill(self) -> None:
        """End whatever still runs, soon: asked first, for the starter ends its nodes itself."""
        running = [*self._revived, *([self._starter] if self._starter else [])]
        for process in running:
            process.terminate()
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_KILL_S)
            process.kill()
            process.wait()
        self.kill_strays()

    def kill_strays(self) -> None:
        """End nodes of this folder that nobody answers for, as after a kill -9 of the demo."""
        for pid in _processes_of(self._place.cluster):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- asking ---

    def admin(self, addresses: list[str]) -> Admin:
        """An operator's client."""
        return Admin(addresses, credentials=self._tls, on_acknowledged=self._witness)

    def worker_options(self) -> list[str]:
        """How a worker finds the cluster, and what it speaks, as its command line has it."""
        options = [word for node in self.nodes for word in ("--endpoint", node.address)]
        options += ["--protocol", self.protocol.name]
        if self._tls is not None:
            parts = (self._tls.ca, self._tls.certificate, self._tls.key)
            options += ["--tls", *(str(part) for part in parts)]
        return options

    def group(self) -> Group:
        """The group as the leader knows it; nobody has joined it at first."""
        return self.protocol.ask(self._asked())

    def remove(self, *names: str) -> None:
        """One call that removes these members. Raises the first refusal."""
        results = self._asked().remove_members(
            job.GROUP, instance_ids=names, reason="two workers are taken out of service"
        )
        for refusal in results.values():
            if refusal is not None:
                raise refusal

    def leader(self, *, other_than: Node | None = None) -> Node:
        """The node that leads, waited for while an election is under way."""
        found: list[Node] = []

        def known() -> bool:
            name = self._asked().describe_cluster().leader
            found[:] = [node for node in self.nodes if node.name == name and node != other_than]
            return bool(found)

        until(known, "there is a leader")
        return found[0]

    def published(self) -> list[Published]:
        """What each node says about itself, once all have applied the same entries."""
        found: list[Published] = []

        def equal() -> bool:
            found[:] = [Published(a.applied_index, a.digest) for a in map(self._alone, self.nodes)]
            return len({one.index for one in found}) == 1

        until(equal, "all nodes have applied the same entries")
        return found

    def _alone(self, node: Node) -> DescribeClusterResponse:
        with self.admin([node.address]) as admin:
            return admin.describe_cluster()

    def _asked(self) -> Admin:
        if self._admin is None:
            raise RuntimeError("the cluster has not been started")
        return self._admin

    # --- faults ---

    def kill_leader(self) -> Node:
        """Kill -9 the node that leads."""
        node = self.leader()
        os.kill(node.pid, signal.SIGKILL)
        return node

    def revive(self, node: Node) -> None:
        """Bring a dead node back as an operator would, and wait until it follows."""
        command = [*_HOLDFAST, "node", "--config", str(node.directory / "node.toml")]
        self._revived.append(self._spawn(command, f"{node.name}.revived.log"))
        until(lambda: self._follows(node), f"{node.name} follows again", within_s=_START_S)
        self._read(self._place.cluster / "cluster.json")

    def _follows(self, node: Node) -> bool:
        """Whether the node itself says who leads, and has applied what the leader had."""
        wanted = self._asked().describe_cluster().commit_index
        try:
            seen = self._alone(node)
        except HoldfastError:
            return False
        return bool(seen.leader) and seen.applied_index >= wanted


def _processes_of(folder: Path) -> list[int]:
    """The nodes that run on a configuration in this folder, by process id; Linux only."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"holdfast.server" in words and any(os.fsencode(folder) in word for word in words):
                found.append(int(entry.name))
    return found
