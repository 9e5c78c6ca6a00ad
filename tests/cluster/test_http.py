"""The HTTP port of real nodes, with certificates: what a machine that probes them sees."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from cluster.processes import PATIENCE_SECONDS, RunningCluster, poll, refused, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(tmp_path_factory.mktemp("three") / "c", 3) as cluster:
        yield cluster


def probe(cluster: RunningCluster, name: str, path: str) -> tuple[int, str]:
    """Ask as a kubelet does, without a certificate: the status and the text."""
    tls = cluster.tls
    assert tls is not None
    context = ssl.create_default_context(cafile=str(tls.ca))
    url = f"https://{cluster.node(name)['http_address']}{path}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_needs_no_certificate_and_the_rest_does(three: RunningCluster) -> None:
    assert {probe(three, name, "/livez") for name in three.names} == {(200, "ok\n")}
    poll(
        lambda: {probe(three, name, "/readyz") for name in three.names} == {(200, "ok\n")},
        "all nodes are ready",
    )
    assert {probe(three, name, "/metrics")[0] for name in three.names} == {401}


def test_a_node_that_lost_its_majority_is_not_ready_and_lives(three: RunningCluster) -> None:
    left, *others = three.names
    three.kill(*others)

    poll(lambda: probe(three, left, "/readyz")[0] == 503, "the majority is missed")

    assert "[-] l" in probe(three, left, "/readyz")[1]  # the leader, or only the lag behind it
    assert probe(three, left, "/livez") == (200, "ok\n")


def test_a_port_in_use_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    """By the command, which knows all ports, and by the node."""
    with running(tmp_path / "c", 1) as first:
        taken = first.node("node-1")["http_address"]
        with running(tmp_path / "d", 1) as second:
            file = second.file("node-1")
        own = second.words("node-1")
        assert "answering HTTPS on" in own
        told = refused("node", "--config", str(file), "--set", f"http.address={taken}")
    assert f"cannot listen for HTTP on {taken}" in told
    assert "http.address" in told
