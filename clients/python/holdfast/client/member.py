"""Member for asyncio: performs what the session decides, and gives it answers and the time.

Heartbeats run in tasks of their own, apart from the user's coroutines; but code that *blocks* the
event loop blocks them too, and then ownership ends by the clock (S11). Blocking work belongs into
`asyncio.to_thread`, or use `holdfast.client.sync`, whose heartbeats have a thread of their own.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from shlex import quote
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, cast

from holdfast.client import offsets as offset_messages
from holdfast.client.arguments import assignors_of, check_callables, checked, topic_names
from holdfast.client.call_arguments import check_timeout
from holdfast.client.caller import CALL_TIMEOUT_MS
from holdfast.client.clock import boot_ms
from holdfast.client.connection import Connection
from holdfast.client.errors import HoldfastError, OutcomeUnknown, Unavailable, from_code
from holdfast.client.final import whom
from holdfast.client.health import Health, look
from holdfast.client.holding import Holding
from holdfast.client.partition import Offset, Partition
from holdfast.client.session import Session
from holdfast.client.signals import (
    Assigned,
    Cancel,
    Failure,
    Lost,
    Missing,
    Revoke,
    Send,
    Settings,
)
from holdfast.client.uncertain import Uncertain
from holdfast.coordinator.assignors import RangeAssignor, StickyAssignor
from holdfast.v1 import group_pb2, offset_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from holdfast.client.channel import Credentials
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.signals import Output, Response
    from holdfast.client.witness import Witness
    from holdfast.coordinator.assignors import Assignor

    Listener: TypeAlias = Callable[[Sequence[Partition]], Awaitable[None] | None]

_LOGGER = logging.getLogger("holdfast.client")
DEFAULT_ASSIGNORS: tuple[Assignor, ...] = (StickyAssignor(), RangeAssignor())


class Member:
    """A member of a group: `async with Member(...) as member`.

    With an `instance_id` it is static: leaving the block releases its hold for a restart, and
    nothing moves unless it stays away for a session (S12). Without one, leaving the block leaves
    the group. Times are milliseconds. The callbacks get partitions, may be coroutines, and run one
    after another: `on_revoked` may still commit and has 0.8 x `rebalance_timeout_ms`, `on_lost`
    cannot commit any more. One that raises stops the member with that error. A group leader looks
    each `topics_refresh_ms` whether its topics have grown. `on_acknowledged` hears of each change
    that was confirmed (witness.py).

    With assignors that are all cooperative, the member works on during a rebalance: `on_revoked`
    gets only what goes, `on_assigned` and `owned` only what is new. `weight` says how much the
    member can carry beside others; the weighted assignor asks. In place of endpoints a `Connection`
    can be given, which members of one process share; then what describes the connection
    (`credentials`, `client_id`, `on_acknowledged`) belongs to it.

    Raises ValueError or TypeError for an argument that no member can live by (arguments.py), and a
    call for one that it cannot be asked for (call_arguments.py). A refusal that cannot heal
    (`Fenced`, above all) stops the member; `owned`, `leave`, `restart` and `wait_stopped` raise it,
    `health` and the logger tell it.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, each with a default
        self,
        endpoints: str | Sequence[str] | Connection,
        *,
        group: str,
        topics: Iterable[str],
        instance_id: str | None = None,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 300_000,
        heartbeat_interval_ms: int = 3_000,
        topics_refresh_ms: int = 5_000,
        assignors: Sequence[Assignor] = DEFAULT_ASSIGNORS,
        takeover: Literal["now", "wait"] = "now",
        weight: int = 1,
        credentials: Credentials = None,
        client_id: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        on_acknowledged: Witness | None = None,
    ) -> None:
        settings = Settings(
            group=group,
            topics=topic_names(topics),
            assignors=assignors_of(assignors),
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            topics_refresh_ms=topics_refresh_ms,
            takeover=takeover,
            weight=weight,
        )
        self.settings = checked(settings)
        check_callables(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        self._shared = isinstance(endpoints, Connection)
        self._connection = _connection(endpoints, credentials, client_id, on_acknowledged)
        self._caller = self._connection.caller
        self._session = Session(self.settings, self._caller.ids)
        self._holding = Holding(self._session)
        self._uncertain = Uncertain()
        self._listeners = {Assigned: on_assigned, Revoke: on_revoked, Lost: on_lost}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._told: asyncio.Queue[Output] = asyncio.Queue()
        self._teller: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()
        self._stopped = asyncio.Event()
        self._error: BaseException | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.restart()
        except HoldfastError as failure:
            # An unconfirmed goodbye heals by itself; the block's own error must not be replaced.
            # Both are in the logger already.
            if error is None and not isinstance(failure, OutcomeUnknown):
                raise

    # --- who we are ----------------------------------------------------------------------------

    @property
    def instance_id(self) -> str | None:
        """The instance id; None: a dynamic member."""
        return self.settings.instance_id

    @property
    def member_id(self) -> str:
        """The id that the group knows this member by; empty before the first answer."""
        return self._session.identity.member_id

    @property
    def generation(self) -> int:
        """The generation that the member is in; -1: in none."""
        return self._session.identity.generation

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The partitions that are owned at this moment."""
        return self._holding.owned

    def health(self) -> Health:
        """Where the member stands, for a health probe; from any thread."""
        return look(self._session, self._error, boot_ms())

    # --- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to join; returns at once."""
        self._connection.attach(self)
        self._teller = asyncio.create_task(self._tell())
        self._session.start(boot_ms())
        self._pump()

    async def owned(self) -> AsyncIterator[Partition]:
        """Each partition as it is assigned, for as long as the member lives.

        A partition that went away before it was its turn is left out; one that comes back is given
        again; one that is kept over a rebalance is not. Ends when the member leaves, heard by the
        group or not; raises what stopped it otherwise.
        """
        while (partition := await self.next_owned()) is not None:
            yield partition

    async def next_owned(self) -> Partition | None:
        """The next assigned partition; None: the member has left."""
        while True:
            partition = self._holding.take()
            if partition is not None:
                return partition
            if self._stopped.is_set():
                if not self._left_unheard:
                    self._raise_what_stopped_it()
                return None
            self._news.clear()
            await self._news.wait()

    async def leave(self) -> None:
        """Leave the group for good: the partitions go to others at once.

        Raises OutcomeUnknown when the group has not confirmed it, or what stopped the member.
        """
        self._session.leave(boot_ms())
        await self._end()

    async def restart(self) -> None:
        """Stop for a planned restart: a static member keeps its place, a dynamic one leaves (S12).

        Raises as `leave` does.
        """
        self.begin_restart()
        await self._end()

    def begin_restart(self) -> None:
        """Begin what `restart` does and return at once; `wait_stopped` tells what came of it."""
        self._session.restart(boot_ms())
        self._pump()

    async def wait_stopped(self) -> None:
        """Wait until the member has stopped; raises what stopped it, if that was not asked for."""
        await self._stopped.wait()
        self._raise_what_stopped_it()

    # --- offsets -------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[tuple[str, int], Offset | int],
        *,
        request_id: str | None = None,
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> None:
        """Record how far the work has come, under the present generation.

        After OutcomeUnknown, call again with the error's `request_id`: it goes out as whom it was
        sent first (uncertain.py). Raises Rejected (the group has moved on, or a partition's offset
        was refused), Unavailable, OutcomeUnknown; ValueError or TypeError for an offset that cannot
        be (it is 0 or more), before anything is sent.
        """
        check_timeout(timeout_ms)
        topics = offset_messages.to_commit(offsets)
        identity = self._uncertain.identity_of(request_id) or self._session.identity
        if not identity.can_heartbeat:
            raise Unavailable("The member is in no generation; commit when it is assigned again.")
        chosen_id = request_id or await self._caller.new_request_id(timeout_ms)
        request = offset_messages.commit_request(self.settings, identity, topics, chosen_id)
        try:
            response = await self._caller.call(
                request, offset_pb2.OffsetCommitResponse, timeout_ms=timeout_ms
            )
        except OutcomeUnknown:
            self._uncertain.keep(chosen_id, identity)
            raise
        self._uncertain.settle(chosen_id)
        refused = offset_messages.refusals(response)
        if refused:
            code = next(iter(refused.values()))
            extras = response.holdfast
            names = ", ".join(f"{topic}/{number}" for topic, number in refused)
            about = whom(identity.member_id, self.settings.instance_id, self.settings.group)
            self._session.refused(code, identity, extras, boot_ms())
            self._pump()
            raise from_code(
                code,
                subject=f"{about}, commit of {names}",
                message=extras.message,
                holder=extras.holder,
                since_ms=extras.holder_since_ms if extras.HasField("holder_since_ms") else None,
                log_time_ms=self._caller.ids.log_time_ms(boot_ms()),
            )

    async def committed(
        self, partitions: Iterable[tuple[str, int]] = (), *, timeout_ms: int = CALL_TIMEOUT_MS
    ) -> dict[TopicPartition, Offset]:
        """Committed offsets of the partitions (none named: of all); never committed: left out."""
        check_timeout(timeout_ms)
        response = await self._caller.call(
            offset_messages.fetch_request(self.settings.group, partitions),
            offset_pb2.OffsetFetchResponse,
            timeout_ms=timeout_ms,
        )
        return offset_messages.fetched(response)

    # --- performing what the session decides -----------------------------------------------------

    def _pump(self) -> None:
        for output in self._session.outputs():
            match output:
                case Send():
                    self._tasks[output.call] = asyncio.create_task(self._perform(output))
                case Cancel(call):
                    if call in self._tasks:
                        self._tasks[call].cancel()
                case Missing(topics):
                    self._warn_of(topics)
                case _:
                    self._told.put_nowait(output)
        self._arm()

    def _warn_of(self, topics: Sequence[str]) -> None:
        for topic in topics:
            _LOGGER.warning(
                "Topic %r, which group %r asks for, does not exist, so nobody gets a partition of "
                "it. Create it with `holdfast topic create %s --partitions COUNT`; it is taken up "
                "within %d ms.",
                topic,
                self.settings.group,
                quote(topic),
                self.settings.topics_refresh_ms,
            )

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wake_at_ms = self._session.wake_at_ms
        if wake_at_ms is None:
            self._timer = None
            return
        delay = max(0, wake_at_ms - boot_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._session.tick(boot_ms())
        self._pump()

    def _pushed(self, push: group_pb2.HeartbeatPush) -> None:
        self._session.pushed(push, boot_ms())
        self._pump()

    async def _perform(self, send: Send) -> None:
        request = send.request
        try:
            plain = isinstance(request, group_pb2.HeartbeatRequest) and not request.holdfast.release
            if isinstance(request, group_pb2.HeartbeatRequest) and plain:
                heartbeats = self._connection.heartbeats
                result = await heartbeats.attempt(request, send.timeout_ms, self._pushed)
            else:
                result = await self._caller.attempt(
                    request, send.timeout_ms, elsewhere=send.elsewhere
                )
            if isinstance(result, Failure):
                self._session.failed(send.call, result, boot_ms())
            else:
                self._session.answered(send.call, cast("Response", result), boot_ms())
        except Exception as error:  # noqa: BLE001 - a defect here must not pass in silence
            self._crash(error)
        finally:
            self._tasks.pop(send.call, None)
        self._pump()

    async def _tell(self) -> None:
        """Tell the user, one thing after another, in the order in which it happened."""
        while True:
            output = await self._told.get()
            if not isinstance(output, Assigned | Revoke | Lost):
                break
            try:
                await self._tell_one(output)
            except Exception as error:  # noqa: BLE001 - the user's code; told below, raised later
                self._crash(error)
        self._error = self._error or self._session.error
        if self._left_unheard:
            _LOGGER.warning(
                "A member has stopped as asked, and nobody confirmed it. %s", self.health()
            )
        elif self._error is not None:
            said = isinstance(self._error, HoldfastError)  # else where it was raised counts, too
            traceback = None if said else self._error
            _LOGGER.error("A member has stopped for good. %s", self.health(), exc_info=traceback)
        self._stopped.set()
        self._news.set()

    async def _tell_one(self, output: Assigned | Revoke | Lost) -> None:
        concerned = self._holding.concerned(output)
        self._holding.begin(output, concerned)
        listener = self._listeners.get(type(output))
        try:
            answer = listener(concerned) if listener is not None else None
            if inspect.isawaitable(answer):
                await answer
        finally:
            if isinstance(output, Revoke):
                self._session.revoked(boot_ms())
                self._pump()
        self._holding.finish(output, concerned)
        self._news.set()

    def _crash(self, error: Exception) -> None:
        self._error = self._error or error
        reason = f"Member of group {self.settings.group!r} failed: {error!r}"
        self._session.abort(HoldfastError(reason))
        self._pump()

    async def _end(self) -> None:
        self._pump()
        if self._teller is None:
            return
        await self._stopped.wait()
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks.values()):
            task.cancel()
        self._connection.detach(self)
        if not self._shared:
            await self._connection.close()
        self._raise_what_stopped_it()

    @property
    def _left_unheard(self) -> bool:
        """Whether it stopped as asked, but for the answer to its goodbye: that heals by itself."""
        return self._session.departing and isinstance(self._error, OutcomeUnknown)

    def _raise_what_stopped_it(self) -> None:
        if self._error is not None:
            raise self._error


def _connection(
    endpoints: str | Sequence[str] | Connection,
    credentials: Credentials,
    client_id: str | None,
    on_acknowledged: Witness | None,
) -> Connection:
    """The one that is given, or a new one. Raises ValueError for what a given one has itself."""
    if not isinstance(endpoints, Connection):
        return Connection(
            endpoints,
            credentials=credentials,
            client_id=client_id,
            on_acknowledged=on_acknowledged,
        )
    if credentials is not None or client_id is not None or on_acknowledged is not None:
        raise ValueError(
            "credentials, client_id and on_acknowledged belong to the Connection: give them there."
        )
    return endpoints
