"""What a command shows to a node, looked at before it is used, and why a node was not reached.

gRPC names no file and says "Socket closed" to whoever is refused, so the causes are told here.
Knows files and gRPC's words; asks nobody.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import grpc
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from holdfast.server.config.node_config import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import Tls

_FOLDER: Final = "a local cluster's is the folder client in its directory"
_NAME: Final = (
    "--tls names a directory of ca.pem, certificate.pem and key.pem (" + _FOLDER + "), "
    "and cluster.json such files"
)
_BUSY: Final = (
    "Or this is its peer port: give its client_address. Or it is being stopped, or at its bound of "
    "connections: then try again"
)
"""A node closes those of anybody then, and gRPC's words are the same."""
_UNVOUCHED: Final = ("CERTIFICATE_VERIFY_FAILED", "certificate signature failure")
"""The second comes of two authorities with one name."""
UNRESOLVED: Final = ("errors resolving", "DNS resolution failed")
"""What follows differs by resolver and version, and may speak of a hostname, as of certificates."""


def credentials(tls: Tls) -> grpc.ChannelCredentials:
    """What to open a channel with. Raises ConfigError, with the file that cannot be used."""
    authorities, chain = _certificates(tls.ca), _certificates(tls.certificate)
    key = _read(tls.key)
    _refuse_foreign_key(tls, chain[0], key)
    for path, certificate in ((tls.ca, authorities[0]), (tls.certificate, chain[0])):
        _refuse_out_of_date(path, certificate)
    return grpc.ssl_channel_credentials(_read(tls.ca), key, _read(tls.certificate))


def unreached(address: str, words: str, tls: Tls | None) -> str:
    """Why no connection came about, by gRPC's words, and what to do."""
    if any(sign in words for sign in UNRESOLVED):
        return (
            f"{address} cannot be resolved to an address. Check the name's spelling, and that "
            "this machine's name service (DNS, /etc/hosts) knows it"
        )
    if tls and any(sign in words for sign in _UNVOUCHED):
        return (
            f"{address} shows a certificate that {tls.ca} does not vouch for, or that has expired."
            f" Take the files of this cluster; {_FOLDER}"
        )
    if tls and ("ostname" in words or "Peer name" in words):
        return (
            f"the certificate of {address} is made out for other names than this one. Use a name "
            "or address that it has, or give the node one that has this"
        )
    if "WRONG_VERSION_NUMBER" in words:
        return f"{address} does not speak TLS. Leave --tls out if this node runs without"
    if "Socket closed" in words or "Connection reset" in words:
        return _closed(address, tls)
    return f"{address}: {words}. Is the cluster running, and are these its addresses?"


def _closed(address: str, tls: Tls | None) -> str:
    if tls is None:
        return (
            f"{address} closed the connection, as a node with TLS does to whoever comes without. "
            "Give --tls DIR, a directory of ca.pem, certificate.pem and key.pem; "
            f"{_FOLDER}. {_BUSY}"
        )
    if not _vouched_for(tls):
        return (
            f"{address} closed the connection: the authority in {tls.ca} did not issue "
            f"{tls.certificate}. Take a certificate of this cluster's authority; {_FOLDER}"
        )
    return (
        f"{address} closed the connection. Is it a node of this cluster, and did the cluster's "
        f"authority issue {tls.certificate}? {_BUSY}"
    )


def _vouched_for(tls: Tls) -> bool:
    """Whether the chain that we show ends at one of our own authorities."""
    last = _certificates(tls.certificate)[-1]
    for authority in _certificates(tls.ca):
        try:
            last.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}. {_NAME}") from error


def _certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(_read(path))
    except ValueError:
        raise ConfigError(f"{path} holds no certificate in PEM. {_NAME}") from None


def _refuse_foreign_key(tls: Tls, certificate: x509.Certificate, pem: bytes) -> None:
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError):  # TypeError: it wants a password
        raise ConfigError(
            f"{tls.key} holds no private key in PEM that is readable without a password. {_NAME}"
        ) from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if certificate.public_key().public_bytes(*form) != key.public_key().public_bytes(*form):
        raise ConfigError(
            f"the key {tls.key} does not belong to the certificate {tls.certificate}. "
            "Put the two that were made together in their place"
        )


def _refuse_out_of_date(path: Path, certificate: x509.Certificate) -> None:
    now = datetime.now(UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > ends:
        raise ConfigError(
            f"the certificate {path} expired at {ends:%Y-%m-%dT%H:%M:%SZ}. Replace it by a new one"
        )
    if now < begins:
        raise ConfigError(
            f"the certificate {path} is not valid before {begins:%Y-%m-%dT%H:%M:%SZ}. Check this "
            "machine's clock, or replace it"
        )
