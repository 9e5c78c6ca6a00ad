"""Hands over what fired to be judged again by `decide` (S9): heard first, probed, and in turns.

What fired reaches its actor only after the loop has drained its sockets and a quorum probe begun
after it fired has succeeded: a heartbeat that has arrived is heard first, and a leader that nobody
follows any more expires nobody. Sessions wait for each other: thousands that end together must
not hold up other groups, whose own deadlines go past them. Knows no clock but the one it is given.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.commands import DeadlineFired
from holdfast.coordinator.volatile import SESSION
from holdfast.raft.api import RaftError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from holdfast.coordinator.deadlines import Due
    from holdfast.server.replica_like import ReplicaLike

logger = logging.getLogger(__name__)

SESSIONS_A_TURN: Final = 16
"""How many are handed over before the loop serves its sockets again."""
PAUSE_S: Final = 0.015
"""Between two such turns: a thousand a second end, which takes about a third of the loop."""
OTHERS_SHARE: Final = 3
"""By how much longer the pause becomes than the loop was late: it has other work, or too much."""


class Firing:
    """What fired and is not yet judged."""

    def __init__(
        self,
        replica: ReplicaLike,
        submit: Callable[[DeadlineFired], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._replica, self._submit, self._now_ms = replica, submit, now_ms
        self._sessions: list[Due] = []
        self._ending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def fire(self, due: Sequence[Due]) -> None:
        """These fired just now."""
        self._sessions += [each for each in due if each.key.kind == SESSION]
        others = [each for each in due if each.key.kind != SESSION]
        if others:
            self._begin(self._hand_over(others, 0.0))
        if self._sessions and (self._ending is None or self._ending.done()):
            self._ending = self._begin(self._end_sessions())

    def clear(self) -> None:
        """Judge nothing of what fired: the lead is lost."""
        self._sessions.clear()
        self._ending = None
        for task in self._tasks:
            task.cancel()

    def _begin(self, handing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(handing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end_sessions(self) -> None:
        while self._sessions:
            due, self._sessions = self._sessions, []
            await self._hand_over(due, PAUSE_S)

    async def _hand_over(self, due: Sequence[Due], pause_s: float) -> None:
        """Hear what has arrived, make sure of a majority, then propose (S9 a, b)."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            await self._replica.quorum_probe()
        except RaftError as error:
            logger.info("%d deadlines fired, but this node leads no more: %s", len(due), error)
            return
        for first in range(0, len(due), SESSIONS_A_TURN):
            for fired in due[first : first + SESSIONS_A_TURN]:
                self._submit(DeadlineFired(fired.group_id, fired.key, fired.arming, fired.renewals))
            await self._leave_to_others(pause_s)

    async def _leave_to_others(self, pause_s: float) -> None:
        """Pause; longer if the loop came back late: what was handed over is folded there, too."""
        began_ms = self._now_ms()
        await asyncio.sleep(pause_s)
        late_ms = self._now_ms() - began_ms - 1000 * pause_s
        await asyncio.sleep(OTHERS_SHARE * max(0.0, late_ms) / 1000)
