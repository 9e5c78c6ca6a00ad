"""What certificates say, for people: whom they name, who signed them, when they end.

Reads PEM; the parts of a file that are no certificate, as a key, are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Facts:
    """One certificate."""

    subject: str
    names: tuple[str, ...]
    """URIs, DNS names and addresses, in the order of the certificate."""
    issuer: str
    kind: str
    """`authority`, `node`, or `client`: by what it may be used for."""
    fingerprint: str
    """SHA-256 of the certificate, in hexadecimal."""
    begins: datetime
    ends: datetime


def certificates_in(pem: bytes) -> list[x509.Certificate]:
    """Return all certificates of a file. Raises ValueError if it has none, or a broken one."""
    if _BEGIN not in pem:
        raise ValueError("it has no certificate in PEM")
    return x509.load_pem_x509_certificates(pem)


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate in hexadecimal, as openssl shows it without colons."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def facts_of(certificate: x509.Certificate) -> Facts:
    """Read a certificate."""
    return Facts(
        subject=certificate.subject.rfc4514_string(),
        names=_names(certificate),
        issuer=certificate.issuer.rfc4514_string(),
        kind=_kind(certificate),
        fingerprint=fingerprint(certificate),
        begins=certificate.not_valid_before_utc,
        ends=certificate.not_valid_after_utc,
    )


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(told for told in map(_named, names) if told)


def _named(name: x509.GeneralName) -> str:
    """Write a name as openssl does; empty for a kind that nobody here looks at."""
    if isinstance(name, x509.UniformResourceIdentifier):
        return f"URI:{name.value}"
    if isinstance(name, x509.DNSName):
        return f"DNS:{name.value}"
    return f"IP:{name.value}" if isinstance(name, x509.IPAddress) else ""


def _kind(certificate: x509.Certificate) -> str:
    extensions = certificate.extensions
    try:
        if extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return "authority"
    except x509.ExtensionNotFound:
        pass
    try:
        usages = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return "node"
    return "node" if ExtendedKeyUsageOID.SERVER_AUTH in usages else "client"


def pair_problem(certificate_pem: bytes, key_pem: bytes) -> str:
    """Say why a certificate and a key cannot be used together; empty if they can."""
    try:
        certificate = certificates_in(certificate_pem)[0]
        key = load_pem_private_key(key_pem, None)
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        theirs = certificate.public_key().public_bytes(*form)
        ours = key.public_key().public_bytes(*form)
    except UnsupportedAlgorithm as error:
        return f"one of them is of a kind that cannot be used here: {error}"
    except (ValueError, TypeError) as error:
        return f"one of them is not valid PEM: {error}"
    return "" if theirs == ours else "the key does not belong to the certificate"


def signed_by(certificate: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    """Return whether one of these authorities has signed a certificate itself."""
    for each in authorities:
        try:
            certificate.verify_directly_issued_by(each)
        except Exception:  # noqa: BLE001, S112 - whatever is wrong, this one did not sign it
            continue
        return True
    return False


def written(moment: datetime) -> str:
    """Write a moment for people."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def left(ends: datetime, now: datetime | None = None) -> str:
    """Say how long it is until a certificate ends, or how long ago it ended."""
    rest = ends - (now or datetime.now(UTC))
    if rest < timedelta(0):
        return f"expired {_span(-rest)} ago"
    return f"{_span(rest)} left"


def _span(time: timedelta) -> str:
    if time >= timedelta(days=2):
        return f"{round(time / timedelta(days=1))} days"
    hours = time // timedelta(hours=1)
    return f"{hours} hour{'' if hours == 1 else 's'}"
