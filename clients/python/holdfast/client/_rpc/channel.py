"""Channels: the options that we set on purpose, TLS from files, and the services behind them.

Knows grpc, and of the protocol the names of its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import grpc.aio

from holdfast.v1.admin_pb2_grpc import AdminServiceStub
from holdfast.v1.backup_pb2_grpc import BackupServiceStub
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.log_pb2_grpc import LogServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from google.protobuf.message import Message

MESSAGE_BYTES_MAX = 65 << 20
"""The longest message that the settings allow (S7): `log.entry_bytes_max` may be 64 MiB, and a
message carries a little more around it. It is the same for every program, since a lower limit would
refuse a member its own assignment, and a higher one takes no memory until such a message comes. The
setting in force is the nodes' to enforce."""
OPTIONS: tuple[tuple[str, int], ...] = (
    # A frozen node must be found. The ping is timed by the HTTP/2 setting, whose default is a
    # minute, and not by the keepalive time-out alone: both are needed.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    # A parked join sends no data for minutes; by default pings would stop after two.
    ("grpc.http2.max_pings_without_data", 0),
    # Bandwidth probing answers each message on a quiet connection with a ping of its own.
    ("grpc.http2.bdp_probe", 0),
    # Retries are ours, with the same request id (S5, S14); hidden ones would blur send times (S11).
    ("grpc.enable_retries", 0),
    # A restarted node is looked for at once and often; gRPC's own pauses grow to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for TLS, in PEM; and how a node knows us: by `certificate` and `key`, or by `token`."""

    ca: str | PathLike[str]
    certificate: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None
    token: str | PathLike[str] | Callable[[], str] | None = None
    """A file that holds a bearer token, or a function that returns one and may block; for a node's
    `tokens.address`. The file is read every few seconds, and the function called before the token
    ends."""

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files. Raises OSError when one cannot be read, ValueError on half a pair.

        Also for a file that is empty, as one is that is just being replaced: gRPC would end the
        process for it.
        """
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key, or neither.")
        authority = Path(self.ca).read_bytes()
        key = None if self.key is None else Path(self.key).read_bytes()
        chain = None if self.certificate is None else Path(self.certificate).read_bytes()
        if b"" in (authority, key, chain):
            raise ValueError("a file for TLS is empty: it is being replaced, or was lost")
        return grpc.ssl_channel_credentials(authority, key, chain)


Credentials: TypeAlias = Tls | grpc.ChannelCredentials | None
"""How to prove who we are; None: no TLS at all, which a node accepts on loopback only."""


def check_kind(credentials: Credentials) -> None:
    """Raise TypeError for any other kind of credentials, before anything is connected."""
    if credentials is not None and not isinstance(credentials, Tls | grpc.ChannelCredentials):
        raise TypeError(
            "credentials is a Tls, a grpc.ChannelCredentials or None, not "
            f'{credentials!r}: write Tls("DIR/ca.pem", "DIR/certificate.pem", "DIR/key.pem").'
        )


def open_channel(address: str, credentials: Credentials) -> grpc.aio.Channel:
    """Open a channel to one node; it connects when it is first used."""
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=OPTIONS)
    if isinstance(credentials, Tls):
        credentials = credentials.credentials()
    return grpc.aio.secure_channel(address, credentials, options=OPTIONS)


_SUFFIX = "Request"
_STUBS = (GroupServiceStub, AdminServiceStub, OffsetServiceStub, LogServiceStub, BackupServiceStub)


class Stubs:
    """All services of one node."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._all = tuple(stub(channel) for stub in _STUBS)

    def method(self, request: Message) -> Any:  # noqa: ANN401 - of all services
        """Return what makes the call of this request. Raises TypeError if there is no such call."""
        name = type(request).__name__.removesuffix(_SUFFIX)
        for stub in self._all:
            method = getattr(stub, name, None)
            if method is not None:
                return method
        raise TypeError(f"No service has a method for {type(request).__name__}.")
