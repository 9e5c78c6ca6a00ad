"""What `holdfast node` says before its node serves."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from holdfast.cli.commands.node_process import _warn_of_even_size
from holdfast.server.config.address import Address
from holdfast.server.config.node_config import Peer
from unit.server.nodes import config


@pytest.mark.parametrize(
    ("nodes", "bootstrap", "warned"),
    [(2, True, True), (4, True, True), (3, True, False), (4, False, False)],
)
def test_s25_a_beginning_with_an_even_number_of_nodes_is_warned_of(
    nodes: int, caplog: pytest.LogCaptureFixture, *, bootstrap: bool, warned: bool
) -> None:
    """It is well in passing only; the option may stay in a unit, so it is no reason to refuse."""
    here = Address("127.0.0.1", 1)
    peers = tuple(Peer(f"node-{n}", here, here) for n in range(nodes))
    with caplog.at_level(logging.WARNING):
        _warn_of_even_size(replace(config(), peers=peers), bootstrap=bootstrap)

    assert ("is no safer than one of" in caplog.text) == warned
