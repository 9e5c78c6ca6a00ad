"""Dialling: whatever answers, an attempt ends in time, and says what an operator can mend."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from holdfast.raft.transport import peer_options
from holdfast.raft.transport.dialling import Dialler, PeerRefused
from holdfast.raft.transport.identity import Identity
from holdfast.raft.transport.tls import PeerTls
from unit.raft.transport.peer_authority import Authority


@contextmanager
def answering(said: bytes, *, one_by_one: bool = False, ends: bool = False) -> Iterator[str]:
    """The address of somebody who says this to everybody, and then nothing, or ends."""
    over = threading.Event()

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=tell, args=(connection,), daemon=True).start()

    def tell(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            for piece in (bytes((byte,)) for byte in said) if one_by_one else (said,):
                connection.sendall(piece)
                if one_by_one:
                    over.wait(0.05)
            if not ends:
                over.wait()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        over.set()
        server.shutdown(socket.SHUT_RDWR)


def dialler(address: str, tls: PeerTls | None = None) -> Dialler:
    return Dialler(Identity("c", "a", {"b": address}, tls))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt ends soon."""
    monkeypatch.setattr(peer_options, "HANDSHAKE_SECONDS", 0.3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("secure", [True, False])
def test_who_says_nothing_is_not_waited_for(*, secure: bool) -> None:
    """A process that is stopped: its system takes the connection all the same."""
    tls = Authority().node("a") if secure else None
    with answering(b"") as address, pytest.raises(TimeoutError):
        dialler(address, tls).dial("b")


@pytest.mark.usefixtures("quick")
def test_a_byte_now_and_then_buys_no_time() -> None:
    """The time is that of the whole answer."""
    said = b"\0\0\x0f\xff" + bytes(4095)
    with answering(said, one_by_one=True) as address, pytest.raises(TimeoutError):
        dialler(address).dial("b")


def test_an_answer_that_claims_too_much_is_not_read() -> None:
    with (
        answering(b"\0\0\x10\x01") as address,
        pytest.raises(PeerRefused, match="greets wrongly: a frame claims 4097 bytes"),
    ):
        dialler(address).dial("b")


def test_who_closes_is_dialled_again_without_a_word_to_anybody() -> None:
    """It may be starting, or full of strangers: no operator has anything to mend."""
    with (
        answering(b"", ends=True) as address,
        pytest.raises(OSError, match=r"closed|reset") as told,
    ):
        dialler(address).dial("b")
    assert not isinstance(told.value, PeerRefused)


def test_a_program_that_speaks_no_tls_is_named() -> None:
    with (
        answering(b"220 mail.example ESMTP\r\n") as address,
        pytest.raises(PeerRefused, match=f"no TLS between this node and node 'b' at {address}"),
    ):
        dialler(address, Authority().node("a")).dial("b")


def test_a_certificate_of_another_authority_is_named() -> None:
    """The library's words say what is wrong with it."""
    accepting = Authority()
    context = Identity("c", "b", {}, accepting.node("b")).contexts
    assert context is not None
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with suppress(OSError):
                context.accepting.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PeerRefused, match="One of the two certificates is not of the auth"):
            dialler(address, Authority().node("a")).dial("b")
        thread.join()


def test_the_end_ends_every_wait() -> None:
    """Whoever closes a node must not wait for a peer that says nothing."""
    with answering(b"") as address:
        one, raised = dialler(address), list[Exception]()

        def dial() -> None:
            try:
                one.dial("b")
            except OSError as error:
                raised.append(error)

        thread = threading.Thread(target=dial)
        thread.start()
        while not one._sockets._open:
            assert thread.is_alive()
        one.close()
        thread.join(1.0)
        assert not thread.is_alive()
        assert len(raised) == 1
        with pytest.raises(OSError, match="is being closed"):
            one.dial("b")
