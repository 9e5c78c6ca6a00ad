"""What deploy/ offers for copying is read by the code that it is for."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from holdfast.raft.transport.tls import PeerTls
from holdfast.server.config.node_config import load
from holdfast.server.security.client_port import principal_of
from holdfast.server.security.credentials import read_credentials
from holdfast.server.security.peer_port import peer_tls
from unit.raft.transport.transports import Nodes, addresses

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_the_example_configuration_is_one(tmp_path: Path) -> None:
    for name in ("ca.pem", "node-1.pem", "node-1.key"):
        (tmp_path / name).write_text("a certificate")
    shutil.copy(DEPLOY / "node.toml", tmp_path)

    config = load(tmp_path / "node.toml", {}, ())

    assert config.name == "node-1"
    assert [peer.name for peer in config.peers] == ["node-1", "node-2", "node-3"]
    assert dict(config.settings) == {"group.initial_rebalance_delay_ms": "3000"}
    assert config.administrators == ("holdfast://client/ops",), "without one no cluster begins"


def they_find_each_other(folder: Path) -> None:
    """Start the peer transports of node-1 and node-2 with their certificates."""
    at = addresses("node-1", "node-2")
    with ExitStack() as stack:
        nodes = Nodes(stack)
        for node, other in (("node-1", "node-2"), ("node-2", "node-1")):
            ca, certificate, key = (
                (folder / name).read_bytes() for name in ("ca.pem", f"{node}.pem", f"{node}.key")
            )
            tls = PeerTls(ca, certificate, key)
            nodes.start(node, at[node], {other: at[other]}, "production", tls)
        assert nodes.until(lambda: ("node-2", "up") in nodes.recorders["node-1"].seen)
        assert nodes.until(lambda: ("node-1", "up") in nodes.recorders["node-2"].seen)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl on this machine")
def test_the_certificates_of_the_readme_are_what_nodes_ask_for(tmp_path: Path) -> None:
    """The lines are run as they stand, but for two nodes, which then find each other."""
    (lines,) = re.findall(r"```sh\n(.*?)```", (DEPLOY / "README.md").read_text(), re.DOTALL)
    lines = lines.replace("node=node-1\n", "for node in node-1 node-2; do\n")
    lines = lines.replace("# A client", "done\n# A client")
    subprocess.run(["bash", "-euc", lines], cwd=tmp_path, check=True, capture_output=True)
    shutil.copy(DEPLOY / "node.toml", tmp_path)
    they_find_each_other(tmp_path)

    config = load(tmp_path / "node.toml", {}, ())
    assert config.tls is not None
    shown = peer_tls(config, read_credentials(config.tls))

    assert not shown.accept_old_names
    assert principal_of((tmp_path / "billing.pem").read_bytes()) == "holdfast://client/billing"
    assert stat.S_IMODE((tmp_path / "node-1.key").stat().st_mode) == 0o600
    client = x509.load_pem_x509_certificate((tmp_path / "billing.pem").read_bytes())
    usage = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd on this machine")
def test_the_unit_is_understood_by_systemd(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "holdfast.service").read_text()
    runnable = unit.replace("/opt/holdfast/bin/holdfast", "/bin/true")
    (tmp_path / "holdfast.service").write_text(runnable)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "holdfast.service")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "holdfast.service" not in done.stderr, done.stderr
