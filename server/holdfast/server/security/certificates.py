"""Make a certificate authority and certificates for a local cluster (`holdfast cluster start`).

For one machine and for trying out: the authority's key lies beside the nodes. A real cluster gets
its certificates from its owner's authority. Elliptic curves, since a handshake costs less.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.server.config.node_config import Tls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALID: Final = timedelta(days=3_650)
_EARLIER: Final = timedelta(hours=1)
"""Certificates begin this much earlier: clocks of two machines may differ a little."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A key and a certificate that sign others."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def make_authority(cluster_id: str) -> Authority:
    """Make a new authority for one cluster."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"holdfast authority {cluster_id}"[:64])]
    )
    builder = _builder(name, name, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return Authority(key, builder.sign(key, hashes.SHA256()))


def keep(authority: Authority, directory: Path) -> None:
    """Write the authority's certificate and key, so that its owner can issue more certificates.

    Only the owner can enter the directory and read the key, from the first byte on.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    pem = authority.certificate.public_bytes(serialization.Encoding.PEM)
    (directory / "ca.pem").write_bytes(pem)
    _write_key(directory / "key.pem", authority.key)


def issue(
    authority: Authority, directory: Path, common_name: str, uri: str, hosts: Sequence[str]
) -> Tls:
    """Write key, certificate and authority for one party into `directory`; returns their paths.

    `hosts`: names and addresses under which the party is reached; empty for a client, whose
    certificate is then valid for calling only.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    certificate = (
        _builder(subject, authority.certificate.subject, key)
        .add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri), *map(_name, hosts)]),
            critical=False,
        )
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    directory.mkdir(parents=True, exist_ok=True)
    tls = Tls(directory / "ca.pem", directory / "certificate.pem", directory / "key.pem")
    tls.ca.write_bytes(authority.certificate.public_bytes(serialization.Encoding.PEM))
    tls.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(tls.key, key)
    return tls


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write a key that only its owner can read, from the first byte on."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
