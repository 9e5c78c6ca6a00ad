"""The peer port: takes connections, shakes hands and greets, in one thread of its own.

Nothing here waits for one caller: a stranger who says one byte an hour costs a place for two
seconds and no thread. Who is accepted leaves this file with its connection; who is refused is told
why in a sentence, and a client of gRPC where to connect instead. Knows no message between nodes.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from holdfast.raft.api import BadMessage
from holdfast.raft.transport import peer_options
from holdfast.raft.transport.connections import ConnectionEnded
from holdfast.raft.transport.frames import FrameReader, pack
from holdfast.raft.transport.identity import Identity
from holdfast.raft.transport.listening import TransportFailed, listen
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.poller import READABLE, WRITABLE, Poller
from holdfast.raft.transport.tls import ENDED, GRPC, TlsUnusable
from holdfast.raft.transport.wrong_port import PREFACE, WrongPort
from holdfast.raft.wire.greeting import (
    BYTES_MAX,
    OVER_GRPC,
    Greeting,
    decode_greeting,
    encode_answer,
    encode_refusal,
)

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 64
"""How many connections are taken before those that are there are looked at."""
_PIECE: Final = 16 * 1024
_LOOK_SECONDS: Final = 0.1
"""How often those are turned out whose time is over."""
_OTHER_FILES: Final = "correct the files in the section tls of its configuration"
_IGNORED: Final = 16 * 1024


class Guest:
    """A connection before it is accepted, or while it is told why it is not.

    It does what can be done without waiting. The port's thread only.
    """

    __slots__ = ("connection", "events", "goodbye", "host", "next", "reader", "since", "until")

    def __init__(self, connection: socket.socket, step: Callable[[Guest], bool], host: str) -> None:
        """`step`: what is done first. `host`: the address that it came from, without the port."""
        self.host, self.connection, self.next = host, connection, step
        """What is done when there is something to read; True if more can be done at once."""
        self.events = 0
        """What the poller watches for; 0: not this connection."""
        self.since = time.monotonic()
        self.until = self.since + peer_options.HANDSHAKE_SECONDS
        self.goodbye: Callable[[], bytes] | None = None
        """What is said when the time is over, if anything."""
        self.reader = FrameReader(BYTES_MAX)

    def received(self, most: int) -> bytes:
        """Return what has arrived. Raises ConnectionEnded, and BlockingIOError for nothing."""
        piece = self.connection.recv(most)
        if not piece:
            raise ConnectionEnded("the other side closed it")
        return piece

    def say(self, data: bytes) -> bool:
        """Send a few bytes; False if there is no room for them, as for who reads nothing."""
        try:
            return self.connection.send(data) == len(data)
        except OSError:
            return False

    def leave(self) -> None:
        """Write no more, and wait for a moment until the other side has read and closes."""
        with suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_WR)
        self.until = time.monotonic() + peer_options.LEAVING_SECONDS
        self.goodbye, self.next = None, Guest._ignore

    def _ignore(self) -> bool:
        """Take what still comes from the system: left there, it would turn the end into a reset."""
        if not socket.socket.recv(self.connection, _IGNORED):
            raise ConnectionEnded("it has left")
        return False


class Rooms(NamedTuple):
    """Where those go who are accepted; called by the port's thread."""

    stream: Callable[[Greeting, socket.socket], None]
    """Takes a peer's connection for messages, with its greeting."""
    reserve: Callable[[str, str], str]
    """Keeps a place for a peer's call of a method, or lets it in for messages (no method);
    returns why not, or nothing."""
    call: Callable[[str, str, socket.socket], None]
    """Takes the connection of such a call."""


class Place(NamedTuple):
    """Where the port is, and what it is told to say and to bear."""

    listen: str
    """The node's own peer address, host:port."""
    most: int
    """How many may be here before they have greeted; the rest are turned away."""
    clients_at: str
    """Where this node serves clients, host:port; told to clients that come here. May be empty."""


