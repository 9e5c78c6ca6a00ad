"""The fingerprints by which a certificate may be revoked: its own, and those of its twins.

Whoever may use an ECDSA signature (r, s) can write (r, n - s) in its place, n being the order of
the curve, and needs no key for that. It holds for the same certificate, of which all that is signed
is the same, and whose SHA-256 is another (docs/adr/0046). The other kinds of signatures have one
form. Knows DER, and no port.
"""

from __future__ import annotations

import functools
import hashlib
import ssl
from typing import Final

from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

ORDERS: Final = {
    "secp224r1": 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFF16A2E0B8F03E13DD29455C5C2A3D,
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": int(
        "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF"
        "581A0DB248B0A77AECEC196ACCC52973",
        16,
    ),
    "secp521r1": int(
        "01FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
        "FFFA51868783BF2F966B7FCC0148F709A5D03BB5C9B8899C47AEBB6FB71E9138"
        "6409",
        16,
    ),
    "secp256k1": 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141,
    "brainpoolP256r1": 0xA9FB57DBA1EEA9BC3E660A909D838D718C397AA3B561A6F7901E0E82974856A7,
    "brainpoolP384r1": int(
        "8CB91E82A3386D280F5D6F7E50E641DF152F7109ED5456B31F166E6CAC0425A7"
        "CF3AB6AF6B7FC3103B883202E9046565",
        16,
    ),
    "brainpoolP512r1": int(
        "AADD9DB8DBE9C48B3FD4E6AE33C9FC07CB308DB3B3C9D20ED6639CCA70330870"
        "553E5C414CA92619418661197FAC10471DB1D381085DDADDB58796829CA90069",
        16,
    ),
}
"""Of the curves on which an authority may sign. The client port takes the first four. Which curve
it was stands in the authority's certificate alone, so each that is large enough is tried."""

_SEQUENCE: Final = 0x30
_BIT_STRING: Final = 0x03
_LONG: Final = 0x80
"""A length from here on is written with the number of its bytes before it."""


@functools.lru_cache(maxsize=4_096)
def fingerprints_of(der: bytes) -> tuple[str, ...]:
    """Return the SHA-256 of a certificate in hexadecimal, first, and those of its twins.

    A certificate is revoked if one of them is. Empty bytes, no certificate, have none.
    """
    return tuple(hashlib.sha256(each).hexdigest() for each in (der, *_twins(der)) if each)


@functools.lru_cache(maxsize=4_096)
def fingerprints_in(pem: bytes) -> tuple[str, ...]:
    """Return those of a certificate in PEM form; each certificate is read once."""
    return fingerprints_of(ssl.PEM_cert_to_DER_cert(pem.decode()))


def _twins(der: bytes) -> list[bytes]:
    """Return what else the certificate may be written as; nothing if no ECDSA has signed it."""
    try:
        begin, end = _content(der, 0)
        signed_ends = _content(der, begin)[1]  # behind what is signed ...
        kind_ends = _content(der, signed_ends)[1]  # ... and behind the signature's kind
        signature_begins, _ = _content(der, kind_ends)
        r, s = decode_dss_signature(der[signature_begins + 1 : end])
    except (IndexError, ValueError):
        return []
    head = der[begin:kind_ends]
    flipped = (n - s for n in ORDERS.values() if r < n and 0 < s < n)
    return [_signed(head, encode_dss_signature(r, each)) for each in flipped]


def _signed(head: bytes, signature: bytes) -> bytes:
    """Return the certificate of a head with a signature."""
    return _wrapped(_SEQUENCE, head + _wrapped(_BIT_STRING, b"\0" + signature))


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Return where the content of the value at a place begins and ends. Raises IndexError."""
    length, begin = der[at + 1], at + 2
    if length >= _LONG:
        begin += length - _LONG
        length = int.from_bytes(der[at + 2 : begin])
    return begin, begin + length


def _wrapped(tag: int, content: bytes) -> bytes:
    """Return a value in DER."""
    length = len(content)
    if length < _LONG:
        return bytes((tag, length)) + content
    written = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes((tag, _LONG + len(written))) + written + content
