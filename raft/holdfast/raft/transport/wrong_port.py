"""What the peer port says to a client of gRPC that was given the wrong address. Pure.

Just enough HTTP/2 (RFC 9113) for a caller to read an answer: settings, pings, and for each call a
block of trailers. Header fields are written without compression (RFC 7541), and those of the caller
are not read: only that the path of a node's call stands among them, as gRPC writes it.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from holdfast.raft.api import BadMessage

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""With which a client of HTTP/2 begins; as the length of a frame between nodes it is too long."""
OLD_PEERS: Final = b"/holdfast.raft.Peer/"
"""The paths by which nodes called each other while they spoke gRPC."""
CALLS_MAX: Final = 1_000
"""How many calls of one connection are answered."""
BYTES_MAX: Final = 128 * 1024
"""How much of one connection is read: the 64 KiB of data that a client may send before it is
allowed more, and as much for all else."""

_HEADERS, _SETTINGS, _PING, _GOAWAY, _CONTINUATION = 1, 4, 6, 7, 9
_ACK = _END_STREAM = 1
_END_HEADERS = 4
_HEAD: Final = 9
_PAYLOAD_MAX: Final = 16_384
"""No frame is longer unless the receiver allowed it."""
_UNIMPLEMENTED, _FAILED_PRECONDITION = 12, 9
_STATUS_200: Final = b"\x88"
_SEVEN_BITS, _MORE = 0x7F, 0x80


class WrongPort:
    """One connection: takes what the client sends, gives what it is to be sent."""

    def __init__(self, node: str, clients_at: str, refuse_peer: str) -> None:
        """`clients_at`: where this node serves clients, host:port; empty if it is not known.

        `refuse_peer`: what a node of an older version is told.
        """
        where = clients_at or "its client_address"
        client = (
            f"this is the peer port of node {node!r}, where the nodes speak to each other; "
            f"clients connect to {where}"
        )
        self._for_clients = _trailers(_UNIMPLEMENTED, client)
        self._for_peers = _trailers(_FAILED_PRECONDITION, refuse_peer)
        self._held = b""
        self._size = 0
        """All bytes that came."""
        self._begun = False
        self._calls = 0
        self._last = 0
        self._is_peer = False
        self.met_peer = False
        """Whether a call was one that nodes of older versions make."""

    def feed(self, data: bytes) -> bytes:
        """Return the answer to what came next. Raises BadMessage for what is no HTTP/2."""
        self._held += data
        self._size += len(data)
        if self._size > BYTES_MAX:
            raise BadMessage(f"more than {BYTES_MAX} bytes on a connection that serves nobody")
        answer = b""
        if not self._begun:
            if not PREFACE.startswith(self._held[: len(PREFACE)]):
                raise BadMessage("neither a greeting nor the beginning of HTTP/2")
            if len(self._held) < len(PREFACE):
                return b""
            self._held, self._begun = self._held[len(PREFACE) :], True
            answer = _frame(_SETTINGS)
        return answer + b"".join(self._answers())

    def goodbye(self) -> bytes:
        """Return what ends the connection: calls that come later were not begun."""
        return _frame(_GOAWAY, body=self._last.to_bytes(4, "big") + bytes(4))

    def _answers(self) -> list[bytes]:
        """Take all whole frames, and return what answers them."""
        answers, held, at = list[bytes](), self._held, 0
        while len(held) >= (begin := at + _HEAD):
            size = int.from_bytes(held[at : at + 3], "big")
            if size > _PAYLOAD_MAX:
                raise BadMessage(f"a frame of HTTP/2 claims {size} bytes")
            if len(held) < begin + size:
                break
            stream = int.from_bytes(held[at + 5 : begin], "big")
            body = held[begin : begin + size]
            answers.append(self._answer(held[at + 3], held[at + 4], stream, body))
            at = begin + size
        self._held = held[at:]
        return answers

    def _answer(self, kind: int, flags: int, stream: int, body: bytes) -> bytes:
        if kind in {_SETTINGS, _PING} and not flags & _ACK:
            return _frame(kind, _ACK, body=body if kind == _PING else b"")
        if kind not in {_HEADERS, _CONTINUATION}:
            return b""
        self._is_peer = OLD_PEERS in body or (kind == _CONTINUATION and self._is_peer)
        self.met_peer = self.met_peer or self._is_peer
        if not flags & _END_HEADERS:
            return b""
        self._calls, self._last = self._calls + 1, stream
        if self._calls > CALLS_MAX:
            raise BadMessage(f"more than {CALLS_MAX} calls on a connection that serves none")
        told = self._for_peers if self._is_peer else self._for_clients
        return _frame(_HEADERS, _END_STREAM | _END_HEADERS, stream, told)


def _frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def _trailers(status: int, sentence: str) -> bytes:
    """Return the header fields of a whole answer.

    The outcome says that nothing was done (S5), and that a node answered, not gRPC.
    """
    fields = {
        "content-type": "application/grpc",
        "grpc-status": str(status),
        "grpc-message": quote(sentence, safe=" /:;,'()=?"),
        "holdfast-outcome": "not-applied",
    }
    return _STATUS_200 + b"".join(_field(k, v) for k, v in fields.items())


def _field(name: str, value: str) -> bytes:
    """Write a field without indexing and without Huffman's code."""
    return b"\0" + _text(name) + _text(value)


def _text(text: str) -> bytes:
    """Write a text behind its length, an integer with a prefix of seven bits."""
    data = text.encode()
    if len(data) < _SEVEN_BITS:
        return bytes((len(data),)) + data
    head, rest = bytearray((_SEVEN_BITS,)), len(data) - _SEVEN_BITS
    while rest > _SEVEN_BITS:
        head.append(rest & _SEVEN_BITS | _MORE)
        rest >>= 7
    return bytes((*head, rest)) + data
