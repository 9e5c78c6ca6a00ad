"""How messages are packed into what a peer stream carries: each frame behind its length.

Several frames share one packet, so that a burst of small messages pays for one send. Strict: a
packet is consumed to its last byte or refused. Knows neither gRPC nor what a frame means.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from holdfast.raft.api import BadMessage

PACKET_BYTES = 512 * 1024
"""A packet is closed when it has reached this size; one frame may be longer."""

FRAME_BYTES_MAX = 2 << 20
"""No frame is longer: entries and snapshots travel in chunks far below this (S7)."""

PACKET_BYTES_MAX = PACKET_BYTES + FRAME_BYTES_MAX + 8
"""The longest packet that a receiver must accept, in bytes."""

_LENGTH = struct.Struct(">I")


def pack(frames: Iterable[bytes]) -> bytes:
    """Pack frames into one packet."""
    pieces: list[bytes] = []
    for frame in frames:
        pieces += (_LENGTH.pack(len(frame)), frame)
    return b"".join(pieces)


def unpack(packet: bytes) -> Iterator[bytes]:
    """Yield the frames of a packet. Raises BadMessage if the lengths do not add up."""
    at = 0
    while at < len(packet):
        if at + _LENGTH.size > len(packet):
            raise BadMessage("a packet ends inside a frame's length")
        (length,) = _LENGTH.unpack_from(packet, at)
        at += _LENGTH.size
        if length > FRAME_BYTES_MAX or at + length > len(packet):
            raise BadMessage(f"a frame claims {length} bytes, more than there are or may be")
        yield packet[at : at + length]
        at += length
