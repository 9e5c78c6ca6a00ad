"""A command or a client that was given a node's peer address is told so, and which one to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cluster.processes import holdfast, running
from holdfast.client import HoldfastError
from holdfast.client.sync import Admin

if TYPE_CHECKING:
    from pathlib import Path


def test_who_calls_a_peer_port_is_told_which_address_to_use(tmp_path: Path) -> None:
    """Reads, changes and streams alike; nothing was done, so nothing is called unknown."""
    with running(tmp_path / "c", 1) as cluster:
        node, tls = cluster.node("node-1"), cluster.tls
        asked = ("--address", node["peer_address"], "--tls", str(tmp_path / "c" / "client"))
        done = [
            holdfast("topic", "list", *asked),
            holdfast("topic", "create", "t", "--partitions", "1", *asked),
            holdfast("cluster", "status", *asked),
            holdfast("log", "tail", *asked),
        ]
        with (
            Admin(node["peer_address"], credentials=tls) as admin,
            pytest.raises(HoldfastError) as raised,
        ):
            admin.list_groups()

    for told in [*(each.stderr for each in done), str(raised.value)]:
        assert "peer port of node 'node-1'" in told
        assert f"clients connect to {node['client_address']}" in told
        assert "Traceback" not in told
        assert "unknown" not in told
        assert "upgrade" not in told
    assert all(each.returncode for each in done)
