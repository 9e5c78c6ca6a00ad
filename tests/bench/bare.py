"""The row `bare`: the calls of the other rows against a gRPC server that does nothing.

It is the floor of Python's gRPC on this machine at this hour. The calls are sent by the other rows'
own code, so client, messages, certificates and options are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import bare_server, changes, heartbeats, rebalances
from bench.figures import Figure, median
from bench.group import Members, assignment_of
from bench.nodes import Credentials, Node
from bench.rig import Bench, Watch, Work
from bench.shapes import BARE_ROW, Shape
from bench.talk import Line, Talk
from holdfast.server.config.node_config import Tls
from holdfast.server.security import certificates

HOSTS = ("localhost", "127.0.0.1")


class Server:
    """The process, as rows see a cluster: one node that leads."""

    def __init__(self, directory: Path) -> None:
        authority = certificates.make_authority("bare")
        self._own = certificates.issue(
            authority, directory / "server", "bare", "holdfast://bare/bare", HOSTS
        )
        self._clients = certificates.issue(
            authority, directory / "client", "local", "holdfast://bare/client/local", ()
        )
        self._process = _start(self._own)
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError("the bare gRPC server did not start; what it said stands above")
        self.nodes = (Node("bare", f"127.0.0.1:{int(said)}", self._process.pid, directory),)

    def named(self, name: str) -> Node:
        """The one node; it has this name."""
        del name
        return self.nodes[0]

    def credentials(self) -> Credentials:
        """What a client shows."""
        tls = self._clients
        return Credentials(tls.ca.read_bytes(), tls.key.read_bytes(), tls.certificate.read_bytes())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _start(tls: Tls) -> subprocess.Popen[bytes]:
    files = [str(file) for file in (tls.ca, tls.certificate, tls.key)]
    command = [sys.executable, "-m", bare_server.__name__, *files]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class Bare(NamedTuple):
    """The running server, and how to speak to it."""

    server: Server
    talk: Talk

    @property
    def leader_name(self) -> str:
        """The one node's."""
        return self.server.nodes[0].name

    def pids(self) -> dict[str, int]:
        """Its process."""
        return {node.name: node.pid for node in self.server.nodes}


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Bare]:
    """A server for one row; gone afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    server = await asyncio.to_thread(Server, folder)
    try:
        yield Bare(server, Talk(server))
    finally:
        await asyncio.to_thread(server.close)
        shutil.rmtree(folder, ignore_errors=True)


async def bare(bench: Bench) -> None:
    """The same calls against an empty gRPC server: what the other rows are set against."""
    members = _members(bench.sizes.beating_members)
    async with running(bench.folder / "run" / BARE_ROW) as server:
        async with server.talk.lines(bench.sizes.connections) as lines:
            await _commits(bench, server, lines)
            await _members_calls(bench, server, lines, members)
        await _restarts(bench, server, members)


def _members(count: int) -> Members:
    """As if they had joined; the server knows nobody."""
    ids = [bare_server.MEMBER] * count
    assignments = [assignment_of(number) for number in range(count)]
    generation = bare_server.GENERATION
    return Members("bare", count, generation=generation, ids=ids, assignments=assignments)


async def _commits(bench: Bench, server: Bare, lines: Sequence[Line]) -> None:
    many = bench.sizes.callers
    alone, crowded = Shape.COMMIT_STREAM_ALONE, Shape.COMMIT_STREAM
    unit = "changes/s"
    _add(bench, Shape.COMMIT_ALONE, await changes.unary(bench, server, lines, 1), unit)
    _add(bench, Shape.COMMITS, await changes.unary(bench, server, lines, many), unit)
    _add(bench, alone, await changes.streamed(bench, server, lines[0], 1), unit)
    _add(bench, crowded, await changes.streamed(bench, server, lines[0], many), unit)
    for lists in changes.LISTS:
        listed = await changes.listed(bench, server, lines[0], lists)
        _add(bench, lists.shape, listed, unit, each=lists.length)
    large = await changes.large(bench, server, lines)
    _add(bench, Shape.LARGE_COMMITS, large, unit, each=changes.MANY)


async def _members_calls(
    bench: Bench, server: Bare, lines: Sequence[Line], members: Members
) -> None:
    many, unit = bench.sizes.callers, "heartbeats/s"
    alone = await heartbeats.unary(bench, server, lines, members, 1)
    _add(bench, Shape.HEARTBEAT_ALONE, alone, unit)
    crowd = await heartbeats.unary(bench, server, lines, members, many)
    _add(bench, Shape.HEARTBEATS, crowd, unit)
    streams = await heartbeats.streams(bench, server, lines, members)
    _add(bench, Shape.HEARTBEAT_STREAMS, streams, unit, each=heartbeats.A_MESSAGE)
    pairs = await changes.replacements(bench, server, members, lines)
    _add(bench, Shape.PAIRS, pairs, "pairs/s")
    on_sessions = await changes.session_pairs(bench, server, members, lines)
    _add(bench, Shape.SESSION_PAIRS, on_sessions, "pairs/s")


async def _restarts(bench: Bench, server: Bare, members: Members) -> None:
    """As many as `rolling` has members, as often."""
    count, seconds, talk = bench.sizes.restarted_members, list[float](), server.talk
    lines = [talk.line(talk.leader.address) for _ in range(count)]
    await asyncio.gather(*(line.channel.channel_ready() for line in lines))
    watch = Watch(server)
    for _ in range(bench.sizes.restarts):
        began = time.perf_counter()
        for number in range(count):
            await rebalances.restart(talk, members, lines, number)
        seconds.append(time.perf_counter() - began)
    spent = watch.spent()
    await asyncio.gather(*(line.channel.close() for line in lines))
    cost, shape = spent.cost(bench.sizes.restarts * count), Shape.RESTART
    what = f"{count} of: {shape}"
    value, effort = median(seconds), spent.effort
    bench.add(Figure(BARE_ROW, what, value, "s", cost=cost, effort=effort, shape=shape))


def _add(bench: Bench, shape: Shape, work: Work, unit: str, *, each: int = 1) -> None:
    bench.add_work(BARE_ROW, shape, work, unit=unit, each=each, shape=shape)