class Port:
    """The thread and its guests. Another thread opens it, and calls `close`."""

    def __init__(self, identity: Identity, rooms: Rooms, trouble: Trouble, place: Place) -> None:
        """Listen. Raises TransportFailed if address or certificate of this node are of no use."""
        self._identity, self._rooms, self._place = identity, rooms, place
        self._trouble, self._strangers = trouble, Trouble()
        try:
            _ = identity.contexts  # made now, so that a start fails rather than each caller
        except TlsUnusable as error:
            raise TransportFailed(place.listen, str(error), _OTHER_FILES) from error
        self._guests: dict[int, Guest] = {}
        self._listeners = {each.fileno(): each for each in listen(place.listen)}
        self._poller = Poller()
        for descriptor in self._listeners:
            self._poller.watch(descriptor)
        self._look_at = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peer-port", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port and all its connections, and wait for that: a successor may listen."""
        self._closing.set()
        self._poller.ring()
        self._thread.join(peer_options.HANDSHAKE_SECONDS)

    # --- the thread ---

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                for descriptor, _ in self._poller.wait(_LOOK_SECONDS if self._guests else -1):
                    if listener := self._listeners.get(descriptor):
                        self._accept(listener)
                    elif guest := self._guests.get(descriptor):
                        self._serve(guest)
                self._turn_out()
        except Exception:
            logger.critical(
                "a defect has closed the peer port: no other node can connect to this one any "
                "more, and it will fall behind. Restart it, and report this with the node's log",
                exc_info=True,
            )
        finally:
            for each in (*self._listeners.values(), *(g.connection for g in self._guests.values())):
                each.close()
            self._poller.close()

    def _accept(self, listener: socket.socket) -> None:
        """Take connections; a new one is turned away, or an old one, when there are too many."""
        for _ in range(_AT_ONCE):
            try:
                connection, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no file is left: the oldest guest gives its own
                if not self._make_room(0.0):
                    self._closing.wait(_LOOK_SECONDS)
                return
            if len(self._guests) < self._place.most or self._make_room(peer_options.GRACE_SECONDS):
                self._let_in(connection, address[0])
            else:
                connection.close()

    def _make_room(self, seconds: float) -> bool:
        """Turn out the oldest guest, if it had so much time; return whether one was turned out."""
        oldest = next(iter(self._guests.values()), None)
        if oldest is None or time.monotonic() - oldest.since < seconds:
            return False
        self._discard(oldest)
        return True

    def _let_in(self, connection: socket.socket, host: str) -> None:
        step: Callable[[Guest], bool] = self._greet
        try:
            connection.settimeout(0)
            peer_options.set_options(connection)
            if contexts := self._identity.contexts:
                step = self._shake_hands
                connection = contexts.accepting.wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
            guest = Guest(connection, step, host)
            self._watch(guest, READABLE)
        except OSError as error:
            logger.debug("a connection on the peer port ended: %s", error)
            connection.close()
            return
        self._guests[connection.fileno()] = guest

    def _watch(self, guest: Guest, events: int) -> None:
        if guest.events:
            self._poller.change(guest.connection.fileno(), events)
        else:
            self._poller.watch(guest.connection.fileno(), events)
        guest.events = events

    def _serve(self, guest: Guest) -> None:
        """Do what can be done for a guest without waiting."""
        events = READABLE
        try:
            while guest.next(guest):
                pass
        except (ssl.SSLWantReadError, BlockingIOError):
            pass
        except ssl.SSLWantWriteError:
            events = WRITABLE
        except ENDED:
            self._discard(guest)
            return
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason or str(error)
            self._warn_of_stranger(guest, f"TLS: {why}")
            guest.leave()  # the library has sent an alert, which says why
        except (OSError, BadMessage) as error:
            logger.debug("a connection on the peer port ended: %s", error)
            self._discard(guest)
            return
        except Exception as error:  # noqa: BLE001 - no stranger may end the port for all others
            self._strangers.warn("", f"a defect: serving the peer port raised {error!r}")
            if guest.events:
                self._discard(guest)
            else:  # it was given away, and nobody has taken it
                guest.connection.close()
            return
        if guest.events not in {0, events}:
            self._watch(guest, events)

    def _discard(self, guest: Guest) -> None:
        self._release(guest)
        guest.connection.close()

    def _release(self, guest: Guest) -> None:
        """Let a connection go to somebody else; it is not closed."""
        self._poller.forget(guest.connection.fileno())
        del self._guests[guest.connection.fileno()]
        guest.events = 0

    def _turn_out(self) -> None:
        """End what is here for too long."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        for guest in [each for each in self._guests.values() if each.until <= now]:
            if guest.goodbye is not None and guest.say(guest.goodbye()):
                guest.leave()
            else:
                self._discard(guest)

    # --- the steps of a guest ---

    def _shake_hands(self, guest: Guest) -> bool:
        connection: ssl.SSLSocket = guest.connection  # type: ignore[assignment]  # as it was let in
        connection.do_handshake()
        if connection.selected_alpn_protocol() == GRPC:
            self._begin_to_tell(guest)
        else:
            guest.next = self._greet
        return True

    def _greet(self, guest: Guest) -> bool:
        """Read the greeting: not one byte more, since what follows belongs to somebody else."""
        reader = guest.reader
        reader.feed(guest.received(reader.wanted))
        try:
            frame = reader.take()
        except BadMessage as error:
            if not PREFACE.startswith(reader.unread):
                return self._refuse_stranger(guest, str(error))
            self._begin_to_tell(guest, reader.unread)
            return True
        return frame is None or self._judge(guest, frame)

    def _judge(self, guest: Guest, frame: bytes) -> bool:
        """Accept the dialler, or refuse it with a sentence (FAULT-29)."""
        try:
            told = decode_greeting(frame)
        except BadMessage as error:
            return self._refuse_stranger(guest, str(error))
        if problem := self._identity.dialler_problem(told, guest.connection):
            return self._refuse_stranger(guest, problem)
        peer, own = told.sender, self._identity.node
        problem = self._identity.version_problem(peer, told.versions)
        if problem := problem or self._identity.lineage.problem(own, peer, told):
            self._trouble.warn(f"from {peer}", problem)
            return self._refuse(guest, problem)
        self._trouble.over(f"from {peer}")
        if problem := self._rooms.reserve(peer, told.method):
            return self._refuse(guest, problem)
        return self._admit(guest, told)

    def _admit(self, guest: Guest, told: Greeting) -> bool:
        answer = encode_answer(self._identity.greeting(told.sender, told.method))
        is_told, connection = guest.say(pack(answer)), guest.connection
        self._release(guest)
        if told.method:  # its place is kept; on a broken connection the call ends at once
            self._rooms.call(told.sender, told.method, connection)
        elif is_told:
            self._rooms.stream(told, connection)
        else:
            connection.close()
        return False

    def _refuse_stranger(self, guest: Guest, why: str) -> bool:
        self._warn_of_stranger(guest, why)
        return self._refuse(guest, why)

    def _warn_of_stranger(self, guest: Guest, why: str) -> None:
        """Tell of a host once for each reason: its port is another one at each attempt."""
        self._strangers.warn("", f"refused a connection from {guest.host} on the peer port: {why}")

    def _refuse(self, guest: Guest, why: str) -> bool:
        if not guest.say(pack(encode_refusal(why))):
            raise ConnectionEnded("nobody reads why this node refuses")
        guest.leave()
        return True

    def _begin_to_tell(self, guest: Guest, data: bytes = b"") -> None:
        """Tell a caller that speaks gRPC, for a moment, why nobody serves it here.

        `data`: what it has said so far.
        """
        peer, node = self._identity.certified_peer(guest.connection), self._identity.node
        problem = self._identity.version_problem(peer or "(unnamed)", OVER_GRPC)
        trouble, about = (self._trouble, f"from {peer}") if peer else (self._strangers, "")
        caller = WrongPort(node, self._place.clients_at, problem)

        def tell(guest: Guest, data: bytes = b"") -> bool:
            answer = caller.feed(data or guest.received(_PIECE))
            if caller.met_peer:
                trouble.warn(about, problem)
            if answer and not guest.say(answer):
                raise ConnectionEnded("nobody reads the answers")
            return True

        guest.until = time.monotonic() + peer_options.LEAVING_SECONDS
        guest.next, guest.goodbye = tell, caller.goodbye
        tell(guest, data)
