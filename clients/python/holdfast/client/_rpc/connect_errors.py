"""Explain why a connection failed, in words that say what to correct.

gRPC reports a channel's failure only to calls, so a harmless call asks for it: if it succeeds, it
changes nothing. Knows grpc and nothing of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import grpc
import grpc.aio

from holdfast.client._rpc.channel import Tls
from holdfast.client._rpc.tls_files import flaw_of

if TYPE_CHECKING:
    from holdfast.client._rpc.channel import Credentials

_HARMLESS: Final = "/grpc.health.v1.Health/Check"
_TIMEOUT_S: Final = 0.25
_UNVOUCHED: Final = ("CERTIFICATE_VERIFY_FAILED", "certificate signature failure")
"""gRPC's words for an untrusted certificate; the second comes from two authorities of one name."""
_UNRESOLVED: Final = ("errors resolving", "DNS resolution failed")
"""gRPC's words for a name that cannot be resolved; the words after it differ by resolver."""
_SILENT: Final = "it does not answer"
_BUSY: Final = (
    "; or it is being stopped, or at its bound of connections, or this is its peer port and not "
    "its client_address"
)
"""In these cases a node closes every connection, and gRPC's words are the same."""


class Wording(NamedTuple):
    """How users give credentials to the program that shows a cause, for its advice."""

    give: str
    leave_out: str
    files: str = ""
    """Where the right files are; it is appended to the others."""
    absent: str = ""
    """What to check if there is no node at the address."""


IN_CODE: Final = Wording("give credentials=Tls(ca, certificate, key)", "leave credentials out")


async def failure_text(channel: grpc.aio.Channel) -> str:
    """Return gRPC's words about a channel that failed; "" if it has connected meanwhile."""
    ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
    ask = channel.unary_unary(_HARMLESS, bytes, bytes)
    try:
        await ask(b"", timeout=_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        return error.details() or "" if error.code() is grpc.StatusCode.UNAVAILABLE else ""
    return ""


def explain(words: str, credentials: Credentials, wording: Wording = IN_CODE) -> str:
    """Translate gRPC's words into a cause that a person can mend, without a full stop."""
    if "Connection refused" in words:
        return f"nobody listens there{wording.absent}"
    if any(sign in words for sign in _UNRESOLVED):
        return (
            "its name cannot be resolved to an address; check its spelling, and that this "
            "machine's name service (DNS, /etc/hosts) knows it"
        )
    if any(sign in words for sign in _UNVOUCHED):
        ca = credentials.ca if isinstance(credentials, Tls) else "our ca"
        return (
            f"it shows a certificate that {ca} does not vouch for, or that has expired; take the "
            f"files of this cluster{wording.files}"
        )
    if credentials and ("ostname" in words or "Peer name" in words):
        return (
            "its certificate is made out for other names than this one; use a name or address "
            "that it has, or give the node one that has this"
        )
    if "WRONG_VERSION_NUMBER" in words:
        return f"it does not speak TLS; {wording.leave_out} if it runs without"
    if "Socket closed" in words or "Connection reset" in words:
        return _closed(credentials, wording)
    return f"{words.removesuffix('.') or _SILENT}{wording.absent}"


def _closed(credentials: Credentials, wording: Wording) -> str:
    if credentials is None:
        return (
            "it closed the connection, as a node with TLS does to whoever comes without; "
            f"{wording.give}{wording.files}{_BUSY}"
        )
    if isinstance(credentials, Tls) and (flaw := flaw_of(credentials)):
        return f"it closed the connection: {flaw}{wording.files}"
    if isinstance(credentials, Tls) and credentials.token is not None:
        return (
            "it closed the connection, as a port does that asks for certificates; a token is for "
            f"the port at the node's tokens.address{_BUSY}"
        )
    ours = credentials.certificate if isinstance(credentials, Tls) else None
    return (
        "it closed the connection, as a node does that refuses our certificate"
        f"{f' {ours}' if ours else ''}: one of another authority, an expired one, or none{_BUSY}"
    )
