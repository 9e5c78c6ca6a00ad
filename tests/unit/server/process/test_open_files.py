"""How many connections a node takes of the files that it may open."""

from __future__ import annotations

import resource

import pytest

from holdfast.server.process.open_files import (
    CONNECTIONS_MAX,
    connections_max,
    peer_connections_max,
    raise_limit,
)


@pytest.mark.parametrize(
    ("files", "left"), [(65_536, 64_384), (8_192, 7_936), (1_024, 768), (500, 250), (100, 50)]
)
def test_what_clients_get_of_the_files(
    files: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but 128 and what the peer port may take; at least half of a tiny limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert connections_max() == left


@pytest.mark.parametrize(
    ("files", "nodes", "left"),
    [(65_536, 3, 1_024), (8_192, 3, 128), (500, 3, 125), (100, 3, 25), (64, 5, 20)],
)
def test_what_the_peer_port_gets_of_the_files(
    files: int, nodes: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in 64, from 128 to 1,024; never above a quarter of all, or below four for each node."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert peer_connections_max(nodes) == left


def test_without_a_limit_on_files_there_is_still_one_on_connections() -> None:
    """RLIM_INFINITY is -1, and no number of connections."""
    with pytest.MonkeyPatch.context() as patch:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        patch.setattr(resource, "getrlimit", lambda _: unlimited)
        assert connections_max() == CONNECTIONS_MAX
        assert peer_connections_max(3) == 1_024


def test_a_shells_soft_limit_on_files_is_not_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the 769th client of a node that was started by hand would be turned away."""
    limits = [(1_024, 65_536)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.append(pair))

    raise_limit()

    assert connections_max() == 65_536 - 128 - 1_024
