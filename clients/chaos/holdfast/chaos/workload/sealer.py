"""An operator who has the log sealed now and then, whatever goes wrong meanwhile (S22).

At times by two calls at once, and the leader sets boundaries by itself as well. Only on a cluster
that the run has started: segments stay for ever. Knows no fault.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.chaos.workload.callers import RecordedAdmin
from holdfast.client import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials

_PAUSE_S: Final = (2.0, 15.0)


class Sealer:
    """Asks for boundaries until it is stopped."""

    def __init__(
        self, endpoints: Sequence[str], tls: Credentials, recorder: Recorder, seed: int
    ) -> None:
        self._admin = RecordedAdmin(endpoints, tls, recorder, "sealer")
        self._random = Random(f"{seed} sealer")  # noqa: S311 - a seed gives the same pauses
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop when the calls under way have ended; raises what is no answer, once."""
        self._ending.set()
        task, self._task = self._task, None
        try:
            if task is not None:
                await task
        finally:
            await self._admin.close()

    async def _run(self) -> None:
        while not await self._ended_within(self._random.uniform(*_PAUSE_S)):
            count = self._random.choice((1, 1, 2))
            await asyncio.gather(*(self._seal() for _ in range(count)))

    async def _ended_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _seal(self) -> None:
        try:
            await self._admin.seal_log()
        except HoldfastError:
            return  # the answer of a broken cluster: it is in the history, and judged
