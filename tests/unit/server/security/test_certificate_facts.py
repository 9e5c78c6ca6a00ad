"""What certificates and keys say of themselves, whatever their bytes are."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from holdfast.server.security.certificate_facts import pair_problem
from holdfast.server.security.certificates import certificate_pem, make_authority

ED25519, NOTHING = bytes.fromhex("06032b6570"), bytes.fromhex("06032b657f")
"""Object identifiers: of the kind of a key, and one that is no kind's."""


def key_of_an_unknown_kind() -> bytes:
    """A private key as OpenSSL may write one that is newer than this library."""
    der = Ed25519PrivateKey.generate().private_bytes(
        Encoding.DER, PrivateFormat.PKCS8, NoEncryption()
    )
    text = base64.encodebytes(der.replace(ED25519, NOTHING))
    return b"-----BEGIN PRIVATE KEY-----\n" + text + b"-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("key", "why"),
    [(key_of_an_unknown_kind(), "of a kind"), (b"", "not valid PEM"), (b"no key", "not valid PEM")],
    ids=["an unknown kind", "nothing", "no PEM"],
)
def test_a_key_that_cannot_be_used_is_told_with_why(key: bytes, why: str) -> None:
    """A node refuses to start with it, by a sentence; one that runs keeps what it has."""
    certificate = certificate_pem(make_authority("an authority").certificate)

    assert why in pair_problem(certificate, key)
