"""Peer transport: Raft messages over gRPC streams with mutual TLS.

Each node dials each peer and sends on the stream it dialled; what it receives comes on streams
that peers dialled. Who a peer is, its certificate says (`peer_names`), in both directions, never
the peer itself; both sides compare greetings (`wire.greeting`) before the first frame is sent or
read. A newer stream from a peer ends the older one, so nothing of an older connection is delivered
after it (a fresh epoch each). Queues are bounded in bytes. Generic bytes handlers and the project's
own framing: nothing on this port unpickles, and nothing but the strict codec of `wire` reads what
arrives.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import grpc

from holdfast.raft.api import BadMessage, TransportHandler
from holdfast.raft.messages import Message
from holdfast.raft.transport import frames, peer_options
from holdfast.raft.transport.greetings import (
    acceptor_problem,
    answer_metadata,
    dialler_metadata,
    dialler_problem,
    greeting_in,
    shown,
)
from holdfast.raft.transport.peer_names import certificate_problem, node_dns_name
from holdfast.raft.transport.peer_trouble import Trouble
from holdfast.raft.transport.wrong_port import WrongPort
from holdfast.raft.wire.codec import decode, encode
from holdfast.raft.wire.greeting import Greeting, version_problem

logger = logging.getLogger(__name__)

SERVICE: Final = "/holdfast.raft.Peer"
METHOD: Final = f"{SERVICE}/Messages"

OUTGOING_BYTES_MAX: Final = 32 << 20
INCOMING_BYTES_MAX: Final = 64 << 20
REDIAL_SECONDS: Final = 0.05
REFUSED_SECONDS: Final = 0.5
"""Pause before a peer that refused, or was refused, is dialled again: no retry mends that."""
CALL_SECONDS_MAX: Final = 600.0
"""How long one answer beside the streams may take."""

_REFUSALS: Final = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.FAILED_PRECONDITION)
_WRONG_NAME: Final = "Hostname Verification Check failed"
"""gRPC's words when the certificate lacks the name that was asked for."""
_REASON_CHARACTERS: Final = 1_000

Answer = Callable[[bytes], Iterator[bytes]]
"""Turns a request into chunks. Raises BadMessage for no request, OSError if nothing is there."""


class TransportFailed(Exception):
    """The peer port cannot be served."""

    def __init__(self, address: str, reason: str) -> None:
        """`address` is the node's own peer address."""
        super().__init__(
            f"cannot listen for peers on {address}: {reason}; "
            "end the process that holds the port, or configure another peer_address"
        )
        self.address = address


class _Refused(OSError):
    """The peer is refused; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class PeerTls:
    """Mutual TLS between nodes, as PEM bytes."""

    ca: bytes
    """The CA that signed every node's certificate."""
    certificate: bytes
    key: bytes
    accept_old_names: bool = False
    """Also accept nodes whose certificates have only the names of Holdfast 0.1; then everybody whom
    the authority certified for a node's host can pass for that node."""


@dataclass(slots=True)
class _Link:
    """What this node sends to one peer."""

    peer: str
    address: str
    frames: deque[bytes] = field(default_factory=deque)
    """The queue, bounded in bytes."""
    size: int = 0
    """The bytes of `frames`."""
    up: bool = False
    """Whether the peer has accepted the stream."""
    changed: threading.Condition = field(default_factory=threading.Condition)


