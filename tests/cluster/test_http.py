"""The HTTP port of real nodes, with certificates: what a machine that probes them sees."""

from __future__ import annotations

import re
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from cluster.processes import PATIENCE_SECONDS, RunningCluster, poll, refused, running
from holdfast.server.metrics.catalogue import METRICS

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
    url = f"https://{cluster.content['http_addresses'][name]}{path}"
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


def scrape(cluster: RunningCluster, name: str) -> str:
    """Ask for the metrics as a client."""
    tls = cluster.tls
    assert tls is not None
    assert tls.certificate is not None
    context = ssl.create_default_context(cafile=str(tls.ca))
    context.load_cert_chain(tls.certificate, tls.key)
    url = f"https://{cluster.content['http_addresses'][name]}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS, context=context) as answer:
        text: str = answer.read().decode()
        return text


def test_every_declared_metric_is_shown_by_real_nodes(three: RunningCluster) -> None:
    """But for what there is none of: groups, traces, a history that tells when the disk is full.

    And of lag on nodes that do not lead.
    """
    leader, follower = three.leader(), three.follower()
    three.create_topic("t", 4)
    poll(lambda: "holdfast_partitions 4.0" in scrape(three, follower), "the topic is applied")
    told = {name: scrape(three, name) for name in (leader, follower)}
    shown = {
        name: {line.split("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"}
        for name, text in told.items()
    }
    wanted = {
        f"{metric.name}_count" if metric.kind == "histogram" else metric.name
        for metric in METRICS
        if not metric.name.startswith("holdfast_traces_")
    } - {"holdfast_rebalances_total", "holdfast_groups", "holdfast_disk_full_seconds"}

    assert wanted <= shown[leader]
    assert wanted - shown[follower] <= {"holdfast_peer_lag_entries", "holdfast_calls_total"}
    assert "holdfast_raft_leads 1.0" in told[leader]
    assert "holdfast_raft_leads 0.0" in told[follower]
    assert 'holdfast_calls_total{code="NONE",method="CreateTopics"} 1.0' in told[leader]
    commits = re.search(r"holdfast_commit_seconds_count (\S+)", told[leader])
    assert commits is not None
    assert float(commits[1]) > 0


def test_a_node_that_lost_its_majority_is_not_ready_and_lives(three: RunningCluster) -> None:
    left, *others = three.names
    three.kill(*others)

    poll(lambda: probe(three, left, "/readyz")[0] == 503, "the majority is missed")

    assert "[-] l" in probe(three, left, "/readyz")[1]  # the leader, or only the lag behind it
    assert probe(three, left, "/livez") == (200, "ok\n")


def test_a_port_in_use_is_told_before_anything_is_opened(tmp_path: Path) -> None:
    """By the command, which knows all ports, and by the node."""
    with running(tmp_path / "c", 1) as first:
        taken = first.content["http_addresses"]["node-1"]
        with running(tmp_path / "d", 1) as second:
            file = second.file("node-1")
            poll(lambda: "answering HTTPS on" in second.words("node-1"), "its port answers")
        told = refused("node", "--config", str(file), "--set", f"http.address={taken}")
    assert f"cannot listen for HTTP on {taken}" in told
    assert "http.address" in told
