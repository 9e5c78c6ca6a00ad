"""A revoked certificate is out at every port of real nodes, which take no tokens (ADR 31)."""

from __future__ import annotations

import shutil
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from cluster.processes import PATIENCE_SECONDS, RunningCluster, in_process, poll, running
from harness.twins import twin_of

if TYPE_CHECKING:
    from pathlib import Path


def scraped(cluster: RunningCluster, name: str, client: Path) -> tuple[int, str]:
    """Ask a node for its metrics with a client's certificate: the status and the text."""
    assert cluster.tls is not None
    context = ssl.create_default_context(cafile=str(cluster.tls.ca))
    context.load_cert_chain(client / "certificate.pem", client / "key.pem")
    url = f"https://{cluster.content['http_addresses'][name]}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def done(cluster: RunningCluster, *command: str) -> None:
    """Run an administrative command, which must not be refused."""
    asked = cluster.ask(*command)
    assert asked.returncode == 0, asked.stderr


def connected(cluster: RunningCluster, leader: str) -> set[str]:
    """The nodes that the leader is connected with, and itself."""
    seen = cluster.describe(leader)
    return {node.name for node in seen.nodes if node.connected} if seen else set()


def test_a_client_and_a_node_with_revoked_certificates_are_out_at_the_http_and_the_peer_port(
    tmp_path: Path,
) -> None:
    with running(tmp_path / "c", 3) as cluster:
        leader, names, scraper = cluster.leader(), cluster.names, cluster.directory / "scraper"
        directory = str(cluster.directory)
        issued = in_process("certs", "issue", "--dir", directory, "client", "scraper")
        assert issued.returncode == 0, issued.stderr
        done(cluster, "acl", "grant", "holdfast://client/scraper", "reader", "--on-cluster")
        poll(
            lambda: {scraped(cluster, name, scraper)[0] for name in names} == {200},
            "the scraper is served",
        )
        stolen, twin = str(scraper / "certificate.pem"), cluster.directory / "twin"
        shutil.copytree(scraper, twin)
        (twin / "certificate.pem").write_bytes(twin_of((scraper / "certificate.pem").read_bytes()))
        assert {scraped(cluster, name, twin)[0] for name in names} == {200}
        done(cluster, "certs", "revoke", stolen, "--reason", "stolen")
        poll(
            lambda: {scraped(cluster, name, scraper)[0] for name in names} == {401},
            "the scraper is out",
        )
        assert "is revoked (stolen)" in scraped(cluster, leader, scraper)[1]
        assert {scraped(cluster, name, twin)[0] for name in names} == {401}, "nor its other form"
        out = next(name for name in names if name != leader)
        own = str(cluster.directory / out / "certificate.pem")
        done(cluster, "certs", "revoke", own)
        poll(lambda: connected(cluster, leader) == {*names} - {out}, f"{out} is out")
        poll(lambda: "is revoked" in cluster.words(leader), "the log says why")
        done(cluster, "certs", "unrevoke", own)
        poll(lambda: connected(cluster, leader) == {*names}, f"{out} is back")
