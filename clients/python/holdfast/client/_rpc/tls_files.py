"""Check the files for TLS when a member is made, before a call would time out.

gRPC takes any bytes and reports a failed handshake in its own words, again and again. The standard
library reads the same files. Certificates out of date are left to the handshake, since they may be
renewed while the program runs; `flaw_of` finds the cause afterwards.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.client._rpc.token_source import TokenUnusable, read

if TYPE_CHECKING:
    from os import PathLike

    from holdfast.client._rpc.channel import Tls

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME, _LENGTH_OF_LENGTH = 0xA0, 0x17, 0x80
"""Tags and the mark of a long length, in DER."""
_UTC_TIME_TURNS: Final = 50
"""Years of two digits below this are in this century (RFC 5280)."""
_NOT_ISSUED: Final = frozenset({2, 7, 18, 19, 20, 21})
"""OpenSSL's codes for a chain of another authority, or with a wrong signature."""
_FLIGHTS_MAX: Final = 4
"""Rounds of a handshake: more than it ever takes."""


def check_files(tls: Tls) -> None:
    """Raise ValueError for a file that cannot be read or used, and for a key of another pair."""
    if (tls.certificate is None) != (tls.key is None):
        raise ValueError("TLS needs both a certificate and its key, or neither.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # whether a key is strong enough is gRPC's decision
    _check_authority(context, tls.ca)
    if tls.token is not None:
        _check_token(tls)
    if tls.certificate is not None and tls.key is not None:
        _check_pair(context, tls.certificate, tls.key)


def _check_token(tls: Tls) -> None:
    """Raise ValueError for a file that holds no token; a function is called when it is needed."""
    if tls.certificate is not None:
        raise ValueError(
            "credentials: give a certificate and its key, for a node's client_address, or a token, "
            "for its tokens.address; not both."
        )
    if tls.token is not None and not callable(tls.token):
        try:
            read(tls.token)
        except TokenUnusable as error:
            raise ValueError(f"credentials: {error}.") from error


def _check_authority(context: ssl.SSLContext, ca: str | PathLike[str]) -> None:
    text = _read("ca", ca)
    try:
        context.load_verify_locations(cadata=text.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"credentials: ca {str(ca)!r} has no certificate in PEM.") from error


def _check_pair(
    context: ssl.SSLContext, certificate: str | PathLike[str], key: str | PathLike[str]
) -> None:
    text = _read("certificate", certificate)
    if b"BEGIN CERTIFICATE" not in text:
        instead = ", but a private key: swap the two." if b"PRIVATE KEY" in text else "."
        raise ValueError(f"credentials: certificate {str(certificate)!r} has none in PEM{instead}")
    text = _read("key", key)
    if b"PRIVATE KEY" not in text:
        raise ValueError(f"credentials: key {str(key)!r} has no private key in PEM.")
    if b"ENCRYPTED" in text:
        raise ValueError(f"credentials: key {str(key)!r} is encrypted; gRPC needs it in the clear.")
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH" or "mismatch" in str(error).lower():
            why = "does not belong to"
        else:
            why = f"cannot be used ({error.reason}) with"
        raise ValueError(
            f"credentials: key {str(key)!r} {why} certificate {str(certificate)!r}."
        ) from error


def _read(what: str, path: str | PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ValueError(f"credentials: {what} {str(path)!r} cannot be read: {reason}.") from error


def flaw_of(tls: Tls) -> str:
    """Describe what is wrong with our own certificate, as far as its files show; empty: nothing."""
    try:
        return date_flaw(tls) or _foreign(tls)
    except (OSError, ValueError):  # they may be in the middle of being replaced
        return ""


def date_flaw(tls: Tls) -> str:
    """Describe which certificate is not valid now, and since or until when; empty: all are.

    Raises OSError and ValueError for a file that cannot be read.
    """
    for path in (tls.ca, *([] if tls.certificate is None else [tls.certificate])):
        begins, ends = _validity(Path(path).read_text("ascii", "replace"))
        now = datetime.now(UTC)
        if now > ends:
            return f"the certificate {path} expired at {_written(ends)}; replace it by a new one"
        if now < begins:
            return (
                f"the certificate {path} is not valid before {_written(begins)}; check this "
                "machine's clock, or replace it"
            )
    return ""


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _foreign(tls: Tls) -> str:
    """Describe whether our authority refuses our certificate, by a handshake as with a node."""
    if tls.certificate is None or tls.key is None:
        return ""
    node, us = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    us.check_hostname, us.verify_mode, node.verify_mode = False, ssl.CERT_NONE, ssl.CERT_REQUIRED
    for side in (node, us):
        side.set_ciphers("DEFAULT@SECLEVEL=0")
        side.load_cert_chain(tls.certificate, tls.key)
    node.load_verify_locations(tls.ca)
    try:
        _shake_hands(node, us)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code not in _NOT_ISSUED:
            return (
                f"nodes that trust {tls.ca} refuse {tls.certificate} ({error.verify_message}); "
                "take a certificate of that authority for clients (extendedKeyUsage clientAuth)"
            )
        return (
            f"the authority in {tls.ca} did not issue {tls.certificate}; take a certificate of "
            "this cluster's authority"
        )
    return ""


def _shake_hands(node: ssl.SSLContext, us: ssl.SSLContext) -> None:
    """Do a handshake within this process. Raises SSLError if the node's side refuses."""
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = us.wrap_bio(here, there), node.wrap_bio(there, here, server_side=True)
    for _ in range(_FLIGHTS_MAX):
        for side in sides:
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()


def valid_until(path: str | PathLike[str]) -> str:
    """Write when the first certificate of a file ends. Raises OSError and ValueError."""
    return _written(_validity(Path(path).read_text("ascii", "replace"))[1])


def leaf_of(pem: str) -> str:
    """Return the first certificate of a file's text. Raises ValueError."""
    begin, end = pem.find(_BEGIN), pem.find(_END)
    if begin < 0 or end < begin:
        raise ValueError("no certificate in PEM")
    return pem[begin : end + len(_END)]


def _validity(pem: str) -> tuple[datetime, datetime]:
    """Read from when to when the first certificate of a file is valid. Raises ValueError."""
    der = ssl.PEM_cert_to_DER_cert(leaf_of(pem))
    fields = _parts(_parts(_parts(der)[0][1])[0][1])
    # version (may be absent), serial number, signature, issuer, validity
    place = 4 if fields[0][0] == _VERSION else 3
    begins, ends = _parts(fields[place][1])[:2]
    return _moment(*begins), _moment(*ends)


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """Read tag and content of each element of a DER sequence. Raises ValueError."""
    parts, at = [], 0
    while at + 1 < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length >= _LENGTH_OF_LENGTH:
            size = length - _LENGTH_OF_LENGTH
            length, at = int.from_bytes(der[at : at + size]), at + size
        parts.append((tag, der[at : at + length]))
        at += length
    if not parts:
        raise ValueError("no certificate")
    return parts


def _moment(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = f"{20 if int(text[:2]) < _UTC_TIME_TURNS else 19}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
