"""Call `on_assigned`, `on_revoked` and `on_lost`, one after another, in the order of the session.

What is let go of is first committed at the `positions` that the user gives for it.

`owned` and the handlers of `run` show the same changes: handlers have ended before `on_revoked` or
`on_lost` is called. Knows no gRPC and sends nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING

from holdfast.client._session.session_io import (
    Assigned,
    Lost,
    Refused,
    Revoke,
    Stopped,
    ToldByAssignor,
)
from holdfast.client.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any, TypeAlias

    from holdfast.client._session.session_io import Output
    from holdfast.client.aio.handlers import Handlers
    from holdfast.client.aio.user_partitions import UserPartitions

    Listener: TypeAlias = Callable[[Any], Any]

_LOGGER = logging.getLogger("holdfast.client")
_NAMES = {Assigned: "on_assigned", Revoke: "on_revoked", Lost: "on_lost"}


class Callbacks:
    """A queue of the session's outputs, and the one task that calls the user's code for them.

    `revoked` is called when `on_revoked`, and all calls before it, have returned; `crash` with an
    exception of the user's code; `refused` when a Refused has its turn; `commit` commits the
    positions of what is let go of. `changed` is set when `owned` may have something new.
    """

    def __init__(
        self,
        partitions: UserPartitions[Any],
        handlers: Handlers,
        listeners: Mapping[type, Listener | None],
        *,
        revoked: Callable[[], None],
        crash: Callable[[Exception], None],
        refused: Callable[[], None],
        positions: Listener | None = None,
        commit: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        self._refused = refused
        self._positions = positions
        self._commit = commit
        self._revoked = revoked
        self._crash = crash
        self._partitions = partitions
        self._handlers = handlers
        self._listeners = listeners
        self._queue: asyncio.Queue[Output] = asyncio.Queue()
        self.changed = asyncio.Event()

    def put(self, output: Output) -> None:
        """Queue the callback for an output; handlers of partitions that go are told at once."""
        if isinstance(output, Revoke | Lost):
            self._partitions.warn(output)
        if isinstance(output, Lost):
            self._handlers.lost(output.partitions)
        self._queue.put_nowait(output)

    async def run(self) -> None:
        """Make all queued callbacks, until the session has stopped."""
        while not isinstance(output := await self._queue.get(), Stopped):
            if isinstance(output, Assigned | Revoke | Lost):
                await self._call_back(output)
            elif isinstance(output, ToldByAssignor):
                await self._call(self._listeners.get(ToldByAssignor), output, "on_assignment")
            elif isinstance(output, Refused):
                self._refused()

    async def _call_back(self, output: Assigned | Revoke | Lost) -> None:
        concerned = self._partitions.concerned(output)
        self._partitions.begin(output, concerned)
        if not isinstance(output, Assigned):
            await self._handlers.ended(partition.name for partition in concerned)
        if concerned and isinstance(output, Revoke):
            await self._commit_positions(concerned)
        if concerned or isinstance(output, Assigned):
            await self._call(self._listeners.get(type(output)), concerned, _NAMES[type(output)])
        self._partitions.finish(output, concerned)
        if isinstance(output, Revoke):
            self._revoked()
        self.changed.set()

    async def _commit_positions(self, concerned: Sequence[Any]) -> None:
        """Commit what is done of partitions that go; a refusal does not keep them."""
        offsets = await self._call(self._positions, concerned, "positions")
        if not offsets or self._commit is None:
            return
        try:
            await self._commit(offsets)
        except HoldfastError as error:
            _LOGGER.warning("The positions of what is let go of are not committed: %s", error)
        except (TypeError, ValueError) as error:  # no offsets: as if `positions` had raised it
            self._crash(error)

    async def _call(self, listener: Listener | None, concerned: Any, name: str) -> Any:  # noqa: ANN401 - what the user's code returns
        try:
            answer = listener(concerned) if listener is not None else None
            return await answer if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # the loop ends, and with it the member
            wrapped = RuntimeError(f"{name} was cancelled from inside: {error!r}")
            wrapped.__cause__ = error
            self._crash(wrapped)
        except Exception as error:  # noqa: BLE001 - the user's code; told and raised by the member
            self._crash(error)
        return None
