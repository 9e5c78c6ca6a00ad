"""Peer transport: Raft messages over gRPC streams with mutual TLS.

Each node dials each peer and sends on the stream it dialled; what it receives comes on streams
that peers dialled. Who a peer is, its certificate says (URI `holdfast://node/<name>`), never the
peer itself; the cluster's id is compared before the first frame is read. A newer stream from a
peer ends the older one, so nothing of an older connection is delivered after it (a fresh epoch
each). Queues are bounded in bytes. Generic bytes handlers and the project's own framing: nothing
on this port unpickles, and nothing but the strict codec of `messages` reads what arrives.
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

from holdfast.raft import frames
from holdfast.raft.api import TransportHandler
from holdfast.raft.messages import BadMessage, Message, decode, encode

logger = logging.getLogger(__name__)

SERVICE: Final = "/holdfast.raft.Peer"
METHOD: Final = f"{SERVICE}/Messages"
NODE_URI: Final = "holdfast://node/"
CLUSTER_KEY: Final = "holdfast-cluster"
NODE_KEY: Final = "holdfast-node"
TO_KEY: Final = "holdfast-to"
"""Whom the dialler means: a wrong address must not bring one node what belongs to another."""

OUTGOING_BYTES_MAX: Final = 32 << 20
INCOMING_BYTES_MAX: Final = 64 << 20
REDIAL_SECONDS: Final = 0.05
CALL_SECONDS_MAX: Final = 600.0
"""How long one answer beside the streams may take."""

Answer = Callable[[bytes], Iterator[bytes]]
"""Request to chunks. Raises BadMessage for no request, OSError for what is not there."""

OPTIONS: Final = [
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
    # Who connects, says nothing and needs no certificate for it holds a file for two minutes by
    # default. No limit on connections here: strangers could lock peers out with it.
    ("grpc.server_handshake_timeout_ms", 10_000),
    # A second process on the port must fail to bind, not take half of the streams.
    ("grpc.so_reuseport", 0),
    # A peer that comes back must be found within an election, not after gRPC's seconds.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 250),
    ("grpc.use_local_subchannel_pool", 1),
]


class TransportFailed(Exception):
    """The peer port cannot be served."""

    def __init__(self, address: str, reason: str) -> None:
        """`address` is the node's own peer address."""
        super().__init__(
            f"cannot listen for peers on {address}: {reason}; "
            "end the process that holds the port, or configure another peer_address"
        )
        self.address = address


@dataclass(frozen=True, slots=True)
class PeerTls:
    """PEM bytes: the CA that signed every node's certificate, and this node's own pair."""

    ca: bytes
    certificate: bytes
    key: bytes


@dataclass(slots=True)
class _Link:
    """What this node sends to one peer. `frames` is bounded; `up` while the stream is accepted."""

    peer: str
    address: str
    frames: deque[bytes] = field(default_factory=deque)
    size: int = 0
    up: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)