class GrpcTransport:
    """`api.Transport` between processes.

    `tls` None is for loopback only; the caller checks that.
    """

    def __init__(
        self,
        cluster_id: str,
        node_id: str,
        listen: str,
        peers: dict[str, str],
        tls: PeerTls | None,
        connections_max: int = peer_options.CONNECTIONS_MAX,
    ) -> None:
        """`peers`: the peer address of every other node by its id.

        `connections_max`: how many incoming connections there may be; the rest are closed.
        """
        self._cluster_id, self._node_id, self._listen, self._tls = cluster_id, node_id, listen, tls
        self._connections_max = connections_max
        self._trouble, self._strangers = Trouble(), Trouble()
        self._links = {peer: _Link(peer, address) for peer, address in peers.items()}
        self._epochs: dict[str, object] = {}
        self._inbox: deque[tuple[str, object | None, Message | bool, int]] = deque()
        self._inbox_bytes = 0
        self._inbox_room = threading.Condition()
        self._closed = threading.Event()
        self._handler: TransportHandler | None = None
        self._wake: Callable[[], None] = lambda: None
        self._server: grpc.Server | None = None
        self._offers: dict[str, Answer] = {}
        self._clients_at = ""
        self._answering: set[tuple[str, str]] = set()
        self._asked: set[grpc.Call] = set()

    def troubles(self) -> list[str]:
        """Say why peers are refused now, or refuse this node; for people. Any thread."""
        return self._trouble.lasting()

    def send_clients_to(self, address: str) -> None:
        """Set the address, host:port, that clients at the wrong port are told; before `start`."""
        self._clients_at = address

    # --- calls beside the streams ---

    def offer(self, method: str, answer: Answer) -> None:
        """Before `start`: have `answer` serve calls of `method`, one at a time for each peer."""
        self._offers[method] = answer

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """Return a peer's answer in chunks; blocks. Raises OSError if it breaks off or is refused.

        It has a connection of its own, so that its bytes never delay a heartbeat (S7, S18).
        """
        channel = self._channel(self._links[peer])
        metadata = dialler_metadata(self._greeting(peer))
        ask: grpc.UnaryStreamMultiCallable[bytes, bytes]
        ask = channel.unary_stream(f"{SERVICE}/{method}")
        answer = ask(request, metadata=metadata, timeout=CALL_SECONDS_MAX)
        self._asked.add(answer)
        try:
            if self._closed.is_set():
                raise OSError(f"{peer} is not asked for {method}: this node is being closed")
            for number, chunk in enumerate(answer):
                if not number:
                    self._check_acceptor(peer, answer)
                yield chunk
        except grpc.RpcError as error:
            raise OSError(f"{peer} does not answer {method}: {error}") from error
        finally:
            self._asked.discard(answer)
            channel.close()

    def _greeting(self, peer: str) -> Greeting:
        return Greeting(self._cluster_id, self._node_id, peer)

    def _answer(
        self, method: str, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Serve one call; check the caller before waiting for the request."""
        call = (self._check_peer(context), method)
        request = next(requests, b"")
        if call in self._answering:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{call[0]} is being answered")
        self._answering.add(call)
        try:
            for chunk in self._offers[method](request):
                if self._closed.is_set():
                    return
                yield chunk
        except BadMessage as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except OSError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        finally:
            self._answering.discard(call)

    # --- api.Transport ---

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        """Listen and dial. Raises TransportFailed if the port cannot be bound."""
        self._handler, self._wake = handler, wake
        self._serve()
        for link in self._links.values():
            threading.Thread(
                target=self._dial_for_ever, args=(link,), name=f"peer-{link.peer}", daemon=True
            ).start()

    def send(self, peer: str, message: Message) -> bool:
        """Queue a message; False if there is no stream or its queue is full."""
        link, frame = self._links[peer], encode(message)
        with link.changed:
            if not link.up or link.size + len(frame) > OUTGOING_BYTES_MAX:
                return False
            link.frames.append(frame)
            link.size += len(frame)
            link.changed.notify()
        return True

    def poll(self) -> None:
        """Call the handler for every message that has arrived."""
        handler = self._handler
        if handler is None:
            return
        for _ in range(len(self._inbox)):
            peer, epoch, what, size = self._inbox.popleft()
            with self._inbox_room:
                self._inbox_bytes -= size
                self._inbox_room.notify_all()
            if isinstance(what, bool):
                notify = handler.on_connected if what else handler.on_disconnected
                notify(peer)
            elif self._epochs.get(peer) is epoch:
                handler.on_message(peer, what)

    def close(self) -> None:
        """End all streams; queued messages are lost, as on any broken connection."""
        self._closed.set()
        for link in self._links.values():
            with link.changed:
                link.changed.notify_all()
        with self._inbox_room:
            self._inbox_room.notify_all()
        for answer in list(self._asked):
            answer.cancel()
        if self._server is not None:
            self._server.stop(0)

    # --- incoming ---

    def _serve(self) -> None:
        threads = (2 + len(self._offers)) * len(self._links) + 2
        pool = futures.ThreadPoolExecutor(threads, thread_name_prefix="peer-in")
        options = peer_options.acceptor(self._connections_max)
        self._server = grpc.server(pool, options=options)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            METHOD.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(self._receive)
        }
        for method in self._offers:
            answer = partial(self._answer, method)
            handlers[method] = grpc.stream_stream_rpc_method_handler(answer)
        for_peers = grpc.method_handlers_generic_handler(SERVICE[1:], handlers)
        for_others = WrongPort(self._node_id, self._clients_at)
        self._server.add_generic_rpc_handlers((for_peers, for_others))
        try:
            self._bind(self._server)
        except RuntimeError as error:
            raise TransportFailed(self._listen, str(error)) from error
        self._server.start()

    def _bind(self, server: grpc.Server) -> None:
        if self._tls is None:
            server.add_insecure_port(self._listen)
            return
        pair = [(self._tls.key, self._tls.certificate)]
        credentials = grpc.ssl_server_credentials(pair, self._tls.ca, require_client_auth=True)
        server.add_secure_port(self._listen, credentials)

    def _receive(self, packets: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """Serve one stream that a peer dialled, until it ends or a newer one takes its place."""
        peer = self._check_peer(context)
        epoch = self._epochs[peer] = object()
        yield b""  # accepted: the peer may send
        try:
            for packet in packets:
                if self._epochs.get(peer) is not epoch or self._closed.is_set():
                    return
                for frame in frames.unpack(packet):
                    self._deliver(peer, epoch, decode(frame), len(frame))
                self._wake()
        except BadMessage as error:
            logger.exception("%s sent what no node sends; its stream is ended", peer)
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _check_peer(self, context: grpc.ServicerContext) -> str:
        """Return the peer that dialled; send it the greeting before anything else.

        Aborts the call if it is no node of this cluster (FAULT-29), or of another version.
        """
        try:
            greeting = greeting_in(context.invocation_metadata())
            problem = self._peer_problem(greeting, context)
        except BadMessage as error:
            greeting, problem = Greeting("", "", ""), str(error)
        if problem:
            self._strangers.warn("", f"refused a stream on the peer port: {problem}")
            context.abort(grpc.StatusCode.PERMISSION_DENIED, problem)
        peer = greeting.sender
        if problem := version_problem(self._node_id, peer, greeting.versions):
            self._trouble.warn(f"from {peer}", problem)
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, problem)
        self._trouble.over(f"from {peer}")
        context.send_initial_metadata(answer_metadata(self._greeting(peer)))
        return peer

    def _peer_problem(self, told: Greeting, context: grpc.ServicerContext) -> str:
        if problem := dialler_problem(told, self._cluster_id, self._node_id):
            return problem
        peer = told.sender
        if peer not in self._links:
            return f"{shown(peer)} is no peer of {self._node_id!r}"
        if self._tls is None:
            return ""
        pem = next(iter(context.auth_context().get("x509_pem_cert", ())), b"")
        old = self._tls.accept_old_names
        return certificate_problem(bytes(pem), self._cluster_id, peer, accept_old=old)

    def _deliver(self, peer: str, epoch: object | None, what: Message | bool, size: int) -> None:  # noqa: FBT001 - up or down is what is delivered
        with self._inbox_room:
            while self._inbox_bytes > INCOMING_BYTES_MAX and not self._closed.is_set():
                self._inbox_room.wait(1.0)
            self._inbox_bytes += size
        self._inbox.append((peer, epoch, what, size))

    # --- outgoing ---

    def _dial_for_ever(self, link: _Link) -> None:
        while not self._closed.is_set():
            channel, pause = self._channel(link), REDIAL_SECONDS
            try:
                self._send_on(link, channel)
            except grpc.RpcError as error:
                logger.debug("stream to %s ended: %s", link.peer, error)
                pause = self._look_at(link, error) or pause
            except _Refused as error:
                self._trouble.warn(f"to {link.peer}", str(error))
                pause = REFUSED_SECONDS
            finally:
                self._down(link)
                channel.close()
            self._closed.wait(pause)

    def _look_at(self, link: _Link, error: grpc.RpcError) -> float:
        """Warn of an error that no redial mends.

        Return the pause in seconds, 0 if a redial may help.
        """
        code, details = error.code(), error.details() or ""
        if code in _REFUSALS:
            text = f"node {link.peer!r} refuses this node: {shown(details, _REASON_CHARACTERS)}"
        elif _WRONG_NAME in details:
            text = self._wrong_name(link)
        else:
            return 0.0
        self._trouble.warn(f"to {link.peer}", text)
        return REFUSED_SECONDS

    def _wrong_name(self, link: _Link) -> str:
        name = f"DNS:{node_dns_name(self._cluster_id, link.peer)}"
        lacks = "that host" if self._tls and self._tls.accept_old_names else name
        return (
            f"who answers at {link.address} is not node {link.peer!r}: its certificate lacks "
            f"{lacks}. Correct the peer address, or give that node a new certificate"
        )

    def _channel(self, link: _Link) -> grpc.Channel:
        """Open a channel to the peer; over TLS only to a server whose certificate has its name."""
        options = list[tuple[str, int | str]](peer_options.DIALLER)
        if self._tls is None:
            return grpc.insecure_channel(link.address, options)
        if not self._tls.accept_old_names:
            # gRPC compares it with DNS names alone, whatever host was dialled.
            name = node_dns_name(self._cluster_id, link.peer)
            options.append(("grpc.ssl_target_name_override", name))
        credentials = grpc.ssl_channel_credentials(
            self._tls.ca, self._tls.key, self._tls.certificate
        )
        return grpc.secure_channel(link.address, credentials, options)

    def _check_acceptor(self, peer: str, call: grpc.Call) -> None:
        """Check the acceptor's greeting, before a frame is sent to it or a chunk taken from it."""
        if problem := acceptor_problem(self._greeting(peer), call.initial_metadata()):
            raise _Refused(problem)

    def _send_on(self, link: _Link, channel: grpc.Channel) -> None:
        """Keep one stream to the peer open until it breaks."""
        ended = threading.Event()
        method: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        call = method(
            self._packets(link, ended),
            metadata=dialler_metadata(self._greeting(link.peer)),
        )
        try:
            next(call)  # the peer accepted this node
            self._check_acceptor(link.peer, call)
            self._trouble.over(f"to {link.peer}")
            with link.changed:
                link.up = True
            self._deliver(link.peer, None, what=True, size=0)
            self._wake()
            for _ in call:
                pass
        finally:
            ended.set()
            with link.changed:
                link.changed.notify_all()
            call.cancel()

    def _packets(self, link: _Link, ended: threading.Event) -> Iterator[bytes]:
        """Yield queued frames as they come, several in a packet."""
        while True:
            with link.changed:
                while not link.frames and not ended.is_set() and not self._closed.is_set():
                    link.changed.wait()
                if ended.is_set() or self._closed.is_set():
                    return
                taken, size = [], 0
                while link.frames and size < frames.PACKET_BYTES:
                    taken.append(link.frames.popleft())
                    size += len(taken[-1])
                link.size -= size
            yield frames.pack(taken)

    def _down(self, link: _Link) -> None:
        with link.changed:
            was_up, link.up = link.up, False
            link.frames.clear()
            link.size = 0
        if was_up:
            self._deliver(link.peer, None, what=False, size=0)
            self._wake()
