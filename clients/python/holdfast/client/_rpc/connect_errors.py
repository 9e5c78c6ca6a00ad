"""Why no connection came about, in words that say what to mend.

gRPC tells a channel's failure only to calls, so a harmless one asks; it cannot change anything,
should it get through after all. Knows grpc and nothing of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio

if TYPE_CHECKING:
    from holdfast.client._rpc.channel import Credentials

_HARMLESS: Final = "/grpc.health.v1.Health/Check"
_TIMEOUT_S: Final = 0.25
_UNVOUCHED: Final = ("CERTIFICATE_VERIFY_FAILED", "certificate signature failure")
"""The second comes of two authorities with one name."""
_UNRESOLVED: Final = ("errors resolving", "DNS resolution failed")
"""What follows differs by resolver and version, and may speak of a hostname, as of certificates."""
_SILENT: Final = "it does not answer"
_BUSY: Final = (
    "; or it is being stopped, or at its bound of connections, or this is its peer port and not "
    "its client_address"
)
"""A node closes those of anybody then, and gRPC's words are the same."""


async def failure_text(channel: grpc.aio.Channel) -> str:
    """What gRPC says of a channel that failed; "" if it has connected meanwhile."""
    ask: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
    ask = channel.unary_unary(_HARMLESS, bytes, bytes)
    try:
        await ask(b"", timeout=_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        return error.details() or "" if error.code() is grpc.StatusCode.UNAVAILABLE else ""
    return ""


def explain(words: str, credentials: Credentials) -> str:
    """Translate gRPC's words into a cause that a person can mend, without a full stop."""
    if "Connection refused" in words:
        return "nobody listens there"
    if any(sign in words for sign in _UNRESOLVED):
        return "its name cannot be resolved to an address; check its spelling, and the name service"
    if any(sign in words for sign in _UNVOUCHED):
        return (
            "TLS was refused by us: the node's certificate is one that our ca does not vouch for, "
            "or it has expired"
        )
    if credentials and ("ostname" in words or "Peer name" in words):
        return "TLS was refused by us: the node's certificate is made out for other names"
    if "WRONG_VERSION_NUMBER" in words:
        return "it does not speak TLS; leave credentials out if it runs without"
    if "Socket closed" in words or "Connection reset" in words:
        return _closed(credentials)
    return words.removesuffix(".") or _SILENT


def _closed(credentials: Credentials) -> str:
    if credentials is None:
        return (
            "it closed the connection, as a node with TLS does to whoever comes without; give "
            "credentials=Tls(ca, certificate, key)" + _BUSY
        )
    return (
        "it closed the connection, as a node does that refuses our certificate: one of another "
        "authority, an expired one, or none" + _BUSY
    )
