"""Pass deadlines that fired to `decide`, which judges them again (S9): after a probe, at a pace.

A deadline that fired reaches its actor only after the loop has drained its sockets and a quorum
probe has succeeded that began after the deadline fired: so a heartbeat that has arrived counts
first, and a deposed leader expires nobody. Ended sessions are submitted at a pace, group after
group: thousands that end together must not delay other work, and deadlines of other kinds overtake
them. Knows no clock but the one it is given.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.model.commands import DeadlineFired
from holdfast.coordinator.model.volatile import REBALANCE, SESSION
from holdfast.raft.api import RaftError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.coordinator.model.volatile import DeadlineKey
    from holdfast.runtime.ports import ReplicaLike
    from holdfast.runtime.time.deadline_table import Due

    Heard = Callable[[Sequence[tuple[GroupId, MemberId]]], Awaitable[None]]

logger = logging.getLogger(__name__)

SESSIONS_A_TURN: Final = 16
"""Ended sessions that are submitted before the loop serves its sockets again."""
PAUSE_S: Final = 0.015
"""Pause between two such turns, in seconds: about 1,000 sessions a second, a third of the loop."""
OTHERS_SHARE: Final = 3
"""Back-off factor: when the loop overslept by x ms, pause this many times x longer."""
LATE_MS_MAX: Final = 100
"""Bound of x, in ms: a process that stood still for an hour must end sessions soon, too."""


class DeadlineDispatch:
    """Deadlines that fired and are not judged yet."""

    def __init__(
        self,
        replica: ReplicaLike,
        submit: Callable[[DeadlineFired], None],
        now_ms: Callable[[], int],
        heard: Heard | None = None,
    ) -> None:
        """`heard`: waits until the arrived heartbeats of these members are processed."""
        self._replica, self._submit, self._now_ms = replica, submit, now_ms
        self._heard = heard
        self._fired: list[Due] = []
        """Sessions that ended and wait for a probe."""
        self._vouched: dict[GroupId, deque[Due]] = {}
        self._waiting: set[tuple[GroupId, DeadlineKey]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def fire(self, due: Sequence[Due]) -> None:
        """Dispatch deadlines that fired just now."""
        sessions = [each for each in due if each.key.kind == SESSION]
        for of_members in (True, False):
            others = [
                each
                for each in due
                if each.key.kind != SESSION and (each.key.kind == REBALANCE) == of_members
            ]
            if others:
                self._begin(self._hand_over_at_once(others, by_heartbeat=of_members))
        self._fired += sessions
        self._waiting.update((each.group_id, each.key) for each in sessions)
        if sessions and (self._ending is None or self._ending.done()):
            self._ending = self._begin(self._end_sessions())

    def holds(self, group_id: GroupId, key: DeadlineKey) -> bool:
        """Return whether this session has ended and waits for its turn."""
        return (group_id, key) in self._waiting

    def clear(self) -> None:
        """Drop everything that fired: the leadership is lost."""
        self._fired.clear()
        self._vouched.clear()
        self._waiting.clear()
        self._ending = None
        for task in self._tasks:
            task.cancel()

    def _begin(self, handing: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(handing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _hand_over_at_once(self, due: Sequence[Due], *, by_heartbeat: bool) -> None:
        """Submit deadlines of rebalances without a pace: members wait for them.

        `by_heartbeat`: a heartbeat of its member keeps such a deadline, and may have arrived.
        """
        members = [(each.group_id, each.key.member_id) for each in due] if by_heartbeat else []
        if await self._is_followed(due, members):
            for first in range(0, len(due), SESSIONS_A_TURN):
                self._hand_over(due[first : first + SESSIONS_A_TURN])
                await asyncio.sleep(0)

    async def _end_sessions(self) -> None:
        while self._fired or self._vouched:
            await self._vouch()
            self._hand_over(self._turn())
            await self._leave_to_others()

    async def _vouch(self) -> None:
        count = len(self._fired)
        if not count:
            return
        members = [(each.group_id, each.key.member_id) for each in self._fired]
        followed = await self._is_followed(self._fired[:count], members)
        due, self._fired = self._fired[:count], self._fired[count:]
        for each in due:
            if followed:
                self._vouched.setdefault(each.group_id, deque()).append(each)
            else:
                self._waiting.discard((each.group_id, each.key))

    async def _is_followed(
        self, due: Sequence[Due], members: Sequence[tuple[GroupId, MemberId]]
    ) -> bool:
        """Process heartbeats that arrived, those of these members fully; then probe (S9 a, b)."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if self._heard is not None:
            await self._heard(members)
        try:
            await self._replica.quorum_probe()
        except RaftError as error:
            logger.info("%d deadlines fired, but this node leads no more: %s", len(due), error)
            return False
        return True

    def _turn(self) -> list[Due]:
        """Take sessions of one group, then of the next: no group waits for all of another's."""
        taken: list[Due] = []
        while self._vouched and len(taken) < SESSIONS_A_TURN:
            group_id = next(iter(self._vouched))
            queue = self._vouched.pop(group_id)
            while queue and len(taken) < SESSIONS_A_TURN:
                taken.append(queue.popleft())
            if queue:
                self._vouched[group_id] = queue
        self._waiting.difference_update((each.group_id, each.key) for each in taken)
        return taken

    def _hand_over(self, due: Iterable[Due]) -> None:
        for fired in due:
            self._submit(DeadlineFired(fired.group_id, fired.key, fired.arming, fired.renewals))

    async def _leave_to_others(self) -> None:
        """Pause; longer if the loop overslept, for it also applies what was submitted."""
        began_ms = self._now_ms()
        await asyncio.sleep(PAUSE_S)
        late_ms = self._now_ms() - began_ms - 1000 * PAUSE_S
        await asyncio.sleep(OTHERS_SHARE * min(max(0.0, late_ms), LATE_MS_MAX) / 1000)
