"""gRPC's options on the connections between nodes, each with its reason; numbers only.

They bound strangers on the peer port: how many connections there may be, and how long one that is
no peer's may last. The port cannot know who connects before the handshake is over, so strangers who
dial without end can fill it. A place is free again within `HANDSHAKE_MS` or `IDLE_MS`, and a peer
asks for one many times a second (docs/adr/0011 says what follows from that).
"""

from __future__ import annotations

from typing import Final

from holdfast.raft.transport import frames

Option = tuple[str, int]

CONNECTIONS_MAX: Final = 1_024
"""Incoming connections. A peer has one for its stream, and one for a call beside it."""
HANDSHAKE_MS: Final = 2_000
IDLE_MS: Final = 1_000
"""How long a connection without a call lasts. A peer's call is ready before its connection and
arrives one round trip after the handshake, so a round trip must be shorter than this."""
STREAMS_MAX: Final = 16
"""Calls of one connection; a peer makes one."""
CONNECT_MS: Final = 1_000
"""How long one attempt of a dialler lasts. Each is a new channel (`transport`), so gRPC never
pauses between attempts: a peer that comes back is found after `REDIAL_SECONDS`."""

COMMON: Final[tuple[Option, ...]] = (
    ("grpc.max_receive_message_length", frames.PACKET_BYTES_MAX),
    ("grpc.max_send_message_length", frames.PACKET_BYTES_MAX),
    # A frozen peer is found by pings, and `ping_timeout_ms` is what really times them.
    ("grpc.keepalive_time_ms", 1000),
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.http2.ping_timeout_ms", 2000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.bdp_probe", 0),
)
DIALLER: Final[tuple[Option, ...]] = (
    *COMMON,
    # How long one attempt to connect may take, whatever its name says: TCP, TLS and HTTP/2. Longer
    # than a link with a long round trip or a busy machine takes; a packet that was lost is sent
    # again after a second, by the system or by the next attempt.
    ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
    ("grpc.use_local_subchannel_pool", 1),
)


def acceptor(connections: int) -> list[Option]:
    """Return the options of the server that peers dial; `connections`: how many it takes."""
    return [
        *COMMON,
        # A second process on the port must fail to bind, not take half of the streams.
        ("grpc.so_reuseport", 0),
        # Each connection holds a file, and a node that has none left serves nobody.
        ("grpc.max_allowed_incoming_connections", connections),
        # Who connects, says nothing and needs no certificate for it would stay for two minutes.
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
        # Who has some certificate of the authority, and no call that is accepted, would stay.
        ("grpc.max_connection_idle_ms", IDLE_MS),
        # As on the clients' port: calls that are begun and reset cost time and memory.
        ("grpc.max_concurrent_streams", STREAMS_MAX),
        ("grpc.http2.max_deallocating_streams", STREAMS_MAX),
    ]
