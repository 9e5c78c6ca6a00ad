"""TLS between nodes: a context for each direction, made of PEM bytes.

Both sides show a certificate and check the other's authority; whose certificate it is, `peer_names`
says. Knows credentials, and neither clusters nor connections.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from holdfast.raft.fingerprints import fingerprints_of

PEERS: Final = "holdfast-peer"
GRPC: Final = "h2"
"""What the two kinds of callers ask for in the handshake (ALPN). A client of gRPC, or a node of an
older version, gets its handshake, so that it can be told why nobody serves it here."""

ENDED: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
"""Errors of TLS that say no more than that the connection ended."""


@dataclass(frozen=True, slots=True)
class PeerTls:
    """Mutual TLS between nodes, as PEM bytes."""

    ca: bytes
    """The CA that signed every node's certificate."""
    certificate: bytes
    key: bytes
    accept_old_names: bool = False
    """Also accept nodes whose certificates have only the name of Holdfast 0.1, which names no
    cluster."""


class TlsUnusable(Exception):
    """The node's own credentials make no TLS context."""


class Contexts(NamedTuple):
    """One for the connections of each direction."""

    accepting: ssl.SSLContext
    dialling: ssl.SSLContext


def contexts(tls: PeerTls) -> Contexts:
    """Make both contexts. Raises TlsUnusable."""
    try:
        made = Contexts(
            _context(tls, ssl.PROTOCOL_TLS_SERVER), _context(tls, ssl.PROTOCOL_TLS_CLIENT)
        )
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise TlsUnusable(str(error)) from error
    # Nobody resumes a session, and a ticket would be the first thing on the acceptor's side.
    made.accepting.num_tickets = 0
    return made


def _blocks(bundle: bytes) -> str:
    """Return what stands between the comments of a bundle, which may be in any language."""
    found = re.findall(rb"-----BEGIN [^-]*-----.*?-----END [^-]*-----", bundle, re.DOTALL)
    return b"\n".join(found).decode("ascii", "replace")


def _context(tls: PeerTls, protocol: ssl._SSLMethod) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=_blocks(tls.ca))
    context.set_alpn_protocols([PEERS, GRPC])
    with _in_memory(tls.certificate + b"\n" + tls.key) as path:
        context.load_cert_chain(path, password=_refuse_encrypted)
    return context


@contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """Give the path of a file that is on no disk, since OpenSSL reads keys from files alone."""
    descriptor = os.memfd_create("holdfast-credentials", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _refuse_encrypted() -> NoReturn:
    """Refuse; OpenSSL would ask whoever sits at the terminal."""
    raise ValueError("the private key is encrypted, and nobody is asked for its password")


def certificate_of(connection: ssl.SSLSocket) -> bytes:
    """Return what the other side has shown, as PEM bytes."""
    shown = connection.getpeercert(binary_form=True)
    return ssl.DER_cert_to_PEM_cert(shown).encode() if shown else b""


def shown_fingerprints(connection: socket.socket) -> tuple[str, ...]:
    """Return the fingerprints of what the other side has shown; none if it has shown nothing."""
    shown = (
        connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    )
    return fingerprints_of(shown or b"")
