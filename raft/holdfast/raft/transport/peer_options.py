"""The bounds of connections between nodes, each with its reason; numbers, and options of sockets.

Some bound strangers on the peer port: how many connections there may be before they have greeted,
and for how long. The port cannot know who connects before the handshake is over, so strangers who
dial without end can fill it (docs/adr/0018 says what follows from that).
"""

from __future__ import annotations

import socket
from typing import Final

CONNECTIONS_MAX: Final = 1_024
"""Incoming connections that have not greeted yet, or are being told why they are refused."""
CONNECT_SECONDS: Final = 1.0
"""How long one attempt to connect by TCP may take: longer than a link with a long round trip or a
busy machine takes; a packet that was lost is sent again after a second, by the system or by the
next attempt."""
HANDSHAKE_SECONDS: Final = 2.0
"""How long TLS and both greetings may take together, on either side."""
GRACE_SECONDS: Final = 0.5
"""When the port is full, a new connection takes the place of the oldest one, if that has had so
long to greet. A peer that got a place then has time enough, and places come free often."""
LEAVING_SECONDS: Final = 1.0
"""How long one who is refused may take to read why. A close at once could destroy the sentence."""

PING_SECONDS: Final = 1.0
"""A dialler asks after so long a silence whether the acceptor lives."""
PONG_SECONDS: Final = 2.0
"""How long the answer may take. A process that is stopped (SIGSTOP) keeps its connections open, and
its system takes bytes for it: only its own answer shows that it lives."""
SILENCE_SECONDS: Final = PING_SECONDS + PONG_SECONDS
"""An acceptor that hears neither message nor question for so long ends the connection."""

OUTSIDERS_MAX: Final = 32
"""Nodes of the cluster that have connected, and of which the log here does not tell (S25)."""

OUTGOING_BYTES_MAX: Final = 32 << 20
"""Bytes that wait to be sent to one peer; what does not fit is lost, and Raft sends it again."""
READ_BYTES_A_TURN: Final = 512 * 1024
READ_FRAMES_A_TURN: Final = 256
WRITE_BYTES_A_TURN: Final = 1 << 20
"""What one tick reads from one peer, and writes to it, at most: no peer starves another, or the
timers."""
WRITE_BYTES: Final = 64 * 1024
"""Frames that wait are joined up to about this size, so that many small ones pay for one send."""

RENEWED_AT: Final = (0.7, 0.85)
"""The part of its longest age at which a connection is replaced by its dialler: between these two,
so that not all are replaced at once, and there is time for more attempts."""
RENEW_AGAIN_PART: Final = 0.02
"""The part of the longest age after which such an attempt that has failed is repeated."""
REDIAL_SECONDS: Final = 0.05
REFUSED_SECONDS: Final = 0.5
"""Pause before a peer that refused, or was refused, is dialled again: no retry mends that."""
CALL_SECONDS_MAX: Final = 600.0
"""How long one answer beside the log may take."""
CALL_SILENCE_SECONDS: Final = 60.0
"""How long either side of such a call waits for the other's next step."""

_KEEPALIVE: Final = (
    (socket.TCP_KEEPIDLE, 1),
    (socket.TCP_KEEPINTVL, 1),
    (socket.TCP_KEEPCNT, 2),
    (socket.TCP_USER_TIMEOUT, round(SILENCE_SECONDS * 1000)),
)


def set_options(connection: socket.socket) -> None:
    """Send at once what is written, and find out about a machine that is gone within seconds."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_NODELAY, 1), *_KEEPALIVE):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
