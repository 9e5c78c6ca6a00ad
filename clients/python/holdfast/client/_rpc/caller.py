"""Calls over grpc.aio: one attempt at the present node, or attempts until a deadline.

`attempt` is for the session, which decides itself what a failure means; `call` is for commits and
administration. Both follow the leader and never hide an unknown outcome (S5). Does not know what a
call is for.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio

from holdfast.client._rpc import connect_errors
from holdfast.client._rpc.channel import Stubs, Tls, check_kind, open_channel
from holdfast.client._rpc.clock import boot_ms, left_ms
from holdfast.client._rpc.connect_errors import IN_CODE
from holdfast.client._rpc.connection_age import FileWatch, OldChannels, watch_connection
from holdfast.client._rpc.connectivity_log import ConnectivityLog
from holdfast.client._rpc.discovery import Discovery
from holdfast.client._rpc.endpoints import Endpoints, parse
from holdfast.client._rpc.fork_guard import (
    check_process,
    is_forked_child,
    is_this_process,
    this_process,
)
from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._rpc.retries import Retries, request_id_of
from holdfast.client._rpc.session_stream import NotServed, SessionStreams
from holdfast.client._rpc.status import CLIENT_ID_KEY, LEADER_KEY, classify, texts_in
from holdfast.client._rpc.tls_files import check_files
from holdfast.client._rpc.token_source import Shown, TokenUnusable
from holdfast.client._session.session_io import Failure, FailureKind
from holdfast.client._text import readable
from holdfast.client._tracing import placed, traced
from holdfast.client._translate.acknowledged import acknowledged
from holdfast.client.errors import HoldfastError, OutcomeUnknown, Unavailable
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode
from holdfast.v1.group_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.protobuf.message import Message

    from holdfast.client._rpc.channel import Credentials
    from holdfast.client._rpc.connect_errors import Wording
    from holdfast.client._translate.acknowledged import OnAcknowledged

_LOGGER = logging.getLogger("holdfast.client")
CALL_TIMEOUT_MS = 30_000
END_GRACE_MS = 500
_CONNECT_TIMEOUT_MS = 5_000
_WORDS_HOLD_MS = 5_000
"""So long a cause is told to attempts too short to find it: one that lasts is met again within."""
_READY = grpc.ChannelConnectivity.READY
_INDEX_BITS = 48
"""Bits of a fencing token below the cluster's recovery number (S13)."""
_EARLIER = (
    "it gives tokens from before the cluster was restored, so it is a node of the past: stop it, "
    "and start it with --rebuild on an empty directory."
)

_ELSEWHERE = frozenset(
    {ErrorCode.ERROR_CODE_NOT_COORDINATOR, ErrorCode.ERROR_CODE_COORDINATOR_NOT_AVAILABLE}
)
_AGAIN_HERE = frozenset(
    {
        ErrorCode.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.ERROR_CODE_REQUEST_TIMED_OUT,
    }
)

AnswerT = TypeVar("AnswerT", bound="Message")


