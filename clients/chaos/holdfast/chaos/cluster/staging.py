"""A cluster of our own, made by `holdfast cluster start`, whose nodes reach each other by proxies.

The command lays the cluster out and bootstraps it. Then it is stopped, the proxies' ports replace
the peers' in each node's file, and the cluster is started again. Knows no fault.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from holdfast.chaos.cluster.proxy import CLIENTS, Network
from holdfast.chaos.cluster.target import COMMAND, NotHealed, Target, until

SETTINGS: Final = (
    "group.initial_rebalance_delay_ms=200",
    "group.min_session_timeout_ms=1000",
    "log.segment_events_max=400",
)
"""Short waits, and segments so small that some are sealed in every run."""
_STOP_S: Final = 30.0
_SECTION: Final = re.compile(r"^\[cluster\.peers\.(?P<name>[^\]]+)\]$")


class StagingFailed(Exception):
    """The cluster did not start, or never served; the text is its output."""


class Staging:
    """A cluster in `directory`, which must not exist or be empty. Use as a context manager."""

    def __init__(self, directory: Path, nodes: int, seed: int, arguments: Sequence[str]) -> None:
        """`arguments`: further ones for `holdfast cluster start`."""
        self.directory = directory.resolve()
        self.names = tuple(f"node-{number}" for number in range(1, nodes + 1))
        self.network = Network(self.names, seed)
        self._arguments = arguments
        self._log = self.directory.with_name(f"{self.directory.name}.cluster.log")
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        """Start the cluster. Raises StagingFailed."""
        await self.network.__aenter__()
        try:
            await self._start()
            target = Target(self.directory)
            for node in target.nodes():
                for source in (*self.names, CLIENTS):
                    if source != node.name:
                        address = node.client_address if source == CLIENTS else node.peer_address
                        self.network.link(source, node.name).lead_to(address)
            await self._stop()
            for name in self.names:
                redirect(self.directory / name / "node.toml", name, self.network)
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.network.clear()
        await self._stop()
        await self.network.__aexit__()

    def addresses(self) -> tuple[str, ...]:
        """Return the addresses of the nodes for clients."""
        return tuple(self.network.address(CLIENTS, name) for name in self.names)

    async def _start(self) -> None:
        command = [*COMMAND, "cluster", "start", "--nodes", str(len(self.names))]
        command += ["--dir", str(self.directory)]
        if not any(self.directory.glob("*/node.toml")):
            command += [part for setting in SETTINGS for part in ("--set", setting)]
            command += self._arguments
        with self._log.open("ab") as log:
            self._process = process = subprocess.Popen(  # noqa: ASYNC220, S603 - it starts at once; our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us: the members leave first
            )
        file = self.directory / "cluster.json"
        try:
            await until(lambda: file.exists() or process.poll() is not None, "the cluster serves")
        except NotHealed as error:
            raise StagingFailed(self._said("the cluster runs, but does not serve")) from error
        if process.poll() is not None:
            raise StagingFailed(self._said("the cluster did not start"))

    def _said(self, what: str) -> str:
        return f"{what}: {self._log.read_text().strip() or 'it said nothing'}"

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, _STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)


def redirect(file: Path, name: str, network: Network) -> None:
    """Write the proxies' addresses into a node's file, for its peers and for clients."""
    lines, peer = [], ""
    for line in file.read_text().splitlines():
        if line.startswith("["):
            found = _SECTION.match(line)
            peer = found["name"] if found else ""
        if peer and line.startswith("client_address"):
            line = f'client_address = "{network.address(CLIENTS, peer)}"'  # noqa: PLW2901 - the same line, changed
        elif peer and peer != name and line.startswith("peer_address"):
            line = f'peer_address = "{network.address(name, peer)}"'  # noqa: PLW2901 - as above
        lines.append(line)
    file.write_text("\n".join(lines) + "\n")


async def end_brought_back(target: Target) -> None:
    """Stop nodes that were started for dead ones: `cluster start` stops only its own."""
    running = [process for process in target.brought_back.values() if process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGTERM)
    for process in running:
        try:
            await asyncio.to_thread(process.wait, _STOP_S)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            await asyncio.to_thread(process.wait)
