"""The client for threads: the same names and methods as `aio`, without asyncio for the user.

One thread of this module runs an event loop for all members and admins of the process, so
heartbeats go on while the user's threads block. Callbacks run in a thread of their own for each
member. A shell over the aio shell and not over the session: one set of calls, walks and streams.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar, Unpack

from holdfast.client import aio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from holdfast.client.admin import Results
    from holdfast.client.channel import Credentials
    from holdfast.client.partition import Offset, Partition
    from holdfast.client.protocol import TopicPartition
    from holdfast.client.witness import Witness
    from holdfast.coordinator.assignors import Assignor
    from holdfast.v1 import admin_pb2

    Listener = Callable[[Sequence[Partition]], None]

ResultT = TypeVar("ResultT")
_END_SECONDS_MAX = 5.0


class _LoopThread:
    """An event loop in a daemon thread, made when it is first needed and kept for the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="holdfast-client", daemon=True)

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread.start()
                atexit.register(self._end)
            return self._loop

    def _serve(self) -> None:
        self.loop().run_forever()

    def _end(self) -> None:
        """Stop with the interpreter: it would wait two seconds for gRPC under a running loop."""
        self.loop().call_soon_threadsafe(self.loop().stop)
        self._thread.join(_END_SECONDS_MAX)

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run in the loop's thread and wait; what it raises is raised here."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # a KeyboardInterrupt here must not leave the work running there
            raise


_THREAD = _LoopThread()


async def _made(make: Callable[[], ResultT]) -> ResultT:
    return make()


class AdminOptions(TypedDict, total=False):
    """What `Admin` takes by name; meanings and defaults as in `aio.Admin`."""

    credentials: Credentials
    client_id: str | None
    timeout_ms: int
    on_acknowledged: Witness | None


class MemberOptions(TypedDict, total=False):
    """What `Member` takes by name beside callbacks; meanings and defaults as in `aio.Member`."""

    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    topics_refresh_ms: int
    assignors: Sequence[Assignor]
    takeover: Literal["now", "wait"]
    credentials: Credentials
    client_id: str | None
    on_acknowledged: Witness | None


