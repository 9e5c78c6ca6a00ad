"""A revoked certificate is known again by every form of its signature (ADR 46)."""

from __future__ import annotations

import datetime as dt
import hashlib
import ssl
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from harness.twins import twin_of
from holdfast.raft.fingerprints import ORDERS, fingerprints_in, fingerprints_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

CURVES: dict[str, ec.EllipticCurve] = {
    curve.name: curve
    for curve in (
        ec.SECP224R1(),
        ec.SECP256R1(),
        ec.SECP384R1(),
        ec.SECP521R1(),
        ec.SECP256K1(),
        ec.BrainpoolP256R1(),
        ec.BrainpoolP384R1(),
        ec.BrainpoolP512R1(),
    )
}


def signed_with(key: CertificateIssuerPrivateKeyTypes) -> x509.Certificate:
    """A certificate that its own key has signed."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "c")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
    )
    plain = isinstance(key, ed25519.Ed25519PrivateKey)
    return builder.sign(key, None if plain else hashes.SHA256())


def own(pem: bytes) -> str:
    """What openssl shows as the fingerprint."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest()


@pytest.mark.parametrize("curve", ORDERS)
def test_the_twin_of_a_certificate_holds_and_each_has_the_fingerprint_of_the_other(
    curve: str,
) -> None:
    certificate = signed_with(ec.generate_private_key(CURVES[curve]))
    pem = certificate.public_bytes(Encoding.PEM)
    twin = twin_of(pem, ORDERS[curve])
    read = x509.load_pem_x509_certificate(twin)
    read.verify_directly_issued_by(read)
    assert own(pem) != own(twin)

    assert fingerprints_in(pem)[0] == own(pem), "as people know it"
    assert fingerprints_in(twin)[0] == own(twin)
    assert own(pem) in fingerprints_in(twin)
    assert own(twin) in fingerprints_in(pem)


@pytest.mark.parametrize(
    "key", [ed25519.Ed25519PrivateKey.generate(), rsa.generate_private_key(65_537, 2_048)]
)
def test_signatures_of_one_form_have_one_fingerprint(
    key: CertificateIssuerPrivateKeyTypes,
) -> None:
    der = signed_with(key).public_bytes(Encoding.DER)
    assert fingerprints_of(der) == (hashlib.sha256(der).hexdigest(),)


def test_bytes_that_are_no_certificate_have_their_own_sum_alone() -> None:
    """TLS has read what is asked about; whatever it took, nothing may fail here."""
    whole = signed_with(ec.generate_private_key(ec.SECP256R1())).public_bytes(Encoding.DER)
    for length in range(1, len(whole), 7):
        assert len(fingerprints_of(whole[:length])) == 1
    for broken in (b"\x30", b"\x30\xff\x00", b"\x30\x84\xff\xff\xff\xff\x30\x03", b"no"):
        assert fingerprints_of(broken) == (hashlib.sha256(broken).hexdigest(),)
    assert fingerprints_of(b"") == ()
