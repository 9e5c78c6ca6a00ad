"""Run the client assignors of one member (KIP-848), apart from everything else that it does.

A plain function runs in a daemon thread, so neither a long computation nor one that never ends
holds up heartbeats, or the end of the process. One computation at a time: a thread that is not
wanted any more cannot be stopped, so the next one waits for it. Knows no call and no session.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.client._translate.client_assignor import read_picture, write_targets
from holdfast.client.errors import AssignmentFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.client._session.session_io import Compute, Settings, ToldByAssignor
    from holdfast.client._translate.client_assignor import ClientAssignor
    from holdfast.v1.group_pb2 import InstallAssignmentRequestMember

_LOGGER = logging.getLogger("holdfast.client")
SLOW_S: Final = 10.0
"""Time after which a computation is logged."""


class _Ended(NamedTuple):
    """How a function ended; an error is a value here, for no future takes each kind of it."""

    result: Any
    error: BaseException | None


class Computing:
    """The computations of one member.

    `computed` gets the number of a Compute and what is to be handed in, `failed` its number and why
    there is nothing.
    """

    def __init__(
        self,
        settings: Settings,
        assignors: Sequence[ClientAssignor],
        computed: Callable[[int, Sequence[InstallAssignmentRequestMember]], None],
        failed: Callable[[int, AssignmentFailed], None],
    ) -> None:
        self.assignors = tuple(assignors)
        self._settings = settings
        self._computed, self._failed = computed, failed
        self._turn = asyncio.Lock()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._thread: asyncio.Future[_Ended] | None = None

    def start(self, wanted: Compute) -> None:
        """Have the assignor make a target, once an earlier computation has ended."""
        self._tasks[wanted.number] = asyncio.create_task(self._compute(wanted))

    def stop(self, number: int) -> None:
        """Drop what a computation makes; a coroutine is cancelled."""
        if number in self._tasks:
            self._tasks[number].cancel()

    def close(self) -> None:
        """Drop all of them."""
        for number in tuple(self._tasks):
            self.stop(number)

    def on_assignment(self, told: ToldByAssignor) -> Callable[[], Any] | None:
        """Return the call by which an assignor hears what the target says to this member."""
        assignor = self._named(told.assignor)
        if assignor is None:
            return None
        by_topic: dict[str, list[int]] = {}
        for topic, number in told.partitions:
            by_topic.setdefault(topic, []).append(number)
        return lambda: assignor.on_assignment(by_topic, told.metadata, told.version)

    def _named(self, name: str) -> ClientAssignor | None:
        return next((each for each in self.assignors if each.name == name), None)

    async def _compute(self, wanted: Compute) -> None:
        watch = asyncio.get_running_loop().call_later(SLOW_S, self._slow, wanted.assignor)
        try:
            async with self._turn:
                members = await self._target(wanted)
        except AssignmentFailed as error:
            self._failed(wanted.number, error)
        except Exception as error:  # noqa: BLE001 - a defect here must not pass in silence
            self._failed(wanted.number, AssignmentFailed(f"The client has failed: {error!r}."))
        else:
            self._computed(wanted.number, members)
        finally:
            watch.cancel()
            self._tasks.pop(wanted.number, None)

    async def _target(self, wanted: Compute) -> Sequence[InstallAssignmentRequestMember]:
        """Make what is handed in. Raises AssignmentFailed, whatever the assignor does."""
        picture, assignor = wanted.picture, self._named(wanted.assignor)
        if assignor is None:
            raise AssignmentFailed(
                f"The group chose client assignor {wanted.assignor!r}, which this member does not "
                "have."
            )
        if self._thread is not None:
            await asyncio.wait([self._thread])
        members, counts = self._result(wanted, await self._in_thread(lambda: read_picture(picture)))
        if inspect.iscoroutinefunction(assignor.assign):
            ended = _called(lambda: assignor.assign(members, counts))
        else:
            ended = await self._in_thread(lambda: assignor.assign(members, counts))
        targets = self._result(wanted, ended)
        if inspect.isawaitable(targets):
            targets = self._result(wanted, await _awaited(targets))
        made: Sequence[InstallAssignmentRequestMember]
        made = self._result(wanted, await self._in_thread(lambda: write_targets(targets, picture)))
        return made

    def _result(self, wanted: Compute, ended: _Ended) -> Any:  # noqa: ANN401 - of the user's code
        if ended.error is None:
            return ended.result
        if isinstance(ended.error, AssignmentFailed):
            raise ended.error
        raise AssignmentFailed(
            f"Client assignor {wanted.assignor!r} failed on {len(wanted.picture.members)} members: "
            f"{ended.error!r}."
        ) from ended.error

    async def _in_thread(self, act: Callable[[], Any]) -> _Ended:
        """Call in a thread of its own; whoever waits may be cancelled, the thread goes on."""
        loop = asyncio.get_running_loop()
        self._thread = future = loop.create_future()

        def work() -> None:
            ended = _called(act)
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(future.set_result, ended)

        threading.Thread(target=work, name="holdfast-assignor", daemon=True).start()
        return await asyncio.shield(future)

    def _slow(self, name: str) -> None:
        settings = self._settings
        _LOGGER.warning(
            "Client assignor %r has made no target for %.0f s. The members of group %r keep what "
            "they have; when this member's rebalance timeout of %d ms is over, the service asks "
            "another one.",
            *(name, SLOW_S, settings.group, settings.rebalance_timeout_ms),
        )


def _called(act: Callable[[], Any]) -> _Ended:
    try:
        return _Ended(act(), None)
    except BaseException as error:  # noqa: BLE001 - the user's code; told by the member's logger
        return _Ended(None, error)


async def _awaited(work: Any) -> _Ended:  # noqa: ANN401 - the user's own
    """Await a coroutine of the user; its own cancellation is an error as any other."""
    try:
        return _Ended(await work, None)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _Ended(None, error)
    except Exception as error:  # noqa: BLE001 - the user's code; told by the member's logger
        return _Ended(None, error)
