"""Member for asyncio: how a program makes it, lives with it, and ends it.

Heartbeats run in tasks of their own, apart from the user's coroutines; but code that *blocks* the
event loop blocks them too, and then ownership ends by the clock (S11). Blocking work belongs into
`asyncio.to_thread`, or use `holdfast.client.sync`, whose heartbeats have a thread of their own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self, TypeAlias
from uuid import uuid4

from holdfast.client._rpc.clock import boot_ms
from holdfast.client._rpc.fork_guard import check_process, is_this_process
from holdfast.client._session.member_session import SubscribingSession
from holdfast.client._session.session_io import (
    Assigned,
    Lost,
    Revoke,
    Stage,
)
from holdfast.client._translate.arguments import check_callables
from holdfast.client._translate.call_arguments import Offset
from holdfast.client._translate.client_assignor import client_assignors_of, said_by
from holdfast.client._translate.member_settings import UNSET, Unset, settings_of, subscription_of
from holdfast.client.aio.connection import Connection, connection_of
from holdfast.client.aio.partition import Partition
from holdfast.client.aio.performing import Performing
from holdfast.client.errors import Fenced

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from holdfast.client._rpc.channel import Credentials
    from holdfast.client._session.session_io import (
        GroupProtocol,
    )
    from holdfast.client._translate.acknowledged import OnAcknowledged
    from holdfast.client._translate.client_assignor import ClientAssignor
    from holdfast.coordinator.assignors import Assignor

    Listener: TypeAlias = Callable[[Sequence[Partition]], Awaitable[None] | None]
    Handler: TypeAlias = Callable[[Partition], Awaitable[None]]
    Offsets: TypeAlias = Mapping[tuple[str, int], Offset | int]
    Positions: TypeAlias = Callable[[Sequence[Partition]], Awaitable[Offsets] | Offsets]


class Member(Performing):
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
    member can carry beside others; the weighted assignor asks. In the heartbeat protocol
    `client_assignors` compute the targets of a group while all its members have them. In place of
    endpoints a `Connection` can be given, which members of one process share; then what describes
    the connection (`credentials`, `client_id`, `on_acknowledged`) belongs to it.

    Raises ValueError or TypeError for an argument that no member can live by, and a call for one
    that it cannot be asked for. A refusal that cannot heal (`Fenced`, above all) stops the member;
    `owned`, `run`, `leave`, `restart` and `wait_stopped` raise it, `health` and the logger tell it.
    The end of the block raises it, too, unless the program has had it before. A member is used
    once, and only in the process that made it: else RuntimeError.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, each with a default
        self,
        endpoints: str | Sequence[str] | Connection,
        *,
        group: str,
        topics: Iterable[str] | Unset = UNSET,
        topic_regex: str | Unset = UNSET,
        instance_id: str | None = None,
        protocol: GroupProtocol = "classic",
        session_timeout_ms: int | Unset = UNSET,
        rebalance_timeout_ms: int = 300_000,
        heartbeat_interval_ms: int | Unset = UNSET,
        topics_refresh_ms: int | Unset = UNSET,
        start_timeout_ms: int | None = 30_000,
        assignors: Sequence[Assignor] | Unset = UNSET,
        takeover: Literal["now", "wait"] = "now",
        weight: int | Unset = UNSET,
        rack_id: str | Unset = UNSET,
        server_assignor: str | Unset = UNSET,
        work_timeout_ms: int | Unset = UNSET,
        absence_ms: int | Unset = UNSET,
        client_assignors: Sequence[ClientAssignor] | Unset = UNSET,
        credentials: Credentials = None,
        client_id: str | None = None,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        positions: Positions | None = None,
        on_acknowledged: OnAcknowledged | None = None,
    ) -> None:
        own = UNSET if client_assignors is UNSET else client_assignors_of(client_assignors)
        settings = settings_of(
            protocol,
            str(uuid4()),
            {
                "group": group,
                "topics": topics,
                "topic_regex": topic_regex,
                "instance_id": instance_id,
                "session_timeout_ms": session_timeout_ms,
                "rebalance_timeout_ms": rebalance_timeout_ms,
                "heartbeat_interval_ms": heartbeat_interval_ms,
                "topics_refresh_ms": topics_refresh_ms,
                "start_timeout_ms": start_timeout_ms,
                "assignors": assignors,
                "takeover": takeover,
                "weight": weight,
                "rack_id": rack_id,
                "server_assignor": server_assignor,
                "work_timeout_ms": work_timeout_ms,
                "absence_ms": absence_ms,
                "client_assignors": own,
            },
        )
        check_callables(
            on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost, positions=positions
        )
        super().__init__(
            settings,
            connection_of(endpoints, credentials, client_id, on_acknowledged),
            {Assigned: on_assigned, Revoke: on_revoked, Lost: on_lost},
            positions,
            () if own is UNSET else own,
            shared=isinstance(endpoints, Connection),
        )

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
            self._raise_if_refused()
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
        """Wait until the member has stopped; raises what stopped it, if that was not asked for.

        Raises a refusal, too, out of which only `subscribe` leads.
        """
        self._check_started()
        self._handlers.check_outside(self._callback_task, "wait_stopped")
        while not self._stopped.is_set():
            await self._settled.wait()
            self._raise_if_refused()
        self._raise_what_stopped_it()

    def _check_in_loop(self, call: str) -> None:
        """Refuse a call from another thread, such as that of a plain `assign`.

        There what the session decides, a heartbeat say, could not be sent, and would be lost.
        """
        own, running = self._callback_task, None
        with suppress(RuntimeError):
            running = asyncio.get_running_loop()
        if own is not None and own.get_loop() is not running:
            raise RuntimeError(
                f"{call} is called in another thread than the member's. Call it in the event loop: "
                f"loop.call_soon_threadsafe(member.{call}); or use holdfast.client.sync."
            )

    # --- the heartbeat protocol ------------------------------------------------------------------

    def subscribe(
        self, topics: Iterable[str] | Unset = UNSET, *, topic_regex: str | Unset = UNSET
    ) -> None:
        """Want these topics from now on, by name, by pattern, or both; the group hears it at once.

        Also after a refusal, such as that of a pattern, and after `unsubscribe`. Of the heartbeat
        protocol: else RuntimeError. Raises ValueError and TypeError for what cannot be wanted.
        """
        wanted = subscription_of(topics, topic_regex)
        self._subscribing("subscribe").subscribe(wanted, boot_ms())
        self._settled.clear()
        self._pump()

    def unsubscribe(self) -> None:
        """Be in no group from now on, until `subscribe`; `on_revoked` runs first. As `subscribe`.

        A static member's place is kept for a session, as by `restart`.
        """
        self._subscribing("unsubscribe").unsubscribe(boot_ms())
        self._pump()

    def working(self) -> None:
        """Say that the program works: within each `work_timeout_ms`, else the member leaves."""
        self._subscribing("working").working(boot_ms())
        self._pump()

    def update_assignors(self) -> None:
        """Tell the group what the client assignors say by now: `metadata`, `version`, `reason`.

        What is new asks for another target. Raises as `subscribe`.
        """
        session = self._subscribing("update_assignors")
        session.say_of_assignors(said_by(self._computing.assignors), boot_ms())
        self._pump()

    def _subscribing(self, call: str) -> SubscribingSession:
        self._check_started()
        self._check_in_loop(call)
        if isinstance(self._session, SubscribingSession):
            return self._session
        raise RuntimeError(f'{call} is of the heartbeat protocol: Member(protocol="consumer").')