class Caller:
    """Channels to the nodes of one cluster, and the request ids that its log time gives."""

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        credentials: Credentials = None,
        client_id: str | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        connect_timeout_ms: int | None = None,
        answered_max: int | None = None,
        wording: Wording = IN_CODE,
        on_streams: bool = False,
    ) -> None:
        """`connect_timeout_ms`, `answered_max`: when a call ends sooner, see `Retries`.

        `wording`: how users give credentials to the program that shows the errors. `on_streams`:
        members' calls share a Session stream to each node, if it has that.
        """
        self.endpoints = Endpoints(parse(endpoints))
        check_kind(credentials)
        if isinstance(credentials, Tls):
            check_files(credentials)
        self.ids = RequestIds()
        token = credentials.token if isinstance(credentials, Tls) else None
        self.shown = Shown(() if client_id is None else ((CLIENT_ID_KEY, client_id),), token)
        self._connect_timeout_ms = connect_timeout_ms
        self._answered_max = answered_max
        self._credentials, self._wording = credentials, wording
        self._process = this_process()
        self._on_acknowledged = on_acknowledged
        self.connectivity = ConnectivityLog()
        self._discovery = Discovery(self.endpoints, self.channel, self.shown)
        self.sessions = SessionStreams(self._open_session) if on_streams else None
        self._closed = False
        self.on_connection_ages: Callable[[str], None] = lambda _: None
        """Hears the address of a node whose connection takes no new calls."""
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._older = OldChannels()
        self._files = FileWatch(credentials) if isinstance(credentials, Tls) else None
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._words: dict[str, tuple[str, int]] = {}
        self._recovery_number = 0
        self._unconnected: set[str] = set()
        """Where the last attempt to connect has failed."""
        self._refused: set[str] = set()
        """Where a call was refused that another node may answer, since the last answer."""
        self._stubs: dict[str, Stubs] = {}
        self.failures: dict[str, str] = {}
        """Why each node served no call, in short, since one was served."""

    async def close(self, *, grace_ms: int = 0) -> None:
        """Close all channels; calls in flight are cancelled, and further ones are refused.

        `grace_ms`: how long a question of the caller's own may go on, END_GRACE_MS for programs
        that ask once and end: a call that is cancelled stays open in gRPC until the loop takes its
        end, and a process that ends with an open call does so two seconds later.

        Not in the child of a fork: they are its parent's, and gRPC ends a process that tries.
        """
        if not is_this_process(self._process):
            return
        self._closed = True
        await self._discovery.close(grace_ms)
        if self.sessions is not None:
            await self.sessions.close()
        for watch in self._watches.values():
            watch.cancel()
        if self._files is not None:
            self._files.stop()
        self.shown.stop()
        channels, self._channels = list(self._channels.values()), {}
        self._stubs.clear()
        for channel in channels:
            await channel.close()
        await self._older.close()

    @property
    def nobody_connects(self) -> bool:
        """Whether every node has failed to connect when it was last tried."""
        return self._unconnected.issuperset(self.endpoints.addresses)

    def channel(self, address: str) -> grpc.aio.Channel:
        """Return the one channel to this node."""
        if address not in self._channels:
            channel = self._channels[address] = open_channel(address, self._credentials)
            watch = watch_connection(channel, lambda: self._connection_ages(address))
            self._watches[address] = asyncio.create_task(watch)
            if self._files is not None:
                self._files.start(self._renew_channels)
            self.shown.start(self._leave_streams)
            self._stubs[address] = Stubs(channel)
        return self._channels[address]

    def _leave_streams(self) -> None:
        """Have further calls go on new streams, which show the new token."""
        for address in self._channels:
            self._connection_ages(address)

    def _connection_ages(self, address: str) -> None:
        if self.sessions is not None:
            self.sessions.connection_ages(address)
        self.on_connection_ages(address)

    def _renew_channels(self) -> None:
        """Have all further calls go on new channels; those under way end on the old ones."""
        channels, self._channels = self._channels, {}
        self._stubs.clear()
        for address, channel in channels.items():
            self._watches.pop(address).cancel()
            self._connection_ages(address)
            self._older.keep(channel)

    async def connect(self, address: str, timeout_ms: int = _CONNECT_TIMEOUT_MS) -> bool:
        """Wait for a connection; return whether there is one, so that "never connected" is certain.

        Raises Unavailable after `close`: nobody would close what a later call opened.
        """
        check_process(self._process, "Connection or Admin")
        if self._closed:
            raise Unavailable("The connection was closed; end its members and calls before it.")
        try:
            await self.shown.ready()
            channel = self.channel(address)
        except (OSError, ValueError, TokenUnusable) as error:  # files that are being replaced
            self._words[address] = f"the credentials cannot be used: {error}", boot_ms()
            return False
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while (state := channel.get_state(try_to_connect=True)) is not _READY:
                    self._discovery.reconnecting(address)
                    if self.sessions is not None:
                        self.sessions.reconnecting(address)
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        if words := await connect_errors.failure_text(channel):
                            self._words[address] = words, boot_ms()
                        return channel.get_state() is _READY
                    await channel.wait_for_state_change(state)
        except TimeoutError:
            return False
        self._unconnected.discard(address)
        return True

    async def new_request_id(self, timeout_ms: int = CALL_TIMEOUT_MS) -> str:
        """Make a request id for one change; asks for the log time if none was seen yet (S15).

        The leader is asked: a follower of an idle cluster can only guess, and an id on a guess
        may be too old for the leader. Raises as `call`.
        """
        deadline = boot_ms() + timeout_ms
        if not self.ids.ready:
            hint = await self._find_leader(deadline)
            if hint and hint != self.endpoints.current:
                self.endpoints.redirected(self.endpoints.current, hint)
                await self._find_leader(deadline)
        return self.ids.make(boot_ms())

    async def _find_leader(self, deadline: int) -> str:
        """Ask the present node for the leader's address; learns the log time."""
        asked = group_pb2.FindCoordinatorRequest()
        found = await self.call(
            asked, group_pb2.FindCoordinatorResponse, timeout_ms=left_ms(deadline)
        )
        return found.holdfast.leader_hint

    @traced
    async def call(
        self, request: Message, answer: type[AnswerT], *, timeout_ms: int = CALL_TIMEOUT_MS
    ) -> AnswerT:
        """Call until there is an answer of the protocol or the time is over.

        Repeats as `Retries` says; raises its errors, or what the service's refusal means.
        """
        retries = self.retries(request, timeout_ms)
        while True:
            result = await self.attempt(request, retries.left_ms)
            if not isinstance(result, Failure):
                if not isinstance(result, answer):
                    raise TypeError(f"{type(request).__name__} is not answered by {answer}.")
                return result
            await asyncio.sleep(retries.pause_ms(result, nobody=self.nobody_connects) / 1000)

    def retries(self, request: Message, timeout_ms: int) -> Retries:
        """Make the attempts of a call with this time."""
        return Retries(request, timeout_ms, self._connect_timeout_ms, self._answered_max)

    async def ask_each(
        self, request: Message, answer: type[AnswerT], *, timeout_ms: int
    ) -> dict[str, AnswerT | HoldfastError]:
        """Ask each given node once, all at the same time; return the answer or error of each."""
        asked = [
            self.ask_one(each, request, timeout_ms=timeout_ms) for each in self.endpoints.given
        ]
        found = await asyncio.gather(*asked)
        for each in found:
            if not isinstance(each, answer | HoldfastError):
                raise TypeError(f"{type(request).__name__} is not answered by {answer}.")
        return dict(zip(self.endpoints.given, found, strict=True))

    async def ask_one(self, address: str, request: Message, *, timeout_ms: int) -> Any:  # noqa: ANN401 - the answer, or an error
        """Ask a node, given or not, for its own answer, once; return that or its error."""
        started = boot_ms()
        if not await self.connect(address, timeout_ms):
            return self.not_connected(address).error
        timeout_s = left_ms(started + timeout_ms) / 1000
        try:
            return await self._method(address, request)(
                request, timeout=timeout_s, metadata=self.shown.metadata
            )
        except grpc.aio.AioRpcError as error:
            return self.call_failed(address, error, request).error

    async def attempt(
        self,
        request: Message,
        timeout_ms: int,
        *,
        elsewhere: bool = False,
        on_sent: Callable[[], None] | None = None,
    ) -> Message | Failure:
        """Make one attempt at the present node (`elsewhere`: at the next one).

        `on_sent` is called when a node is connected, and the request on its way.
        """
        if elsewhere:
            self.endpoints.skip()
        address, started = self.endpoints.current, boot_ms()
        if not await self.connect(address, min(timeout_ms, _CONNECT_TIMEOUT_MS)):
            return self.not_connected(address)
        timeout_s = left_ms(started + timeout_ms) / 1000
        try:
            response, trailing = await self._send(address, request, timeout_s, on_sent)
        except grpc.aio.AioRpcError as error:
            return self.call_failed(address, error, request)
        result = self.read_answer(address, response, trailing)
        if self._on_acknowledged is not None and not isinstance(result, Failure):
            confirmed = acknowledged(request, result)
            if confirmed is not None:
                self._on_acknowledged(confirmed)
        return result

    async def _send(
        self, address: str, request: Message, timeout_s: float, on_sent: Callable[[], None] | None
    ) -> tuple[Message, Iterable[tuple[str, Any]]]:
        """Send a request; return the response and its trailing metadata. Raises AioRpcError."""
        if self.sessions is not None and self.sessions.carries(address, request):
            try:
                return await self.sessions.ask(address, request, timeout_s, on_sent), ()
            except NotServed:
                _LOGGER.debug("%s has no Session stream for this call: it goes unary", address)
        call = self._method(address, request)(
            request, timeout=timeout_s, metadata=placed(self.shown.metadata)
        )
        if on_sent is not None:
            on_sent()
        return await call, await call.trailing_metadata()

    def _open_session(self, address: str) -> Any:  # noqa: ANN401 - grpc.aio's call is untyped
        return GroupServiceStub(self.channel(address)).Session(metadata=self.shown.metadata)

    def read_answer(
        self,
        address: str,
        response: Any,  # noqa: ANN401 - any response of the contract
        trailing: Iterable[tuple[str, Any]] = (),
    ) -> Message | Failure:
        """Read an answer of the protocol; one that only names the leader is a failure."""
        extras = response.holdfast
        if extras.HasField("log_time_ms"):
            self.ids.observe(extras.log_time_ms, boot_ms())
        if extras.HasField("fencing_token") and not self._is_newest(extras.fencing_token):
            earlier = Unavailable(f"{address}: {_EARLIER}")
            return self._retry(address, earlier, self.endpoints.failed(address))
        code = getattr(response, "error_code", ErrorCode.ERROR_CODE_NONE)
        if code in _ELSEWHERE:
            leader = texts_in(trailing).get(LEADER_KEY) or extras.leader_hint or None
            delay = self.endpoints.redirected(address, leader)
            text = f"{address} does not lead" + (f"; {leader} does." if leader else ".")
            text = f"{address}: {readable(extras.message)}" if extras.message else text
            _LOGGER.debug("%s", text)
            return self._retry(address, Unavailable(text), delay)
        if code in _AGAIN_HERE:
            name = ErrorCode.Name(code)
            # Not replicated in time is not the same as not replicated.
            timed_out = code == ErrorCode.ERROR_CODE_REQUEST_TIMED_OUT
            error = (OutcomeUnknown if timed_out else Unavailable)(f"{address}: {name}")
            return self._retry(address, error, self.endpoints.failed(address, move=False))
        if isinstance(response, group_pb2.FindCoordinatorResponse) and not self.ids.ready:
            delay = self.endpoints.redirected(address, extras.leader_hint or None)
            text = f"{address} has no log time to give yet: its cluster is not formed."
            return self._retry(address, Unavailable(text), delay)
        self.succeeded(address)
        message: Message = response
        return message

    def _is_newest(self, token: int) -> bool:
        """Return whether a token is of the newest recovery number that was ever seen here (S13)."""
        number = token >> _INDEX_BITS
        self._recovery_number = max(self._recovery_number, number)
        return number == self._recovery_number

    def succeeded(self, address: str) -> None:
        """Note that a call was answered by this node."""
        self._unconnected.discard(address)
        self._refused.clear()
        self.failures.clear()
        self.endpoints.succeeded(address)
        self.connectivity.answered(address)
        if not self._closed:
            self._discovery.answered(address)

    def call_failed(self, address: str, error: grpc.aio.AioRpcError, request: Message) -> Failure:
        """Convert a status other than OK to a failure."""
        failed = classify(
            error.code(),
            error.details() or "no details",
            error.trailing_metadata() or (),
            subject=f"{type(request).__name__} at {address}",
            request_id=request_id_of(request),
        )
        if failed.kind is FailureKind.FATAL and failed.move:
            self._refused.add(address)
            if not self._refused.issuperset(self.endpoints.addresses):
                delay = self.endpoints.failed(address)
                return self._retry(address, Unavailable(str(failed.error)), delay)
        if failed.again is not None and self.shown.refused():
            return self._retry(address, failed.again, self.endpoints.failed(address, move=False))
        if failed.kind is not FailureKind.RETRY:
            return Failure(failed.kind, failed.error)
        if failed.leader:  # daily life: another node leads now
            _LOGGER.debug("%s", failed.error)
            delay = self.endpoints.redirected(address, failed.leader)
        else:
            self.connectivity.note(address, error.code().name, failed.error)
            delay = self.endpoints.failed(address, move=failed.move)
        return self._retry(address, failed.error, delay)

    def not_connected(self, address: str) -> Failure:
        """Make the failure of a call that was never sent, so nothing happened (S5)."""
        self._unconnected.add(address)
        words, heard_ms = self._words.get(address, ("", 0))
        if boot_ms() - heard_ms > _WORDS_HOLD_MS:
            words = ""
        cause = connect_errors.explain(words, self._credentials, self._wording)
        if is_forked_child() and not words:
            cause += (
                "; or gRPC does not work in this process, which was forked from one that had used "
                "it: start it with spawn"
            )
        end = "" if cause.endswith("?") else "."
        error = Unavailable(f"Could not connect to {address}: {cause}{end}")
        self.connectivity.note(address, cause, error)
        return self._retry(address, error, self.endpoints.unreachable(address))

    def unanswered(self, address: str, why: str) -> int:
        """Leave a node that does not answer; return the delay in ms before the next attempt."""
        self.connectivity.failed(f"{address}: {why}", self.endpoints.addresses)
        return self.endpoints.failed(address)

    def _retry(self, address: str, error: HoldfastError, delay_ms: int) -> Failure:
        why = error.details or str(error)
        for start in (f"{address}: ", f"Could not connect to {address}: "):
            why = why.removeprefix(start)
        self.failures[address] = why.removesuffix(".").removesuffix(self._wording.absent)
        self.connectivity.failed(error, self.endpoints.addresses)
        return Failure(FailureKind.RETRY, error, delay_ms)

    def _method(self, address: str, request: Message) -> Any:  # noqa: ANN401 - of all services
        return self._stubs[address].method(request)
