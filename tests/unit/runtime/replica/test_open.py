"""How a replica is opened and closed, over real files and alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

import pytest

from harness.poll import WITHIN_S
from holdfast.raft.api import Settings
from holdfast.raft.open import LogConfig
from holdfast.runtime.replica.open import ReplicaConfig, open_replica
from holdfast.storage.errors import DirectoryRefused, Refusal

if TYPE_CHECKING:
    from pathlib import Path


def alone(directory: Path) -> ReplicaConfig:
    log = LogConfig("c", "n1", "127.0.0.1:0", peers={}, tls=None, settings=Settings())
    return ReplicaConfig(log, directory, bootstrap=True)


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


def test_a_configured_reserve_counts_when_a_directory_is_created(tmp_path: Path) -> None:
    """S20: not only for the disk guard; a small disk has less room than the usual reserve."""
    config = replace(alone(tmp_path / "data"), disk_reserve_bytes=1 << 62)
    with pytest.raises(DirectoryRefused, match=r"node\.disk_reserve_bytes") as refused:
        asyncio.run(open_replica(config))

    assert refused.value.refusal is Refusal.NO_SPACE
