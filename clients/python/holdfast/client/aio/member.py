"""Member for asyncio: performs what the session decides, and gives it answers and the time.

Heartbeats run in tasks of their own, apart from the user's coroutines; but code that *blocks* the
event loop blocks them too, and then ownership ends by the clock (S11). Blocking work belongs into
`asyncio.to_thread`, or use `holdfast.client.sync`, whose heartbeats have a thread of their own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from holdfast.client._rpc.caller import CALL_TIMEOUT_MS
from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.fork_guard import check_process, is_this_process, this_process
from holdfast.client._session.health import Health, health_of
from holdfast.client._session.member_session import make_session
from holdfast.client._session.session_io import (
    Assigned,
    Cancel,
    Failure,
    Lost,
    Missing,
    Note,
    Revoke,
    Send,
    Settings,
    Stage,
)
from holdfast.client._translate.arguments import assignors_of, check_callables, checked, topic_names
from holdfast.client._translate.call_arguments import Offset
from holdfast.client.aio.callbacks import Callbacks
from holdfast.client.aio.commits import Commits
from holdfast.client.aio.connection import Connection, connection_of
from holdfast.client.aio.handlers import Handlers
from holdfast.client.aio.member_log import MemberLog
from holdfast.client.aio.partition import Partition
from holdfast.client.aio.user_partitions import UserPartitions
from holdfast.client.errors import Fenced, HoldfastError
from holdfast.coordinator.assignors import RangeAssignor, StickyAssignor
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from holdfast.client._rpc.channel import Credentials
    from holdfast.client._session.session_io import Output, Response, TopicPartition
    from holdfast.client._translate.acknowledged import OnAcknowledged
    from holdfast.coordinator.assignors import Assignor

    Listener: TypeAlias = Callable[[Sequence[Partition]], Awaitable[None] | None]
    Handler: TypeAlias = Callable[[Partition], Awaitable[None]]

DEFAULT_ASSIGNORS: tuple[Assignor, ...] = (StickyAssignor(), RangeAssignor())


class Member:
    """A member of a group: `async with Member(...) as member`.

    With an `instance_id` it is static: leaving the block releases its hold for a restart, and
    nothing moves unless it stays away for a session (S12). Without one, leaving the block leaves
    the group. Times are milliseconds. The callbacks get partitions, may be coroutines, and run one
    after another: `on_revoked` may still commit and has 0.8 x `rebalance_timeout_ms`, `on_lost`
    cannot commit any more (`Partition.lost_reason` says why). One that raises stops the member with
    that error, once it has let go of everything and told the group. A group leader looks each
    `topics_refresh_ms` whether its topics have grown. `on_acknowledged` hears of each change that
    was confirmed. A leading node must have answered within `start_timeout_ms` (None: whenever it
    may), else the member ends with Unavailable.

    With assignors that are all cooperative, the member works on during a rebalance: `on_revoked`
    gets only what goes, `on_assigned` and `owned` only what is new. `weight` says how much the
    member can carry beside others; the weighted assignor asks. In place of endpoints a `Connection`
    can be given, which members of one process share; then what describes the connection
    (`credentials`, `client_id`, `on_acknowledged`) belongs to it.

    Raises ValueError or TypeError for an argument that no member can live by, and a call for one
    that it cannot be asked for. A refusal that cannot heal (`Fenced`, above all) stops the member;
    `owned`, `run`, `leave`, `restart` and `wait_stopped` raise it, `health` and the logger tell it.
    The end of the block raises it, too, unless the program has had it before. A member is used
    once, and only in the process that made it: else RuntimeError.
    """

    _makes: type[Any] = Partition
    _cancels_handlers = True

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
        start_timeout_ms: int | None = 30_000,
        assignors: Sequence[Assignor] = DEFAULT_ASSIGNORS,
        takeover: Literal["now", "wait"] = "now",
        weight: int = 1,
        credentials: Credentials = None,
        client_id: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        on_acknowledged: OnAcknowledged | None = None,
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
            start_timeout_ms=start_timeout_ms,
            takeover=takeover,
            weight=weight,
        )
        self.settings = checked(settings)
        check_callables(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        self._shared = isinstance(endpoints, Connection)
        self._connection = connection_of(endpoints, credentials, client_id, on_acknowledged)
        self._caller = self._connection.caller
        self._process = this_process()
        self._session = make_session(self.settings, self._caller.ids)
        self._partitions: UserPartitions[Any] = UserPartitions(self._session, self._makes)
        self._handlers = Handlers(self._crash, cancels=self._cancels_handlers)
        listeners = {Assigned: on_assigned, Revoke: on_revoked, Lost: on_lost}
        self._callbacks = Callbacks(
            *(self._partitions, self._handlers, listeners), revoked=self._revoked, crash=self._crash
        )
        self._log = MemberLog(self._session)
        self._commits = Commits(self._session, self._caller)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._callback_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()
        self._error: BaseException | None = None
        self._has_raised = self._fenced_commit = False

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not is_this_process(self._process):
            return  # a copy, in the child of a fork: the membership is its parent's to end
        if self._session.pausing and (error is None or isinstance(error, Exception)):
            await self._pause()
        known = self._has_raised
        try:
            await self.restart()
        except Exception as failure:
            # Logged already. An unconfirmed leave heals by itself; nothing is logged twice.
            known |= self._fenced_commit and isinstance(failure, Fenced)
            if error is not None and error is not failure and not known:
                error.add_note(f"The member had stopped before: {failure!r}")
            elif error is None and not known and not self._leave_unconfirmed:
                raise

    async def _pause(self) -> None:
        """Wait before the program may end (fatal_error.pause_ms); a cancellation shortens it."""
        try:
            await self._stopped.wait()
        except asyncio.CancelledError:
            await asyncio.gather(self.restart(), return_exceptions=True)  # in the logger already
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
        return self._partitions.owned

    def health(self) -> Health:
        """Where the member stands, for a health probe; from any thread."""
        check_process(self._process, "Member")
        return health_of(self._session, self._error, boot_ms())

    @property
    def stopped(self) -> bool:
        """Whether it has stopped, and calls no code of the program any more; from any thread."""
        return self._stopped.is_set()

    # --- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to join; return at once."""
        check_process(self._process, "Member")
        if self._session.stage is not Stage.NEW:
            raise RuntimeError("A Member is used once: make another one to join again.")
        self._connection.attach(self)
        self._callback_task = asyncio.create_task(self._run_callbacks())
        self._session.start(boot_ms())
        self._pump()

    async def owned(self) -> AsyncIterator[Partition]:
        """Yield each partition as it is assigned, for as long as the member lives.

        A partition that went away before it was its turn is left out; one that comes back is given
        again; one that is kept over a rebalance is not. Ends when the member leaves, heard by the
        group or not; raises what stopped it otherwise.
        """
        while (partition := await self.next_owned()) is not None:
            yield partition

    async def next_owned(self) -> Partition | None:
        """Wait for the next assigned partition; None: the member has left."""
        self._check_started()
        while True:
            partition: Partition | None = self._partitions.take()
            if partition is not None:
                return partition
            if self._stopped.is_set():
                if not self._leave_unconfirmed:
                    self._raise_what_stopped_it()
                return None
            self._callbacks.changed.clear()
            await self._callbacks.changed.wait()

    async def run(self, handler: Handler) -> None:
        """Run `handler(partition)` as a task for each owned partition; return with the member.

        A partition that is to be let go of is told so (`Partition.revoking`, `wait_revoked`), and
        the group hears of it when its handler has ended, and `on_revoked` after it. Handlers of
        partitions that were lost are cancelled; so are all when this call is. A handler that
        returns is done with its partition until that is assigned anew. What one raises ends the
        member, as a callback's error does, and is raised here; but not OwnershipLost or a refusal
        because of a partition that was lost.
        """
        self._check_started()
        self._handlers.open(handler)
        try:
            async for partition in self.owned():
                self._handlers.start(partition)
        finally:
            await self._handlers.close()

    async def leave(self) -> None:
        """Leave the group for good: the partitions go to others at once.

        Raises OutcomeUnknown when the group has not confirmed it, or what stopped the member.
        """
        self._check_started()
        self._handlers.check_outside(self._callback_task, "leave")
        self._session.leave(boot_ms())
        await self._end()

    async def restart(self) -> None:
        """Stop for a planned restart: a static member keeps its place, a dynamic one leaves (S12).

        Raises as `leave` does.
        """
        check_process(self._process, "Member")
        self._handlers.check_outside(self._callback_task, "restart")
        self.begin_restart()
        await self._end()

    def begin_restart(self) -> None:
        """Begin what `restart` does and return at once; `wait_stopped` tells what came of it."""
        self._check_started()
        self._session.restart(boot_ms())
        self._pump()

    async def wait_stopped(self) -> None:
        """Wait until the member has stopped; raises what stopped it, if that was not asked for."""
        self._check_started()
        self._handlers.check_outside(self._callback_task, "wait_stopped")
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
        """Commit offsets under the present generation.

        After OutcomeUnknown, call again with the error's `request_id`: it goes out as whom it was
        sent first (unknown_commits.py). More than 500 partitions go out in several calls; those
        before one that is refused stand. Raises Rejected (the group has moved on, or an offset was
        refused), Unavailable, OutcomeUnknown; ValueError or TypeError for what is no offset.
        """
        check_process(self._process, "Member")
        refusal = await self._commits.commit(offsets, request_id, timeout_ms)
        if refusal is not None:
            self._pump()
            self._fenced_commit |= isinstance(refusal, Fenced)
            raise refusal

    async def committed(
        self, partitions: Iterable[tuple[str, int]] = (), *, timeout_ms: int = CALL_TIMEOUT_MS
    ) -> dict[TopicPartition, Offset]:
        """Return committed offsets of the partitions (none named: all); others are left out."""
        check_process(self._process, "Member")
        return await self._commits.committed(partitions, timeout_ms)

    # --- performing what the session decides -----------------------------------------------------

    def _check_started(self) -> None:
        check_process(self._process, "Member")
        if self._callback_task is None:
            raise RuntimeError("The Member has not been started: use `with`, or call start().")

    def _take_outputs(self) -> list[Output]:
        return self._session.outputs()

    def _pump(self) -> None:
        for output in self._take_outputs():
            self._log.write(output)
            match output:
                case Send():
                    self._tasks[output.call] = asyncio.create_task(self._perform(output))
                case Cancel(call):
                    if call in self._tasks:
                        self._tasks[call].cancel()
                case Missing() | Note():
                    pass
                case _:
                    self._callbacks.put(output)
        if self._session.pausing:
            self._log.ended(self.health(), leave_unconfirmed=False)
        self._arm()

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

    def _delivered(self, call: int) -> None:
        self._session.delivered(call, boot_ms())
        self._arm()

    async def _perform(self, send: Send) -> None:
        request = send.request
        try:
            plain = isinstance(request, group_pb2.HeartbeatRequest) and not request.holdfast.release
            if isinstance(request, group_pb2.HeartbeatRequest) and plain:
                heartbeats = self._connection.heartbeats
                result = await heartbeats.attempt(request, send.timeout_ms, self._pushed)
            else:
                result = await self._caller.attempt(
                    request,
                    send.timeout_ms,
                    elsewhere=send.elsewhere,
                    on_sent=lambda: self._delivered(send.call),
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

    async def _run_callbacks(self) -> None:
        """Make all callbacks; when this ends, the member has stopped."""
        try:
            await self._callbacks.run()
        except asyncio.CancelledError:
            self._session.abort(HoldfastError("The event loop ended before the member did."))
            raise
        finally:
            self._error = self._error or self._session.error
            self._log.ended(self.health(), leave_unconfirmed=self._leave_unconfirmed)
            self._stopped.set()
            self._callbacks.changed.set()

    def _revoked(self) -> None:
        """Tell the session that the callbacks up to a Revoke have returned (callbacks.py)."""
        self._session.revoked(boot_ms())
        self._pump()

    def _crash(self, error: Exception) -> None:
        """End the member with an exception of the user's code, or of ours."""
        if self._error is None:
            self._error = error
        elif self._session.stage is not Stage.LEAVING:  # where only the leave can fail
            self._log.failed_again(error)
        reason = HoldfastError(f"Member of group {self.settings.group!r} failed: {error!r}")
        self._session.fail(reason, boot_ms())
        self._pump()

    async def _end(self) -> None:
        self._pump()
        if self._callback_task is None:
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
    def _leave_unconfirmed(self) -> bool:
        """Whether it stopped as asked, but for the answer to its leave: that heals by itself."""
        return self._error is not None and self._error is self._session.unconfirmed

    def _raise_what_stopped_it(self) -> None:
        if self._error is not None:
            self._has_raised = True
            raise self._error
