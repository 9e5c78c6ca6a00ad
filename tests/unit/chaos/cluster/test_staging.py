"""A cluster that cannot be had for a run ends the run in one sentence; one that can has proxies."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from functools import partial
from typing import TYPE_CHECKING

import pytest

from holdfast.chaos.cluster import staging, target
from holdfast.chaos.cluster.proxy import CLIENTS, Network
from holdfast.chaos.cluster.staging import Staging, StagingFailed, redirect

if TYPE_CHECKING:
    from pathlib import Path

SILENT = "import signal; print('still waiting', flush=True); signal.pause()"
DIES = "raise SystemExit('no port is free')"


@pytest.mark.parametrize(
    ("program", "said"),
    [(SILENT, "runs, but does not serve"), (DIES, "did not start: no port is free")],
)
def test_a_cluster_that_never_serves_is_a_failed_staging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """docs/chaos.md: exit code 3, which `holdfast chaos` gives for StagingFailed alone."""
    monkeypatch.setattr(staging, "COMMAND", (sys.executable, "-c", program))
    if program is SILENT:
        monkeypatch.setattr(staging, "until", partial(target.until, patience_s=0.0))

    async def stages() -> None:
        async with Staging(tmp_path / "cluster", 3, 7, ()):
            pytest.fail("there is no cluster")

    with pytest.raises(StagingFailed, match=said):
        asyncio.run(stages())


def test_a_node_is_sent_to_the_proxies_and_listens_where_it_did(tmp_path: Path) -> None:
    """Its own addresses stay; its peers, and what clients are told, become the proxies'."""
    network = Network(("a", "b"), 1)
    network.ports = {("a", "b"): 1, ("b", "a"): 2, (CLIENTS, "a"): 3, (CLIENTS, "b"): 4}
    file = tmp_path / "node.toml"
    file.write_text(
        '[node]\nname = "a"\nclient_address = "127.0.0.1:10"\npeer_address = "127.0.0.1:11"\n'
        '[cluster.peers.a]\nclient_address = "127.0.0.1:10"\npeer_address = "127.0.0.1:11"\n'
        '[cluster.peers.b]\nclient_address = "127.0.0.1:20"\npeer_address = "127.0.0.1:21"\n'
        '[logger]\nlevel = "info"\n'
    )
    redirect(file, "a", network)
    read = tomllib.loads(file.read_text())

    assert read["node"]["client_address"] == "127.0.0.1:10"
    assert read["node"]["peer_address"] == "127.0.0.1:11"
    assert read["cluster"]["peers"]["a"] == {
        "client_address": "127.0.0.1:3",
        "peer_address": "127.0.0.1:11",
    }
    assert read["cluster"]["peers"]["b"] == {
        "client_address": "127.0.0.1:4",
        "peer_address": "127.0.0.1:1",
    }
    assert read["logger"] == {"level": "info"}