class GrpcTransport:
    """`api.Transport` between processes. `tls` None is for loopback only; the caller sees to it."""

    def __init__(
        self,
        cluster_id: str,
        node_id: str,
        listen: str,
        peers: dict[str, str],
        tls: PeerTls | None,
    ) -> None:
        """`peers`: the peer address of every other node by its id."""
        self._cluster_id, self._node_id, self._listen, self._tls = cluster_id, node_id, listen, tls
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
        self._answering: set[tuple[str, str]] = set()
        self._asked: set[grpc.Call] = set()

    # --- calls beside the streams ---

    def offer(self, method: str, answer: Answer) -> None:
        """Before `start`: answer the peers' calls of `method`, one at a time for each peer."""
        self._offers[method] = answer

    def call(self, peer: str, method: str, request: bytes) -> Iterator[bytes]:
        """Return a peer's answer in chunks; blocks. Raises OSError if it breaks off or is refused.

        On a connection of its own: what it carries never stands before a heartbeat (S7, S18).
        """
        channel = self._channel(self._links[peer])
        metadata = self._introduction(peer)
        ask: grpc.UnaryStreamMultiCallable[bytes, bytes]
        ask = channel.unary_stream(f"{SERVICE}/{method}")
        answer = ask(request, metadata=metadata, timeout=CALL_SECONDS_MAX)
        self._asked.add(answer)
        try:
            if self._closed.is_set():
                raise OSError(f"{peer} is not asked for {method}: this node is being closed")
            yield from answer
        except grpc.RpcError as error:
            raise OSError(f"{peer} does not answer {method}: {error}") from error
        finally:
            self._asked.discard(answer)
            channel.close()

    def _introduction(self, peer: str) -> tuple[tuple[str, str], ...]:
        return ((CLUSTER_KEY, self._cluster_id), (NODE_KEY, self._node_id), (TO_KEY, peer))

    def _answer(
        self, method: str, request: bytes, context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        call = (self._check_peer(context), method)
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
        """Listen and dial. Raises TransportFailed if the port cannot be had."""
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
        """Hand everything that has arrived to the handler."""
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
        """End all streams; what is queued is lost, as on any broken connection."""
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
        self._server = grpc.server(pool, options=OPTIONS)
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            METHOD.rpartition("/")[2]: grpc.stream_stream_rpc_method_handler(self._receive)
        }
        for method in self._offers:
            answer = partial(self._answer, method)
            handlers[method] = grpc.unary_stream_rpc_method_handler(answer)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE[1:], handlers),)
        )
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
        """Who dialled. Aborts the call if it is nobody of this cluster (F29)."""
        metadata = {str(key): str(value) for key, value in context.invocation_metadata()}
        peer = metadata.get(NODE_KEY, "")
        problem = self._peer_problem(peer, metadata, context)
        if problem:
            logger.warning("refused a stream on the peer port: %s", problem)
            context.abort(grpc.StatusCode.PERMISSION_DENIED, problem)
        return peer

    def _peer_problem(
        self, peer: str, metadata: dict[str, str], context: grpc.ServicerContext
    ) -> str:
        cluster, meant = metadata.get(CLUSTER_KEY, ""), metadata.get(TO_KEY, "")
        if meant != self._node_id:
            return f"this is node {self._node_id!r}, not {meant!r}: a peer address is wrong"
        if cluster != self._cluster_id:
            return f"this node belongs to cluster {self._cluster_id!r}, not to {cluster!r}"
        if peer not in self._links:
            return f"{peer!r} is no peer of {self._node_id!r}"
        if self._tls is not None and f"{NODE_URI}{peer}" not in _certificate_names(context):
            return f"the certificate does not belong to node {peer!r}"
        return ""

    def _deliver(self, peer: str, epoch: object | None, what: Message | bool, size: int) -> None:  # noqa: FBT001 - up or down is what is delivered
        with self._inbox_room:
            while self._inbox_bytes > INCOMING_BYTES_MAX and not self._closed.is_set():
                self._inbox_room.wait(1.0)
            self._inbox_bytes += size
        self._inbox.append((peer, epoch, what, size))

    # --- outgoing ---

    def _dial_for_ever(self, link: _Link) -> None:
        while not self._closed.is_set():
            channel = self._channel(link)
            try:
                self._send_on(link, channel)
            except grpc.RpcError as error:
                logger.debug("stream to %s ended: %s", link.peer, error)
            finally:
                self._down(link)
                channel.close()
            self._closed.wait(REDIAL_SECONDS)

    def _channel(self, link: _Link) -> grpc.Channel:
        if self._tls is None:
            return grpc.insecure_channel(link.address, OPTIONS)
        credentials = grpc.ssl_channel_credentials(
            self._tls.ca, self._tls.key, self._tls.certificate
        )
        return grpc.secure_channel(link.address, credentials, OPTIONS)

    def _send_on(self, link: _Link, channel: grpc.Channel) -> None:
        """Hold one stream until it breaks."""
        ended = threading.Event()
        method: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        call = method(
            self._packets(link, ended),
            metadata=self._introduction(link.peer),
        )
        try:
            next(call)  # the peer accepted this node
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
        """What is queued, as it comes, several frames to a packet."""
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


def _certificate_names(context: grpc.ServicerContext) -> set[str]:
    """All names in the certificate that the TLS handshake verified."""
    values = context.auth_context().get("x509_subject_alternative_name", ())
    return {bytes(value).decode(errors="replace") for value in values}
