"""Peers behind a link with a long round trip, over a relay that holds back what passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from random import Random

import pytest

from holdfast.chaos.cluster.proxy import Link
from unit.raft.transport.peer_authority import Authority
from unit.raft.transport.transports import Nodes, addresses

ONE_WAY_S = 0.08
"""A round trip, of which TLS and HTTP/2 need two, takes twice as long."""


@contextmanager
def relay(to: str) -> Iterator[str]:
    """The address of a relay that leads to `to` and takes `ONE_WAY_S` in each direction."""
    loop, stop, ports = asyncio.new_event_loop(), asyncio.Event(), SimpleQueue[int]()

    async def carry() -> None:
        link = Link("a", "b", Random(0))
        link.lead_to(to)
        link.slow(ONE_WAY_S, 0.0)
        ports.put(await link.listen())
        await stop.wait()
        await link.close()

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        thread = threading.Thread(target=runner.run, args=(carry(),), name="relay")
        thread.start()
        try:
            yield f"127.0.0.1:{ports.get()}"
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()


@pytest.mark.parametrize("secure", [True, False])
def test_a_long_round_trip_keeps_no_peers_apart(*, secure: bool) -> None:
    """The time for one attempt to connect is far above what a link or a busy machine takes."""
    at, authority = addresses("a", "b"), Authority()
    with ExitStack() as stack:
        nodes = Nodes(stack)
        pairs = {node: authority.node(node) if secure else None for node in at}
        nodes.start("b", at["b"], {"a": at["a"]}, tls=pairs["b"])
        nodes.start("a", at["a"], {"b": stack.enter_context(relay(at["b"]))}, tls=pairs["a"])

        assert nodes.until(lambda: ("b", "up") in nodes.recorders["a"].seen)
