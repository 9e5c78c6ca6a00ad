"""gRPC's options of the clients' port, set in this one place; each with its reason.

The figures behind them were measured with the pinned grpcio and with newer ones: with the defaults
of 1.82 and later about half of a burst of 10,000 calls is cancelled by the library itself.
"""

from __future__ import annotations

from typing import Final

from holdfast.server.process.open_files import CONNECTIONS_MAX

Option = tuple[str, int]

PENDING_MAX: Final = 100_000
KEEPALIVE_TIME_MS: Final = 10_000
KEEPALIVE_TIMEOUT_MS: Final = 5_000
PING_INTERVAL_MIN_MS: Final = 5_000
HANDSHAKE_TIMEOUT_MS: Final = 20_000
"""A gRPC client gives a connection up after the same time, so a longer wait is useless."""
STREAMS_MAX: Final = 4096
"""Calls of one connection. If all begin at once, they delay all other calls by about half a second
and take about 100 MiB; without a limit, 50,000 took 7 s and 0.9 GiB."""
MESSAGE_FLOOR: Final = 4 << 20
"""Least limit on a message, in bytes: gRPC's own default."""
MESSAGE_MARGIN: Final = 1 << 20
"""Bytes for what a message holds beside member metadata and assignments."""


def message_bytes_max(entry_bytes_max: int) -> int:
    """Return the bytes of the longest message that a limit on entries allows (S7)."""
    return max(MESSAGE_FLOOR, entry_bytes_max + MESSAGE_MARGIN)


def age_options(age_ms: int) -> list[Option]:
    """Return the options that end each connection before it is as old as that.

    First the client is told to open another one for further calls (GOAWAY), at a moment that the
    library moves by up to a tenth, so that not all come at once. Calls and streams that are open go
    on, until the rest of the time is over.
    """
    return [
        ("grpc.max_connection_age_ms", age_ms * 75 // 100),
        ("grpc.max_connection_age_grace_ms", age_ms * 15 // 100),
    ]


def server_options(entry_bytes_max: int, connections: int = CONNECTIONS_MAX) -> list[Option]:
    """Return the options of the server for clients; the largest message follows S7.

    They cannot change while it serves. So a node passes the largest value allowed, and refuses
    messages above the setting in force itself (`request_guard`).
    """
    message = message_bytes_max(entry_bytes_max)
    return [
        # Calls received and not yet taken up by Python: gRPC refuses at random above the
        # first and always above the second (defaults 1,000 and 3,000), as CANCELLED.
        ("grpc.server.max_pending_requests", PENDING_MAX),
        ("grpc.server.max_pending_requests_hard_limit", PENDING_MAX),
        # Find a frozen or cut-off client. Without the third option, the ping times out only after
        # its own default of 60 s, whatever the keepalive timeout says.
        ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.http2.ping_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        # Members may ping as often as their own keepalive does; the default cuts them off.
        ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MIN_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        # A second node on the same port must fail to start, not take half of the calls.
        ("grpc.so_reuseport", 0),
        # The probe answers each message on a quiet stream with a ping: 10 % of a heartbeat's cost.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.max_receive_message_length", message),
        ("grpc.max_send_message_length", message),
        # By default a connection that sends nothing holds a file and memory for two minutes, and
        # needs no certificate for that.
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_TIMEOUT_MS),
        # Calls that are begun and never finished, or reset before Python has taken them up, cost
        # time and memory. A client that keeps to HTTP/2 lets calls above the limit wait. Without
        # the second option calls that have just ended count against the limit as well, until Python
        # has freed them, and valid calls are refused (grpcio 1.76 does not know the option: there,
        # some calls are refused if a client has more on one connection than the limit).
        ("grpc.max_concurrent_streams", STREAMS_MAX),
        ("grpc.http2.max_deallocating_streams", STREAMS_MAX),
        # A connection takes a file before it shows a certificate. Without files a node can neither
        # call its peers nor start a child process, so some are kept from clients.
        ("grpc.max_allowed_incoming_connections", connections),
        # Left alone on purpose: maximum_concurrent_rpcs (load is shed by the group actors).
    ]
