"""Members for threads: the names and methods of members for asyncio, without asyncio for the user.

A shell over the aio shell and not over the session: one set of calls, walks and streams. Callbacks
run in a thread of their own for each member.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast

from holdfast.client import aio
from holdfast.client._rpc.caller import CALL_TIMEOUT_MS
from holdfast.client._rpc.fork_guard import check_process, is_this_process, this_process
from holdfast.client._translate.arguments import check_callables
from holdfast.client._translate.member_settings import UNSET, Unset
from holdfast.client.aio.handlers import would_wait_for_itself
from holdfast.client.sync.connection import Connection
from holdfast.client.sync.partition import ThreadPartition
from holdfast.client.sync.threads import THREAD, UserThread

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from holdfast.client._session.health import Health
    from holdfast.client._session.session_io import TopicPartition
    from holdfast.client._translate.call_arguments import Offset
    from holdfast.client.aio.options import MemberOptions

    Listener = Callable[[Sequence[ThreadPartition]], None]
    Offsets = Mapping[tuple[str, int], Offset | int]
    Positions = Callable[[Sequence[ThreadPartition]], Offsets]
    Handler = Callable[[ThreadPartition], None]


ResultT = TypeVar("ResultT")


class _Inner(aio.Member):
    """The member in the loop's thread: its handlers are threads, which cannot be cancelled."""

    _makes = ThreadPartition
    _cancels_handlers = False

    def __init__(self, callback_thread: UserThread, *args: Any, **options: Any) -> None:  # noqa: ANN401 - aio.Member's own
        self._callback_thread = callback_thread
        super().__init__(*args, **options)

    async def _call_back(self, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - of the user's code
        """Call it in the callbacks' thread; a coroutine goes on in the loop, as one of `assign`."""
        made = await self._callback_thread.call(act)
        return await made if inspect.isawaitable(made) else made


class Member:
    """A member of a group: `with Member(...) as member`; arguments and errors as `aio.Member`.

    Callbacks are plain functions. They and handlers may call `commit` and `begin_restart`; `leave`,
    `restart` and `wait_stopped` wait for them, and so are a RuntimeError there.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str] | Connection,
        *,
        group: str,
        topics: Iterable[str] | Unset = UNSET,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        positions: Positions | None = None,
        **options: Unpack[MemberOptions],
    ) -> None:
        check_callables(
            on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost, positions=positions
        )
        self._callback_thread = UserThread("holdfast-callbacks")
        self._workers: set[UserThread] = set()
        where = endpoints.shared if isinstance(endpoints, Connection) else endpoints

        def make() -> _Inner:
            return _Inner(
                self._callback_thread,
                where,
                group=group,
                topics=topics,
                on_assigned=self._in_thread(on_assigned),
                on_revoked=self._in_thread(on_revoked),
                on_lost=self._in_thread(on_lost),
                positions=self._in_thread(positions),
                **options,
            )

        self._process = this_process()
        self._member = THREAD.make(make)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not is_this_process(self._process):
            return  # a copy, in the child of a fork: the membership is its parent's to end
        try:
            THREAD.run(self._member.__aexit__(kind, error, traceback))
        finally:
            self._callback_thread.close()

    @property
    def instance_id(self) -> str | None:
        """The instance id; None: a dynamic member."""
        return self._member.instance_id

    @property
    def member_id(self) -> str:
        """The id that the group knows this member by; empty before the first answer."""
        return self._member.member_id

    @property
    def generation(self) -> int:
        """The generation that the member is in; -1: in none."""
        return self._member.generation

    @property
    def assignment(self) -> tuple[ThreadPartition, ...]:
        """The partitions that are owned at this moment."""
        return cast("tuple[ThreadPartition, ...]", self._member.assignment)

    def health(self) -> Health:
        """Where the member stands, for a health probe."""
        return self._member.health()

    @property
    def stopped(self) -> bool:
        """Whether it has stopped, and calls no code of the program any more."""
        return self._member.stopped

    def start(self) -> None:
        """Begin to join; returns at once."""
        THREAD.make(self._member.start)

    def owned(self) -> Iterator[ThreadPartition]:
        """Yield each partition as it is assigned, for as long as the member lives."""
        while (partition := self.next_owned()) is not None:
            yield partition

    def next_owned(self) -> ThreadPartition | None:
        """Wait for the next assigned partition; None: the member has left."""
        partition: ThreadPartition | None
        partition = cast("ThreadPartition | None", THREAD.run(self._member.next_owned()))
        return partition

    def run(self, handler: Handler) -> None:
        """Run `handler(partition)` in a thread for each owned partition; as `aio.Member.run`.

        A thread cannot be cancelled: the handler of a lost partition is told so, and awaited before
        the member goes on with that partition.
        """
        check_callables(handler=handler)

        async def handle(partition: ThreadPartition) -> None:
            thread = UserThread(f"holdfast {partition.topic}/{partition.number}")
            self._workers.add(thread)
            try:
                await thread.call(partial(handler, partition))
            finally:
                self._workers.remove(thread)
                thread.close()

        THREAD.run(self._member.run(cast("Any", handle)))

    def leave(self) -> None:
        """Leave the group for good: the partitions go to others at once."""
        self._check_outside("leave")
        THREAD.run(self._member.leave())

    def restart(self) -> None:
        """Stop for a planned restart: a static member keeps its place, a dynamic one leaves."""
        self._check_outside("restart")
        THREAD.run(self._member.restart())

    def begin_restart(self) -> None:
        """Begin what `restart` does and return at once; also from a signal handler."""
        check_process(self._process, "Member")
        self._member._check_started()  # noqa: SLF001 - the same class in two shells
        THREAD.soon(self._member.begin_restart)

    def wait_stopped(self) -> None:
        """Wait until the member has stopped; raises what stopped it, if that was not asked for."""
        self._check_outside("wait_stopped")
        THREAD.run(self._member.wait_stopped())

    def subscribe(
        self, topics: Iterable[str] | Unset = UNSET, *, topic_regex: str | Unset = UNSET
    ) -> None:
        """Want these topics from now on (heartbeat protocol); as `aio.Member.subscribe`."""
        THREAD.make(partial(self._member.subscribe, topics, topic_regex=topic_regex))

    def unsubscribe(self) -> None:
        """Be in no group from now on, until `subscribe`; `on_revoked` runs first."""
        THREAD.make(self._member.unsubscribe)

    def working(self) -> None:
        """Say that the program works: within each `work_timeout_ms`, else the member leaves."""
        THREAD.make(self._member.working)

    def update_assignors(self) -> None:
        """Tell the group what the client assignors say by now; as `aio.Member.update_assignors`."""
        THREAD.make(self._member.update_assignors)

    def commit(
        self,
        offsets: Mapping[tuple[str, int], Offset | int],
        *,
        request_id: str | None = None,
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> None:
        """Commit offsets under the present generation."""
        work = self._member.commit(offsets, request_id=request_id, timeout_ms=timeout_ms)
        THREAD.run(work)

    def committed(
        self, partitions: Iterable[tuple[str, int]] = (), *, timeout_ms: int = CALL_TIMEOUT_MS
    ) -> dict[TopicPartition, Offset]:
        """Return committed offsets of the partitions (none named: all); others are left out."""
        return THREAD.run(self._member.committed(partitions, timeout_ms=timeout_ms))

    def _check_outside(self, call: str) -> None:
        if any(thread.is_current() for thread in (self._callback_thread, *self._workers)):
            raise RuntimeError(would_wait_for_itself(call))

    def _in_thread(
        self, listener: Callable[[Any], ResultT] | None
    ) -> Callable[[Sequence[Any]], Coroutine[Any, Any, ResultT]] | None:
        if listener is None:
            return None

        async def listen(partitions: Sequence[ThreadPartition]) -> ResultT:
            return await self._callback_thread.call(partial(listener, partitions))

        return listen
