"""What a member for asyncio does by itself: it performs what the session decides.

It gives the session answers, failures and the time, and runs the callbacks; decides nothing. The
calls of the program are in member.py, but for those about offsets.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from holdfast.client._rpc.caller import CALL_TIMEOUT_MS
from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.fork_guard import check_process, this_process
from holdfast.client._rpc.heartbeat_stream import BEATS, carries
from holdfast.client._session.health import Health, health_of
from holdfast.client._session.member_session import make_session
from holdfast.client._session.session_io import (
    AssignorFailed,
    Cancel,
    Compute,
    Failure,
    Missing,
    Note,
    Send,
    Stage,
    StopComputing,
    ToldByAssignor,
)
from holdfast.client._translate.call_arguments import Offset
from holdfast.client.aio.callbacks import Callbacks
from holdfast.client.aio.commits import Commits
from holdfast.client.aio.computing import Computing
from holdfast.client.aio.handlers import Handlers
from holdfast.client.aio.member_log import MemberLog
from holdfast.client.aio.partition import Partition
from holdfast.client.aio.user_partitions import UserPartitions
from holdfast.client.errors import Fenced, HoldfastError
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from google.protobuf.message import Message

    from holdfast.client._session.member_session import SubscribingSession
    from holdfast.client._session.session_io import (
        Output,
        Response,
        Settings,
        TopicPartition,
    )
    from holdfast.client._translate.client_assignor import ClientAssignor
    from holdfast.client.aio.connection import Connection
    from holdfast.client.errors import AssignmentFailed


class Performing:
    """A member, without the calls that begin and end it."""

    _makes: type[Any] = Partition
    _cancels_handlers = True

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        listeners: Mapping[type, Callable[[Any], Any] | None],
        positions: Callable[[Any], Any] | None,
        assignors: Sequence[ClientAssignor] = (),
        *,
        shared: bool,
    ) -> None:
        self.settings = settings
        self._connection, self._shared = connection, shared
        self._caller = connection.caller
        self._process = this_process()
        self._session = make_session(settings, self._caller.ids)
        self._partitions: UserPartitions[Any] = UserPartitions(self._session, self._makes)
        self._handlers = Handlers(self._crash, cancels=self._cancels_handlers)
        self._callbacks = Callbacks(
            *(self._partitions, self._handlers),
            {**listeners, ToldByAssignor: self._told_by_assignor},
            revoked=self._revoked,
            crash=self._crash,
            refused=self._refused,
            positions=positions,
            commit=self.commit,
        )
        self._computing = Computing(settings, assignors, self._computed, self._not_computed)
        self._log = MemberLog(self._session)
        self._commits = Commits(self._session, self._caller, self._pump)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._callback_task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = asyncio.Event()
        self._settled = asyncio.Event()
        """Set when it has stopped, or was refused and waits for another subscription."""
        self._error: BaseException | None = None
        self._has_raised = self._fenced_commit = False

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
                case Compute():
                    self._computing.start(output)
                case StopComputing(number):
                    self._computing.stop(number)
                case Missing() | Note() | AssignorFailed():
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
        try:
            result = await self._attempt(send)
            if isinstance(result, Failure):
                self._session.failed(send.call, result, boot_ms())
            else:
                self._session.answered(send.call, cast("Response", result), boot_ms())
        except Exception as error:  # noqa: BLE001 - a defect here must not pass in silence
            self._crash(error)
        finally:
            self._tasks.pop(send.call, None)
        self._pump()

    async def _attempt(self, send: Send) -> Message | Failure:
        """Make a call once, on the way that it takes."""
        request, heartbeats = send.request, self._connection.heartbeats
        if isinstance(request, BEATS):
            heartbeats.listen(request.group_id, request.member_id, self._pushed)
            if carries(request):
                return await heartbeats.attempt(request, send.timeout_ms)
        return await self._caller.attempt(
            request,
            send.timeout_ms,
            elsewhere=send.elsewhere,
            on_sent=lambda: self._delivered(send.call),
        )

    def _computed(
        self, number: int, members: Sequence[group_pb2.InstallAssignmentRequestMember]
    ) -> None:
        cast("SubscribingSession", self._session).computed(number, members, boot_ms())
        self._pump()

    def _not_computed(self, number: int, error: AssignmentFailed) -> None:
        cast("SubscribingSession", self._session).not_computed(number, error, boot_ms())
        self._pump()

    def _told_by_assignor(self, told: ToldByAssignor) -> Any:  # noqa: ANN401 - may be awaited
        act = self._computing.on_assignment(told)
        return None if act is None else self._call_back(act)

    def _call_back(self, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - as above
        """Call code of the user where its callbacks run."""
        return act()

    async def _run_callbacks(self) -> None:
        """Make all callbacks; when this ends, the member has stopped."""
        try:
            await self._callbacks.run()
        except asyncio.CancelledError:
            self._session.abort(HoldfastError("The event loop ended before the member did."))
            raise
        finally:
            self._computing.close()
            self._error = self._error or self._session.error
            self._log.ended(self.health(), leave_unconfirmed=self._leave_unconfirmed)
            self._stopped.set()
            self._settled.set()
            self._callbacks.changed.set()

    def _revoked(self) -> None:
        """Tell the session that the callbacks up to a Revoke have returned (callbacks.py)."""
        self._session.revoked(boot_ms())
        self._pump()

    def _refused(self) -> None:
        """Let those who wait hear of a refusal: the callbacks before it have returned."""
        self._settled.set()
        self._callbacks.changed.set()

    def _raise_if_refused(self) -> None:
        if self._session.stage is Stage.FAILED and self._settled.is_set():
            self._has_raised = True
            raise self._session.error or HoldfastError("The group has refused the member.")

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