class Member:
    """A member of a group: `with Member(...) as member`; arguments and errors as `aio.Member`.

    Callbacks are plain functions; they may call `commit`, but not `leave` or `restart`, which wait
    for them.
    """

    def __init__(
        self,
        endpoints: str | Sequence[str],
        *,
        group: str,
        topics: Iterable[str],
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        **options: Unpack[MemberOptions],
    ) -> None:
        self._callbacks = ThreadPoolExecutor(1, thread_name_prefix="holdfast-callbacks")

        def make() -> aio.Member:
            return aio.Member(
                endpoints,
                group=group,
                topics=topics,
                on_assigned=self._in_thread(on_assigned),
                on_revoked=self._in_thread(on_revoked),
                on_lost=self._in_thread(on_lost),
                **options,
            )

        self._member = _THREAD.run(_made(make))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _THREAD.run(self._member.__aexit__(kind, error, traceback))
        self._callbacks.shutdown()

    @property
    def member_id(self) -> str:
        """The id that the group knows this member by; empty before the first answer."""
        return self._member.member_id

    @property
    def generation(self) -> int:
        """The generation that the member is in; -1: in none."""
        return self._member.generation

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The partitions that are owned at this moment."""
        return self._member.assignment

    def start(self) -> None:
        """Begin to join; returns at once."""
        _THREAD.run(_made(self._member.start))

    def owned(self) -> Iterator[Partition]:
        """Each partition as it is assigned, for as long as the member lives."""
        while (partition := self.next_owned()) is not None:
            yield partition

    def next_owned(self) -> Partition | None:
        """The next assigned partition; None: the member has left."""
        return _THREAD.run(self._member.next_owned())

    def leave(self) -> None:
        """Leave the group for good: the partitions go to others at once."""
        _THREAD.run(self._member.leave())

    def restart(self) -> None:
        """Stop for a planned restart: a static member keeps its place, a dynamic one leaves."""
        _THREAD.run(self._member.restart())

    def wait_stopped(self) -> None:
        """Wait until the member has stopped; raises what stopped it, if that was not asked for."""
        _THREAD.run(self._member.wait_stopped())

    def commit(
        self,
        offsets: Mapping[tuple[str, int], Offset | int],
        *,
        request_id: str | None = None,
        timeout_ms: int = 30_000,
    ) -> None:
        """Record how far the work has come, under the present generation."""
        work = self._member.commit(offsets, request_id=request_id, timeout_ms=timeout_ms)
        _THREAD.run(work)

    def committed(
        self, partitions: Iterable[tuple[str, int]] = (), *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, Offset]:
        """Committed offsets of the partitions (none named: of all); never committed: left out."""
        return _THREAD.run(self._member.committed(partitions, timeout_ms=timeout_ms))

    def _in_thread(
        self, listener: Listener | None
    ) -> Callable[[Sequence[Partition]], Coroutine[Any, Any, None]] | None:
        if listener is None:
            return None

        async def listen(partitions: Sequence[Partition]) -> None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._callbacks, listener, partitions)

        return listen


class Admin:
    """`with Admin(endpoints) as admin`; arguments, results and errors as `aio.Admin`."""

    def __init__(self, endpoints: str | Sequence[str], **options: Unpack[AdminOptions]) -> None:
        self._admin = _THREAD.run(_made(lambda: aio.Admin(endpoints, **options)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        _THREAD.run(self._admin.close())

    def describe_groups(self, *groups: str) -> dict[str, admin_pb2.DescribedGroup]:
        """State, members and assignments; a group that cannot be described says why itself."""
        return _THREAD.run(self._admin.describe_groups(*groups))

    def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[admin_pb2.ListedGroup]:
        """All groups, or those in these states and of these types."""
        return _THREAD.run(self._admin.list_groups(states=states, types=types))

    def delete_groups(self, *groups: str) -> Results:
        """Delete groups without members, with their offsets."""
        return _THREAD.run(self._admin.delete_groups(*groups))

    def remove_members(
        self,
        group: str,
        *,
        instance_ids: Iterable[str] = (),
        member_ids: Iterable[str] = (),
        everyone: bool = False,
        reason: str | None = None,
    ) -> Results:
        """Remove members in one step: one rebalance however many they are."""
        return _THREAD.run(
            self._admin.remove_members(
                group,
                instance_ids=instance_ids,
                member_ids=member_ids,
                everyone=everyone,
                reason=reason,
            )
        )

    def trigger_rebalance(self, group: str, *, reason: str | None = None) -> None:
        """Open a join phase, as if the group leader had asked for it."""
        _THREAD.run(self._admin.trigger_rebalance(group, reason=reason))

    def create_topics(self, topics: Mapping[str, int]) -> Results:
        """Create topics with so many partitions each."""
        return _THREAD.run(self._admin.create_topics(topics))

    def create_partitions(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to so many partitions each; counts only grow."""
        return _THREAD.run(self._admin.create_partitions(counts))

    def delete_topics(self, *topics: str) -> Results:
        """Delete topics."""
        return _THREAD.run(self._admin.delete_topics(*topics))

    def list_topics(self, *names: str) -> dict[str, int]:
        """Partition counts by topic; of all topics when none is named."""
        return _THREAD.run(self._admin.list_topics(*names))

    def describe_settings(
        self, *names: str, group: str | None = None
    ) -> list[admin_pb2.DescribedSetting]:
        """Settings on the log with unit, default and meaning; of one group if named."""
        return _THREAD.run(self._admin.describe_settings(*names, group=group))

    def alter_settings(
        self, settings: Mapping[str, str | None], *, group: str | None = None
    ) -> Results:
        """Set settings on the log; None gives one back to its default."""
        return _THREAD.run(self._admin.alter_settings(settings, group=group))

    def describe_cluster(self) -> admin_pb2.DescribeClusterResponse:
        """The nodes, who leads, how far the log has come."""
        return _THREAD.run(self._admin.describe_cluster())

    def transfer_leadership(self, node: str = "") -> str:
        """Hand the leadership to a node (empty: to the one best suited); who leads then."""
        return _THREAD.run(self._admin.transfer_leadership(node))
