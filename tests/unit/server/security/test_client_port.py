"""Who a caller is by its certificate, and which files of a node are refused."""

from __future__ import annotations

import hashlib
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID, NameOID

from holdfast.server.config.node_config import ANONYMOUS, ConfigError, Tls
from holdfast.server.security.certificates import issue, make_authority
from holdfast.server.security.client_port import (
    Principals,
    principal_of,
)
from holdfast.server.security.credentials import read_credentials

if TYPE_CHECKING:
    from pathlib import Path


def certificate(
    common_name: str, *names: x509.GeneralName, extension: x509.ExtensionType | None = None
) -> bytes:
    """A certificate that signs itself, with these alternative names, or with an extension."""
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
    if extension:
        builder = builder.add_extension(extension, critical=False)
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
        ((x509.UniformResourceIdentifier(""), URI), "cn", "spiffe://org/worker"),
        ((x509.UniformResourceIdentifier(""), DNS), "cn", "worker.example"),
        ((x509.DNSName(""),), "cn", "cn"),
    ],
)
def test_the_principal_is_the_first_uri_then_dns_name_then_common_name(
    names: tuple[x509.GeneralName, ...], common_name: str, principal: str
) -> None:
    assert principal_of(certificate(common_name, *names)) == principal


def test_no_certificate_has_the_principal_of_a_token() -> None:
    """An authority that signs any common name must not make callers of the issuer's."""
    uri = x509.UniformResourceIdentifier("jwt:ops")
    for made in (certificate("jwt:ops"), certificate("cn", uri)):
        assert principal_of(made) == "certificate:jwt:ops"


def test_a_certificate_without_a_name_is_known_by_its_sha_256() -> None:
    made = certificate("")
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(made.decode())).hexdigest()
    assert principal_of(made) == f"certificate:{digest}"


def test_no_certificate_is_anonymous_or_another_certificate_without_a_name() -> None:
    """A cluster that began without TLS has `anonymous` for its administrator.

    Nor is one everybody (`*`), to whom a grant to this one would then be.
    """
    for name in (ANONYMOUS, "*", "certificate:ab"):
        assert principal_of(certificate(name)) == f"certificate:{name}"


def test_with_tls_nobody_is_anonymous() -> None:
    """Who has shown nothing has come past the door of a port: that is a defect, and no caller."""
    with pytest.raises(RuntimeError, match="neither"):
        Principals().of({"transport_security_type": [b"ssl"]})


def test_without_a_certificate_everybody_is_anonymous() -> None:
    assert Principals().of({}) == ANONYMOUS


def test_a_key_of_another_certificate_is_told(tmp_path: Path) -> None:
    authority = make_authority("c")
    one = issue(authority, tmp_path / "1", "one", "holdfast://node/one", [])
    two = issue(authority, tmp_path / "2", "two", "holdfast://node/two", [])

    with pytest.raises(ConfigError, match="does not belong"):
        read_credentials(Tls(one.ca, one.certificate, two.key))


def test_a_missing_file_is_told_with_its_path(tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"

    with pytest.raises(ConfigError, match=r"gone\.pem"):
        read_credentials(Tls(gone, gone, gone))


BROKEN = {
    "a URI that is no ASCII": b"\x86\x02\xff\xfe",
    "a kind that nobody reads": b"\xa3\x02\x30\x00" + b"\x86\x02a:",
}
"""Content of subject alternative names that OpenSSL lets pass, and that cannot be read."""


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_of_names_that_cannot_be_read_none_counts(content: bytes) -> None:
    """Else each call would fail inside, with a traceback in the node's log: a caller fills it."""
    names = b"\x30" + bytes([len(content)]) + content
    oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
    pem = certificate("cn", extension=x509.UnrecognizedExtension(oid, names))

    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()
    assert principal_of(pem) == f"certificate:{digest}"
