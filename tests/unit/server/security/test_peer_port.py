"""What a node shows its peers: what a layout issues, and what a node says of its own names."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from holdfast.cli.local_cluster.layout import CLIENT_FOLDER, lay_out, plan
from holdfast.raft.transport.peer_names import missing_name, node_uri
from holdfast.server.config.node_config import ConfigError, Tls, load
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.credentials import read_credentials
from holdfast.server.security.peer_port import peer_tls

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.raft.transport.tls import PeerTls
    from holdfast.server.config.node_config import NodeConfig

THREE = "".join(
    f'[cluster.peers.{name}]\nclient_address="127.0.0.1:1"\npeer_address="127.0.0.1:2"\n'
    for name in ("a", "b", "d")
)
OLD = "holdfast://node/a"
NEW = node_uri("c", "a")


def configured(folder: Path, tls: Tls, more: str = "", peers: str = THREE) -> NodeConfig:
    """Node a of cluster c with this certificate."""
    (folder / "node.toml").write_text(
        '[node]\nname = "a"\ndata_dir = "data"\nclient_address = "127.0.0.1:1"\n'
        f'peer_address = "127.0.0.1:2"\n[cluster]\nid = "c"\n{peers}[tls]\nca = "{tls.ca}"\n'
        f'certificate = "{tls.certificate}"\nkey = "{tls.key}"\n{more}'
    )
    return load(folder / "node.toml", {}, ())


def shown_by(config: NodeConfig) -> PeerTls:
    """What the node shows its peers."""
    assert config.tls is not None
    return peer_tls(config, read_credentials(config.tls))


def usages(file: Path) -> set[x509.ObjectIdentifier]:
    """What a certificate may be used for."""
    certificate = x509.load_pem_x509_certificate(file.read_bytes())
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_new_cluster_has_the_name_and_accepts_no_others(tmp_path: Path) -> None:
    files = lay_out(tmp_path / "c", plan(3, None, [], insecure=False))
    configs = [load(file, {}, ()) for file in files]

    for config in configs:
        assert config.tls is not None
        assert not config.tls.accept_old_node_names
        pem = config.tls.certificate.read_bytes()
        assert missing_name(pem, config.cluster_id, config.name) == ""


def test_a_clients_certificate_serves_nobody(tmp_path: Path) -> None:
    """Else whoever holds one could answer in a node's place, to clients and peers."""
    (node, *_) = lay_out(tmp_path / "c", plan(3, None, [], insecure=False))
    client = tmp_path / "c" / CLIENT_FOLDER / "certificate.pem"

    assert usages(client) == {ExtendedKeyUsageOID.CLIENT_AUTH}
    assert usages(node.with_name("certificate.pem")) == {
        ExtendedKeyUsageOID.CLIENT_AUTH,
        ExtendedKeyUsageOID.SERVER_AUTH,
    }


@pytest.mark.parametrize(
    ("uri", "hosts", "more", "lacks"),
    [
        ("holdfast://client/x", ["127.0.0.1"], "", f"URI:{NEW}"),
        (node_uri("other", "a"), ["a"], "", f"URI:{NEW}"),
        (node_uri("c", "b"), ["a"], "", f"URI:{NEW}"),
        (OLD, ["127.0.0.1"], "accept_old_node_names = false", "accept_old_node_names = true"),
    ],
)
def test_a_certificate_that_peers_would_refuse_is_told_at_the_start(
    tmp_path: Path, uri: str, hosts: list[str], more: str, lacks: str
) -> None:
    """And not only in the logs of the other nodes."""
    tls = issue(make_authority("c"), tmp_path, "a", uri, hosts)

    with pytest.raises(ConfigError, match=r"certificate\.pem lacks") as told:
        shown_by(configured(tmp_path, tls, more))
    assert lacks in str(told.value)


@pytest.mark.parametrize(
    ("uri", "hosts", "more", "warned"),
    [
        (OLD, ["127.0.0.1"], "", f"only the name of Holdfast 0.1. .* URI:{NEW}"),
        (NEW, ["127.0.0.1"], "", "accept_old_node_names is true"),
        (NEW, [], "accept_old_node_names = false", ""),
    ],
)
def test_a_cluster_that_still_accepts_old_names_is_told_so(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    uri: str,
    hosts: list[str],
    more: str,
    warned: str,
) -> None:
    """It goes on as before, since its certificates cannot change by themselves."""
    tls = issue(make_authority("c"), tmp_path, "a", uri, hosts)
    with caplog.at_level(logging.WARNING):
        shown = shown_by(configured(tmp_path, tls, more))

    assert shown.accept_old_names == (not more)
    assert len(caplog.records) == bool(warned)
    assert re.search(warned, caplog.text)


def test_a_node_alone_needs_no_names(tmp_path: Path) -> None:
    tls = issue(make_authority("c"), tmp_path, "a", "spiffe://a", ["127.0.0.1"])

    assert shown_by(configured(tmp_path, tls, "accept_old_node_names = false", peers="")).key


def test_an_authority_for_peers_takes_the_place_of_the_common_one(tmp_path: Path) -> None:
    ours, clients = (tmp_path / "ours"), (tmp_path / "clients")
    tls = issue(make_authority("c"), ours, "a", NEW, [])
    others = issue(make_authority("clients"), clients, "x", "holdfast://client/x", [])
    config = configured(tmp_path, Tls(others.ca, tls.certificate, tls.key), f'peer_ca = "{tls.ca}"')

    shown = shown_by(config)

    assert shown.ca == tls.ca.read_bytes()
