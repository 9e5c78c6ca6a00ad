"""How a replica is opened and closed, over real files and alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

from harness.poll import WITHIN_S
from holdfast.raft.api import Settings
from holdfast.raft.open import ReplicaConfig, open_replica

if TYPE_CHECKING:
    from pathlib import Path


def alone(directory: Path) -> ReplicaConfig:
    return ReplicaConfig(
        cluster_id="c",
        node_id="n1",
        directory=directory,
        listen="127.0.0.1:0",
        peers={},
        tls=None,
        settings=Settings(),
        bootstrap=True,
    )


def test_a_replica_closes_while_reads_that_hang_hold_all_threads_of_the_loop(
    tmp_path: Path,
) -> None:
    """Each step of an end is bounded, and a bound that waits for a free thread is none."""
    let_go = Event()

    async def story() -> None:
        opened = await open_replica(alone(tmp_path / "data"))
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        hangs = loop.run_in_executor(None, let_go.wait)
        try:
            await asyncio.wait_for(opened.close(), WITHIN_S)
        finally:
            let_go.set()
            await hangs

    asyncio.run(story())
