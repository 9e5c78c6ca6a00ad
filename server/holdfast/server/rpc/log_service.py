"""LogService: serves the event log in pages and as it grows, on any node (log.proto); seals it.

What a node has applied is committed, so every node answers from its own log: the answer may lack
the newest events, but is never wrong. A node that was just started catches up first (S4). Applied
events wake a watcher, which then reads the history from its position, as a reader does: a slow one
takes the memory of one page, however far behind it is, and misses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import grpc

from holdfast.coordinator.model.commands import SealLog
from holdfast.coordinator.model.ids import Position
from holdfast.runtime.background import unsealed
from holdfast.runtime.errors import Crashed, Stopping
from holdfast.runtime.event_log.history import NotHeld
from holdfast.server.access.sight import Sight
from holdfast.server.guard.shares import WATCHES_EACH_MAX, WATCHES_MAX, Shares
from holdfast.server.rpc.callers import answered, end, named
from holdfast.server.rpc.errors import ENDED, CallFailed
from holdfast.server.translate.refusals import code_of
from holdfast.server.translate.responses import extras
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import log_pb2 as lg
from holdfast.v1.events_pb2 import EventRecord
from holdfast.v1.log_pb2_grpc import LogServiceServicer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.replies import DoneReply
    from holdfast.runtime.event_log.history import Page
    from holdfast.runtime.groups.actors import Actors
    from holdfast.runtime.groups.pending_calls import Answered
    from holdfast.runtime.ports import HistoryLike, ReplicaLike
    from holdfast.server.access.gate import Gate
    from holdfast.server.access.principal_limits import PrincipalLimits
    from holdfast.server.guard.pace import Pace
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.server.rpc.reads import Reads

logger = logging.getLogger(__name__)

PAGE_RECORDS: Final = 500
"""Records that are read at once; a caller that asks for one group may get few of them."""
PAGE_BYTES: Final = 1 << 20
"""Bytes at which a message is closed; a larger single record is still sent."""
IDLE_SECONDS: Final = 5.0
"""Seconds after which an idle watch gets an empty message with the log's position."""
REST_EACH_S: Final = 0.004
"""Seconds that a watch rests at the end of the log, times the watches of this node: events of that
time go into its next message, so that many watches cost the node little more than a few."""


class Sent(NamedTuple):
    """The content of one message."""

    records: list[EventRecord]
    next: Position  # where the next message begins
    end: bool  # whether the log has no records after these
    first: Position | None  # the oldest record that is held; None: none


class Wanted(NamedTuple):
    """What is asked of a page."""

    group: str | None  # only this group's events
    most: int  # at most so many events
    sees: Callable[[EventRecord], bool]  # whether the caller may be told of an event


