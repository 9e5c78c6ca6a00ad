"""The client's own calls, each recorded: what is asked, when, and its outcome.

One `call` with its retries is one call of the history, for they share a request id and so one
effect (S15); a session decides about each attempt itself, so there each attempt is one. Knows no
fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from holdfast.chaos.clock import boot_us
from holdfast.chaos.workload.messages import Answer, answered, failed
from holdfast.client import Admin, Connection, Unavailable
from holdfast.client._rpc.caller import Caller
from holdfast.client._rpc.heartbeat_stream import HeartbeatStream
from holdfast.client._session.session_io import Failure
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from holdfast.chaos.workload.echoes import Echoes
    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials
    from holdfast.client._rpc.heartbeat_stream import Request

AnswerT = TypeVar("AnswerT", bound="Message")

_ENDED = Answer("unknown", "the caller ended before the answer", {})


class _Open:
    """One call that is under way."""

    def __init__(self, recorder: Recorder, who: str, request: Message) -> None:
        self._recorder = recorder
        self._call = recorder.invoked(who, request)
        self._answer = _ENDED

    def came_to(self, result: object) -> None:
        """Note the call's result: a message of the contract, a `Failure`, or an exception."""
        if isinstance(result, Failure):
            self._answer = failed(result.error)
        elif isinstance(result, BaseException):
            self._answer = failed(result)
        else:
            self._answer = answered(result)

    def close(self) -> None:
        """Record the outcome; unknown, if no result was noted."""
        self._recorder.returned(self._call, self._answer)


@contextmanager
def _recording(recorder: Recorder, who: str, request: Message) -> Iterator[_Open]:
    call = _Open(recorder, who, request)
    try:
        yield call
    finally:
        call.close()


class RecordedCaller(Caller):
    """A `Caller` that records its calls as those of `who`."""

    def __init__(
        self,
        endpoints: Sequence[str],
        credentials: Credentials,
        recorder: Recorder,
        who: str,
        *,
        on_streams: bool = False,
        echoes: Echoes | None = None,
    ) -> None:
        """`on_streams`: its calls share Session streams, as a member's do.

        `echoes`: keeps some of its heartbeats back, and sends some twice.
        """
        super().__init__(
            endpoints,
            credentials=credentials,
            client_id=who.partition("#")[0],
            on_streams=on_streams,
        )
        self.recorder, self.who, self.echoes = recorder, who, echoes
        self._whole: set[int] = set()
        self.attempt_began_us = 0

    async def call(
        self, request: Message, answer: type[AnswerT], *, timeout_ms: int = 30_000
    ) -> AnswerT:
        """Call as `Caller.call` does; one call of the history, however many attempts it takes."""
        with self.as_one(request) as call:
            try:
                response = await super().call(request, answer, timeout_ms=timeout_ms)
            except Exception as error:
                call.came_to(error)
                raise
            call.came_to(response)
            return response

    async def insist(
        self, request: Message, *, attempt_ms: int, until: Callable[[], bool]
    ) -> Message | None:
        """Make short attempts until there is an answer; None: `until` came first.

        A frozen node answers nothing: a caller that waits as long as a call may take would measure
        its own patience and not the cluster's.
        """
        unknown = False
        with self.as_one(request) as call:
            while not until():
                result = await self.attempt(request, attempt_ms)
                if not isinstance(result, Failure):
                    call.came_to(result)
                    return result
                unknown = unknown or not isinstance(result.error, Unavailable)
                await asyncio.sleep(result.retry_in_ms / 1_000)
            if not unknown:
                call.came_to(Unavailable("no attempt was accepted"))
        return None

    async def learn_log_time(self, attempt_ms: int) -> None:
        """Make one attempt to learn the log time that request ids need (S15)."""
        await self.attempt(group_pb2.FindCoordinatorRequest(), attempt_ms)

    async def attempt(
        self,
        request: Message,
        timeout_ms: int,
        *,
        elsewhere: bool = False,
        on_sent: Callable[[], None] | None = None,
    ) -> Message | Failure:
        """Attempt as `Caller.attempt` does; a call of the history unless it is part of one."""
        self.attempt_began_us = boot_us()
        if id(request) in self._whole:
            return await super().attempt(request, timeout_ms, elsewhere=elsewhere, on_sent=on_sent)
        with _recording(self.recorder, self.who, request) as call:
            result: Message | Failure | None = self.kept_back(request)
            if result is None:
                result = await super().attempt(
                    request, timeout_ms, elsewhere=elsewhere, on_sent=on_sent
                )
            call.came_to(result)
            return result

    def kept_back(self, request: Message) -> Failure | None:
        """Return how a call ends that is kept back; None: it is made as usual."""
        return None if self.echoes is None else self.echoes.takes(request)

    @contextmanager
    def as_one(self, request: Message) -> Iterator[_Open]:
        """Record one call, and none of the attempts that it is made of."""
        with _recording(self.recorder, self.who, request) as call:
            self._whole.add(id(request))
            try:
                yield call
            finally:
                self._whole.discard(id(request))


class RecordedHeartbeats(HeartbeatStream):
    """A heartbeat stream that records its calls."""

    def __init__(self, caller: RecordedCaller) -> None:
        super().__init__(caller)
        self._recorded = caller

    async def attempt(self, request: Request, timeout_ms: int) -> Message | Failure:
        """Attempt as `HeartbeatStream.attempt` does."""
        with self._recorded.as_one(request) as call:
            result: Message | Failure | None = self._recorded.kept_back(request)
            if result is None:
                result = await super().attempt(request, timeout_ms)
            call.came_to(result)
            return result


class RecordedConnection(Connection):
    """A connection whose calls are recorded as those of `who`."""

    def __init__(
        self,
        endpoints: Sequence[str],
        credentials: Credentials,
        recorder: Recorder,
        who: str,
        echoes: Echoes | None = None,
    ) -> None:
        super().__init__(endpoints, credentials=credentials)
        # Nothing has been sent yet, and a channel opens when it is first used.
        caller = RecordedCaller(
            endpoints, credentials, recorder, who, on_streams=True, echoes=echoes
        )
        self.caller, self._echoes = caller, echoes
        self.heartbeats = RecordedHeartbeats(caller)

    async def close(self) -> None:
        """Close the connection; what was kept back is sent no more."""
        if self._echoes is not None:
            await self._echoes.close()
        await super().close()


class RecordedAdmin(Admin):
    """An operator's client that records its calls."""

    def __init__(
        self, endpoints: Sequence[str], credentials: Credentials, recorder: Recorder, who: str
    ) -> None:
        super().__init__(endpoints, credentials=credentials)
        self._caller = RecordedCaller(endpoints, credentials, recorder, who)
