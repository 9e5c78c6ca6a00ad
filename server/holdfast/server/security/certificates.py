"""Make certificate authorities and sign certificates, for nodes and for clients.

Elliptic curves, since a handshake costs less. `authority_folder` keeps an authority on disk and
renews; here are the values, and what `holdfast cluster start` lays out for one machine.
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
from holdfast.server.security.pem_files import write_pem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

AUTHORITY_DAYS: Final = 3_650
CERTIFICATE_DAYS: Final = 365
_EARLIER: Final = timedelta(hours=1)
"""Certificates begin this much earlier: clocks of two machines may differ a little."""
_COMMON_NAME_MAX: Final = 64
_SIGNS: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A key and a certificate that sign others."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


@dataclass(frozen=True, slots=True)
class Party:
    """Whom a certificate names."""

    common_name: str
    uri: str
    hosts: tuple[str, ...] = ()
    """Names and addresses at which it is reached; empty for a client, whose certificate is then
    valid for calling only."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(name: str, days: int = AUTHORITY_DAYS, suffix: str = "") -> Authority:
    """Make a new authority; `name` is the cluster's, or what its owner calls it.

    `suffix`: ends the name, also where that is cut to the length that certificates allow.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    common_name = f"holdfast authority {name}"[: _COMMON_NAME_MAX - len(suffix)] + suffix
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    builder = (
        _builder(subject, subject, key.public_key())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(key, builder.sign(key, hashes.SHA256()))


def sign(authority: Authority, party: Party, days: int = CERTIFICATE_DAYS) -> Pair:
    """Make a key and a certificate for a party."""
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, party.common_name[:_COMMON_NAME_MAX])]
    )
    names = [x509.UniformResourceIdentifier(party.uri), *map(_name, party.hosts)]
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if party.hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    extensions = (x509.SubjectAlternativeName(names), x509.ExtendedKeyUsage(usages))
    return _sign(authority, subject, extensions, days)


def sign_again(authority: Authority, old: x509.Certificate, days: int = CERTIFICATE_DAYS) -> Pair:
    """Make a new key and certificate that name whom the old one names, for the same uses."""
    kinds = (x509.SubjectAlternativeName, x509.ExtendedKeyUsage)
    kept = [each.value for each in old.extensions if isinstance(each.value, kinds)]
    return _sign(authority, old.subject, kept, days)


def _sign(
    authority: Authority, subject: x509.Name, extensions: Sequence[x509.ExtensionType], days: int
) -> Pair:
    """Sign; no certificate is valid for longer than its authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    ends = min(now + timedelta(days=days), authority.certificate.not_valid_after_utc)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = _builder(subject, authority.certificate.subject, key.public_key())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(ends)
    for each in (*extensions, signer):
        builder = builder.add_extension(each, critical=False)
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def keep(authority: Authority, directory: Path) -> None:
    """Write the authority's certificate and key, so that its owner can issue more certificates.

    Only the owner can enter the directory and read the key, from the first byte on.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    write_pem(directory / "key.pem", key_pem(authority.key), secret=True)
    write_pem(directory / "ca.pem", certificate_pem(authority.certificate))


def issue(
    authority: Authority,
    directory: Path,
    common_name: str,
    uri: str,
    hosts: Sequence[str],
    days: int = AUTHORITY_DAYS,
) -> Tls:
    """Write key, certificate and authority for one party into `directory`; returns their paths.

    `hosts`: as in `Party`.
    """
    pair = sign(authority, Party(common_name, uri, tuple(hosts)), days)
    return write_pair(directory, pair, certificate_pem(authority.certificate))


def write_pair(directory: Path, pair: Pair, ca: bytes) -> Tls:
    """Write a pair, and the authorities to trust, over what is there; return their paths.

    Each file is replaced whole. Between the first and the second the two do not belong together: a
    node that runs keeps what it has until they do.
    """
    directory.mkdir(parents=True, exist_ok=True)
    tls = Tls(directory / "ca.pem", directory / "certificate.pem", directory / "key.pem")
    write_pem(tls.ca, ca)
    write_pem(tls.key, key_pem(pair.key), secret=True)
    write_pem(tls.certificate, certificate_pem(pair.certificate))
    return tls


def certificate_pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate in PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, in the clear."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: PublicKeyTypes) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)  # type: ignore[arg-type]  # ours are elliptic curves, which may certify
        .serial_number(x509.random_serial_number())
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
