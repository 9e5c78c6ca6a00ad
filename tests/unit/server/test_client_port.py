"""Certificates of a local cluster, and who a caller is by them."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.server.config.node_config import ConfigError, Tls
from holdfast.server.rpc.grpc_options import server_options
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.client_port import (
    ANONYMOUS,
    Principals,
    principal_of,
    server_credentials,
)

if TYPE_CHECKING:
    from pathlib import Path


def certificate(common_name: str, *names: x509.GeneralName) -> bytes:
    """A certificate that signs itself, with these alternative names."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)] if common_name else []
    name = x509.Name(attributes)
    moment = make_authority("x").certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(moment.not_valid_before_utc)
        .not_valid_after(moment.not_valid_after_utc)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM)


URI = x509.UniformResourceIdentifier("spiffe://org/worker")
DNS = x509.DNSName("worker.example")


@pytest.mark.parametrize(
    ("names", "common_name", "principal"),
    [
        ((DNS, URI), "cn", "spiffe://org/worker"),
        ((DNS,), "cn", "worker.example"),
        ((), "cn", "cn"),
        ((), "", ANONYMOUS),
    ],
)
def test_the_principal_is_the_first_uri_then_dns_name_then_common_name(
    names: tuple[x509.GeneralName, ...], common_name: str, principal: str
) -> None:
    assert principal_of(certificate(common_name, *names)) == principal


def test_without_a_certificate_everybody_is_anonymous() -> None:
    assert Principals().of({}) == ANONYMOUS


def test_a_node_is_named_by_its_uri_and_its_key_is_its_owners_alone(tmp_path: Path) -> None:
    authority = make_authority("c")
    tls = issue(authority, tmp_path, "node-1", "holdfast://node/node-1", ["127.0.0.1", "n"])

    assert principal_of(tls.certificate.read_bytes()) == "holdfast://node/node-1"
    assert stat.S_IMODE(tls.key.stat().st_mode) == 0o600
    assert isinstance(server_credentials(tls), grpc.ServerCredentials)


def test_a_key_of_another_certificate_is_told(tmp_path: Path) -> None:
    authority = make_authority("c")
    one = issue(authority, tmp_path / "1", "one", "holdfast://node/one", [])
    two = issue(authority, tmp_path / "2", "two", "holdfast://node/two", [])

    with pytest.raises(ConfigError, match="does not belong"):
        server_credentials(Tls(one.ca, one.certificate, two.key))


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"

    with pytest.raises(ConfigError, match=r"gone\.pem"):
        server_credentials(Tls(gone, gone, gone))


def test_a_burst_is_not_refused_by_the_library() -> None:
    """reference: both limits must be far above 10,000; the default of newer grpcio is 3,000."""
    options = dict(server_options(0))

    assert options["grpc.server.max_pending_requests"] > 10_000
    assert options["grpc.server.max_pending_requests_hard_limit"] > 10_000


def test_a_frozen_peer_is_found_in_seconds() -> None:
    """Keepalive alone does not find it: the ping's own timeout is 60 s by default."""
    options = dict(server_options(0))

    assert options["grpc.http2.ping_timeout_ms"] <= options["grpc.keepalive_time_ms"]


def test_a_message_may_be_as_large_as_an_entry() -> None:
    """S7: gRPC's message limits follow entry_bytes_max."""
    options = dict(server_options(8 << 20))

    assert options["grpc.max_receive_message_length"] > 8 << 20


def test_two_nodes_cannot_share_a_port() -> None:
    assert dict(server_options(0))["grpc.so_reuseport"] == 0
