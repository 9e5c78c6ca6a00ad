"""Mutual TLS from files: who may connect, and what a refusal looks like to the caller (S5)."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

import grpc
import grpc.aio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from holdfast.client import Admin, Tls, Unavailable
from holdfast.v1.admin_pb2_grpc import add_AdminServiceServicer_to_server
from unit.client.fake_cluster import FakeGroup, FakeNode

if TYPE_CHECKING:
    from pathlib import Path


class Issued(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def issue(name: str, issuer: Issued | None = None) -> Issued:
    """A certificate for 127.0.0.1; without an issuer, one that signs others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(alternative, critical=False)
    )
    return Issued(key, builder.sign(key if issuer is None else issuer.key, hashes.SHA256()))


def pem(issued: Issued) -> tuple[bytes, bytes]:
    key = issued.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key, issued.certificate.public_bytes(serialization.Encoding.PEM)


def files(folder: Path, ca: Issued, issued: Issued) -> Tls:
    folder.mkdir()
    key, certificate = pem(issued)
    (folder / "ca.pem").write_bytes(pem(ca)[1])
    (folder / "key.pem").write_bytes(key)
    (folder / "certificate.pem").write_bytes(certificate)
    return Tls(folder / "ca.pem", folder / "certificate.pem", folder / "key.pem")


async def topics(ca: Issued, credentials: Tls) -> dict[str, int]:
    """What a node that wants certificates of `ca` answers to these credentials."""
    group = FakeGroup()
    server = grpc.aio.server()
    node = FakeNode(group)  # type: ignore[abstract]  # serves only what the tests call
    add_AdminServiceServicer_to_server(node, server)
    wanted = grpc.ssl_server_credentials(
        [pem(issue("node", ca))], pem(ca)[1], require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", wanted)
    await server.start()
    try:
        async with Admin(f"127.0.0.1:{port}", credentials=credentials, timeout_ms=2_000) as admin:
            return await admin.list_topics()
    finally:
        await server.stop(0)


def test_files_of_the_cluster_s_ca_connect(tmp_path: Path) -> None:
    ca = issue("ca")
    credentials = files(tmp_path / "mine", ca, issue("me", ca))
    assert asyncio.run(topics(ca, credentials)) == {"t": 4}


def test_s5_a_node_of_another_ca_is_never_connected_so_nothing_happened(tmp_path: Path) -> None:
    ca, stranger = issue("ca"), issue("ca")
    credentials = files(tmp_path / "mine", stranger, issue("me", stranger))
    with pytest.raises(Unavailable, match="TLS"):
        asyncio.run(topics(ca, credentials))


def test_half_a_pair_and_missing_files_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both a certificate and its key"):
        Tls(tmp_path / "ca.pem", certificate=tmp_path / "c.pem").credentials()
    with pytest.raises(FileNotFoundError):
        Tls(tmp_path / "ca.pem").credentials()
