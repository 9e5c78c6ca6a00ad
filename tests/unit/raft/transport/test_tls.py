"""TLS between nodes: today's version alone, and no trace of the key."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from holdfast.raft.transport.tls import PeerTls, TlsUnusable, contexts
from unit.raft.transport.peer_authority import PEM, Authority


def handshake(accepting: ssl.SSLContext, dialling: ssl.SSLContext) -> str | None:
    """The version that two contexts agree on. Raises ssl.SSLError."""
    ours, theirs = socket.socketpair()

    def accept() -> None:
        with suppress(OSError), accepting.wrap_socket(theirs, server_side=True):
            pass

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        with dialling.wrap_socket(ours) as made:
            return made.version()
    finally:
        ours.close()
        thread.join()


def test_nodes_speak_tls_1_3_and_nothing_older() -> None:
    authority = Authority()
    a, b = contexts(authority.node("a")), contexts(authority.node("b"))
    assert handshake(a.accepting, b.dialling) == "TLSv1.3"

    for old, other in ((b.dialling, a.accepting), (b.accepting, a.dialling)):
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        pair = (other, old) if old is b.dialling else (old, other)
        with pytest.raises(ssl.SSLError):
            handshake(*pair)


def test_a_bundle_may_have_comments_in_any_language() -> None:
    """Bundles name who signs in front of each certificate; OpenSSL skips that, in files."""
    authority = Authority()
    other = authority.node("b")
    named = replace(other, ca="# Ämter für Prüfung\n".encode() + other.ca + b"\xff\n")
    assert handshake(contexts(authority.node("a")).accepting, contexts(named).dialling)


def test_the_key_is_on_no_disk_and_in_no_file_that_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenSSL reads it from a file; that is one in memory."""
    loaded, load = list[str](), ssl.SSLContext.load_cert_chain

    def note(self: ssl.SSLContext, path: str, **more: object) -> None:
        loaded.append(str(Path(path).readlink()))
        load(self, path, **more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", note)
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    contexts(Authority().node("a"))

    assert loaded
    assert all(path.startswith("/memfd:") for path in loaded)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before


def encrypted(tls: PeerTls) -> PeerTls:
    key = serialization.load_pem_private_key(tls.key, None)
    how = serialization.BestAvailableEncryption(b"secret")
    return replace(tls, key=key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, how))


def test_an_encrypted_key_is_refused_and_nobody_is_asked() -> None:
    """A node has no terminal, or should not wait at one."""
    with pytest.raises(TlsUnusable, match="the private key is encrypted"):
        contexts(encrypted(Authority().node("a")))


NOT_PEM = b"nonsense"


def test_what_is_no_pem_is_refused() -> None:
    tls = Authority().node("a")
    for broken in (
        replace(tls, ca=NOT_PEM),
        replace(tls, certificate=NOT_PEM),
        replace(tls, key=NOT_PEM),
    ):
        with pytest.raises(TlsUnusable):
            contexts(broken)
