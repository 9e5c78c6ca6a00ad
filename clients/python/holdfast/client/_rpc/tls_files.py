"""Whether the files for TLS can be used at all: said when a member is made, not by a time-out.

gRPC takes any bytes and tells a handshake's failure in its own words, again and again. The standard
library reads the same files. Certificates that have expired are left to the handshake: they may be
renewed while the program runs. Opens no connection.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike

    from holdfast.client._rpc.channel import Tls


def check_files(tls: Tls) -> None:
    """Raises ValueError for a file that cannot be read or used, and for a key of another pair."""
    if (tls.certificate is None) != (tls.key is None):
        raise ValueError("TLS needs both a certificate and its key, or neither.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # whether a key is strong enough is gRPC's decision
    _check_authority(context, tls.ca)
    if tls.certificate is not None and tls.key is not None:
        _check_pair(context, tls.certificate, tls.key)


def _check_authority(context: ssl.SSLContext, ca: str | PathLike[str]) -> None:
    text = _read("ca", ca)
    try:
        context.load_verify_locations(cadata=text.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"credentials: ca {str(ca)!r} has no certificate in PEM.") from error


def _check_pair(
    context: ssl.SSLContext, certificate: str | PathLike[str], key: str | PathLike[str]
) -> None:
    if b"BEGIN CERTIFICATE" not in _read("certificate", certificate):
        raise ValueError(f"credentials: certificate {str(certificate)!r} has none in PEM.")
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
