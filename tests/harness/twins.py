"""The twin of a certificate: what a thief makes of it without the authority (docs/adr/0046)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.serialization import Encoding

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.server.config.node_config import Tls

P256: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve on which `holdfast certs` makes authorities."""
_SHORT: Final = 0x80


def twin_of(pem: bytes, order: int = P256) -> bytes:
    """The same certificate with the other form of its signature, in PEM."""
    certificate = x509.load_pem_x509_certificate(pem)
    der, signed = certificate.public_bytes(Encoding.DER), certificate.tbs_certificate_bytes
    r, s = decode_dss_signature(certificate.signature)
    kind = der[der.index(signed) + len(signed) :]
    kind = kind[: 2 + kind[1]]
    bits = b"\0" + encode_dss_signature(r, order - s)
    body = signed + kind + b"\x03" + _length(bits) + bits
    twin = x509.load_der_x509_certificate(b"\x30" + _length(body) + body)
    return twin.public_bytes(Encoding.PEM)


def twin_files(tls: Tls, directory: Path) -> Tls:
    """Write the twin of a party's certificate, which its key belongs to as well."""
    directory.mkdir()
    certificate = directory / "certificate.pem"
    certificate.write_bytes(twin_of(tls.certificate.read_bytes()))
    return replace(tls, certificate=certificate)


def _length(content: bytes) -> bytes:
    length = len(content)
    if length < _SHORT:
        return bytes([length])
    written = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([_SHORT | len(written)]) + written