class LogService(LogServiceServicer):
    """Serves the event log. A listener of the replica."""

    def __init__(
        self,
        replica: ReplicaLike,
        actors: Actors,
        history: HistoryLike,
        reads: Reads,
        callers: Callers,
        pace: Pace,
        gate: Gate,
        limits: PrincipalLimits,
    ) -> None:
        self._replica, self._actors = replica, actors
        self._history, self._reads = history, reads
        self._callers, self._pace, self._gate, self._limits = callers, pace, gate, limits
        advice = "end one of them, or watch at another node, for any node serves watches"
        self._shares = Shares("watches", WATCHES_EACH_MAX, WATCHES_MAX, advice)
        self._idle_seconds = IDLE_SECONDS
        self._watchers: dict[asyncio.Event, None] = {}  # in order of arrival
        self._stopping = False

    @answered(lg.ReadEventsResponse)
    async def ReadEvents(
        self, request: lg.ReadEventsRequest, context: Context
    ) -> lg.ReadEventsResponse:
        """Read one page."""
        self._reads.check_caught_up()
        sees = Sight(self._gate, self._callers.principal(context), "ReadEvents").sees
        start = _place(request.start) if request.HasField("start") else None
        group = request.group_id if request.HasField("group_id") else None
        wanted = Wanted(group, request.events_max or PAGE_RECORDS, sees)
        page = await self._page(start, wanted)
        return lg.ReadEventsResponse(
            records=page.records,
            next=_message(page.next),
            end=page.end,
            first=_message(page.first) if page.first is not None else None,
            holdfast=await self._extras(),
        )

    @answered(lg.SealLogResponse)
    async def SealLog(self, request: lg.SealLogRequest, context: Context) -> lg.SealLogResponse:
        """Set a boundary behind what is applied now; each node seals up to it in its turn."""
        self._actors.check_serving()
        got, wanted = await self._set_boundary(request, context)
        error = cast("DoneReply", got.reply).error
        if got.position is None and not error and self._replica.state.sealed < wanted.last:
            # Another one was set meanwhile, of earlier records: the next one holds these.
            got, _ = await self._set_boundary(request, context)
        return _sealed(got, self._replica.state.sealed)

    async def Watch(  # type: ignore[override]  # writes by itself
        self, request: lg.WatchRequest, context: Context
    ) -> None:
        """Send the events from a position on, then each as it is applied."""
        bell = asyncio.Event()
        try:
            principal = self._callers.principal(context)
            sight = Sight(self._gate, principal, "Watch")
            self._limits.check_watches(self._shares.of(principal))
            with self._shares.held(principal):
                self._watchers[bell] = None
                async for message in self._messages(request, bell, context.peer(), sight):
                    await context.write(message)
        except ENDED as error:
            await end(context, error)
        except grpc.aio.AbortError:
            raise
        except Exception:
            logger.exception("a watch failed inside", extra=named("Watch", request))
            await end(context, Crashed("Watch"))
        finally:
            self._watchers.pop(bell, None)

    async def _set_boundary(
        self, request: lg.SealLogRequest, context: Context
    ) -> tuple[Answered, unsealed.Boundary]:
        """Try to set a boundary behind the last record; return the answer, and where that was."""
        wanted = await self._where_to_seal(request)
        with self._actors.open() as call:
            caller = self._callers.of(call.number, request, request.holdfast, context)
            return await call.ask(SealLog(caller, *wanted)), wanted

    async def _where_to_seal(self, request: lg.SealLogRequest) -> unsealed.Boundary:
        """Look where a boundary may be set. Raises CallFailed if the disk does not tell it."""
        try:
            return await unsealed.boundary(self._history, self._replica.state)
        except unsealed.UNREADABLE as error:
            logger.exception("the log cannot be sealed", extra=named("SealLog", request))
            sentence = (
                f"what is not sealed yet cannot be read on this node, so nothing was changed: "
                f"{error}. Hand the leadership to another node, whose disk is sound, and repeat "
                "the call"
            )
            raise CallFailed(grpc.StatusCode.DATA_LOSS, sentence, "not-applied") from error

    async def _messages(
        self, request: lg.WatchRequest, bell: asyncio.Event, who: str, sight: Sight
    ) -> AsyncIterator[lg.WatchResponse]:
        """Yield messages; the first at once, so that the caller knows where it can resume."""
        self._reads.check_caught_up()
        group = request.group_id if request.HasField("group_id") else None
        now = Position(self._replica.state.applied_index + 1, 0)
        at = _place(request.start) if request.HasField("start") else now
        clock = asyncio.get_running_loop().time
        speak_at = clock()
        while not self._stopping:
            bell.clear()
            await self._pace.turn(who)
            if group is not None:
                sight.check(group)  # the right may have been revoked meanwhile
            wanted = Wanted(group, PAGE_RECORDS, sight.sees)
            page = await self._pace.timed(who, self._page(at, wanted))
            at = page.next
            if page.records or clock() >= speak_at:
                yield lg.WatchResponse(
                    records=page.records, next=_message(at), holdfast=await self._extras()
                )
                speak_at = clock() + self._idle_seconds
            if page.end:
                await asyncio.sleep(REST_EACH_S * len(self._watchers))
                await _rung(bell, speak_at)
        raise Stopping

    async def _page(self, start: Position | None, wanted: Wanted) -> Sent:
        """Read as many records as one message holds. Raises CallFailed."""
        try:
            whole = wanted.group is None and self._gate.open
            limit = min(wanted.most, PAGE_RECORDS) if whole else PAGE_RECORDS
            page = await self._history.read(start, limit)
        except NotHeld as error:
            raise CallFailed(grpc.StatusCode.OUT_OF_RANGE, str(error), "not-applied") from error
        return _sent(page, wanted)

    async def _extras(self) -> x.ResponseExtras:
        """Return how fresh this is, as for a stale read, since any node serves."""
        return (await self._reads.state(x.RequestExtras(stale_ok=True)))[1]

    def stop(self) -> None:
        """End every watch: the node stops, and another node can go on from `next`."""
        self._stopping = True
        self._ring()

    def _ring(self) -> None:
        for bell in self._watchers:
            bell.set()

    # --- the replica's listener ---

    def listen(self) -> None:
        """Subscribe to the replica."""
        self._replica.subscribe(
            on_applied=self.on_applied,
            on_stopped=self.on_stopped,
        )

    def on_applied(self, records: Sequence[Record], index: int) -> None:
        """Wake the watches: there are new events."""
        del records, index
        self._ring()

    def on_stopped(self, reason: str) -> None:
        """End every watch: nothing more will be applied here."""
        del reason
        self.stop()


async def _rung(bell: asyncio.Event, until: float) -> None:
    """Wait for the bell, or until a time of the loop's clock."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            await bell.wait()


def _sent(page: Page, wanted: Wanted) -> Sent:
    """Choose the records of a page that go into one message, and where the next one begins."""
    records: list[EventRecord] = []
    size = 0
    for position, content in page.records:
        if len(records) == wanted.most or size >= PAGE_BYTES:
            return Sent(records, position, end=False, first=page.first)
        record = EventRecord.FromString(content)
        if wanted.group in {None, record.group_id} and wanted.sees(record):
            records.append(record)
            size += len(content)
    return Sent(records, page.next, page.end, page.first)


def _sealed(got: Answered, boundary: Position) -> lg.SealLogResponse:
    """Make the response of SealLog; `boundary` is the last one now."""
    error = cast("DoneReply", got.reply).error
    response = lg.SealLogResponse(error_code=code_of(error), holdfast=extras(error))
    if error is not None:
        return response
    response.already = got.position is None
    if boundary.index:
        response.sealed.CopyFrom(_message(boundary))
    if got.position is not None:
        response.holdfast.position.CopyFrom(_message(got.position))
    return response


def _place(position: x.Position) -> Position:
    return Position(position.index, position.ordinal)


def _message(position: Position) -> x.Position:
    return x.Position(index=position.index, ordinal=position.ordinal)
