"""Asks the members of a group for a heartbeat, one by one, until one of them is heard.

While a group of the heartbeat protocol has no target, the heartbeat of any member brings one. To
ask all of them would be a burst for each departure. A member that is silent may be dead, and its
session not over yet, so the next one is asked soon. Does not know what is waited for.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.kernel.group_types import type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.coordinator.model.ids import GroupId, MemberId
    from holdfast.coordinator.model.state import State
    from holdfast.server.rpc.pushes.carriers import Carriers

    Later = Callable[[float, Callable[[], None]], asyncio.TimerHandle]
    """Calls a function after so many seconds."""

SILENT_S: Final = 0.2
"""How long a member is waited for that was asked, in seconds: many round trips."""


class _Round:
    """Whom a group was asked through since something is waited for."""

    __slots__ = ("asked", "timer", "waiting_for")

    def __init__(self) -> None:
        self.asked: set[MemberId] = set()
        self.waiting_for: MemberId = ""
        self.timer: asyncio.TimerHandle | None = None


class OneByOne:
    """Asks one carried member of each group that waits for a heartbeat."""

    def __init__(
        self,
        state: Callable[[], State],
        carriers: Carriers,
        ask: Callable[[GroupId, MemberId], None],
        later: Later | None = None,
    ) -> None:
        """`state`: gives the newest applied state. `ask`: pushes to a member of a group."""
        self._state, self._carriers, self._ask = state, carriers, ask
        self._later: Later = later or _later
        self._rounds: dict[GroupId, _Round] = {}

    def begin(self, group_id: GroupId, after_s: float = 0.0) -> None:
        """Ask for a heartbeat after so many seconds, unless one is asked for already."""
        if group_id in self._rounds:
            return
        self._rounds[group_id] = begun = _Round()
        if after_s > 0:
            begun.timer = self._later(after_s, lambda: self._go_on(group_id))
        else:
            self._go_on(group_id)

    def end(self, group_id: GroupId) -> None:
        """Ask nobody of this group any more: what was waited for is there, or is not coming."""
        asked = self._rounds.pop(group_id, None)
        if asked is not None:
            self._stop_waiting(group_id, asked)

    def end_all(self) -> None:
        """Ask nobody any more."""
        for group_id in tuple(self._rounds):
            self.end(group_id)

    def _go_on(self, group_id: GroupId) -> None:
        """Ask the next member that was not asked yet; end if there is none."""
        asked = self._rounds[group_id]
        self._stop_waiting(group_id, asked)
        found = self._next(group_id, asked)
        if found is None:
            del self._rounds[group_id]
            return
        asked.asked.add(found)
        asked.waiting_for = found
        self._carriers.await_heartbeat(group_id, found, lambda: self.end(group_id))
        asked.timer = self._later(SILENT_S, lambda: self._silent(group_id, found))
        self._ask(group_id, found)

    def _silent(self, group_id: GroupId, member_id: MemberId) -> None:
        self._carriers.silent(group_id, member_id)
        self._go_on(group_id)

    def _next(self, group_id: GroupId, asked: _Round) -> MemberId | None:
        group = self._state().groups.get(group_id)
        if group is None:
            return None
        members = type_of(group).members(group)
        every = self._carriers.of(group_id)
        return next((m for m in every if m not in asked.asked and m in members), None)

    def _stop_waiting(self, group_id: GroupId, asked: _Round) -> None:
        if asked.timer is not None:
            asked.timer.cancel()
        self._carriers.await_no_more(group_id, asked.waiting_for)


def _later(seconds: float, act: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, act)
