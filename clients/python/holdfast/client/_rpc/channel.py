"""Channels: the options that we set on purpose, and TLS from files.

Knows grpc and nothing of the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import grpc
import grpc.aio

if TYPE_CHECKING:
    from os import PathLike

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
    """Files for mutual TLS, in PEM. `certificate` and `key` together, or neither."""

    ca: str | PathLike[str]
    certificate: str | PathLike[str] | None = None
    key: str | PathLike[str] | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Read the files. Raises OSError when one cannot be read, ValueError on half a pair."""
        if (self.certificate is None) != (self.key is None):
            raise ValueError("TLS needs both a certificate and its key, or neither.")
        return grpc.ssl_channel_credentials(
            root_certificates=Path(self.ca).read_bytes(),
            private_key=None if self.key is None else Path(self.key).read_bytes(),
            certificate_chain=None
            if self.certificate is None
            else Path(self.certificate).read_bytes(),
        )


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
