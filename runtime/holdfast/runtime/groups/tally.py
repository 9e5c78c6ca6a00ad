"""The usage of the state, kept up to date: the sum that is compared with ceilings.

It is leader-local and derived, like deadlines: never on the log, in no snapshot and in no digest.
It follows the applied state by difference, so it is right after a restart, a snapshot install and a
failover. Groups are decided independently; the growth that a group has decided and not on the log
yet is claimed here at once, so that all others count it, and no two groups use the same room.

Far below the ceilings a claim counts for the change that it became, and the difference is computed
from time to time; near a ceiling, at every call.
"""

from __future__ import annotations

from operator import ge
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.groups.usage import PENDING_BYTES, difference
from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import NOTHING, Usage

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import GroupId

ENTRIES_MAX: Final = 64
"""Entries that may be applied before their difference is computed."""
_NEAR: Final = (7, 8)
"""From this fraction of a ceiling on the usage is near it."""


class _Claim(NamedTuple):
    """What one group will add to the state: proposed growth, and unused member ids."""

    growth: Usage
    handed_out: int

    def usage(self) -> Usage:
        if not self.handed_out:
            return self.growth
        handed_out = Usage(members=self.handed_out, state_bytes=self.handed_out * PENDING_BYTES)
        return self.growth.plus(handed_out)


_NO_CLAIM: Final = _Claim(NOTHING, 0)


class Tally:
    """The sum over the state, over proposed growth, and over unused member ids."""

    def __init__(self) -> None:
        self._state = State()
        self._counted = NOTHING
        self._about = NOTHING  # with all claims, and with what landed since it was counted
        self._entries = 0
        self._claims: dict[GroupId, _Claim] = {}
        self._claimed = NOTHING
        self._ceilings, self._near = NOTHING, _near(NOTHING)

    def follow(self, state: State) -> None:
        """Count what has changed since the last state that was followed."""
        self._counted = self._counted.plus(difference(self._state, state, TYPES))
        self._state, self._entries = state, 0
        self._about = self._counted.plus(self._claimed)

    def used(self, state: State, ceilings: Usage = NOTHING) -> Usage:
        """Return the usage with all claims; `state` is the newest applied one.

        Exact near a ceiling; else it may lack growth that no group claimed since it was exact.
        """
        if ceilings is not self._ceilings:
            self._ceilings, self._near = ceilings, _near(ceilings)
        if self._entries >= ENTRIES_MAX or any(map(ge, self._about, self._near)):
            self.follow(state)
        return self._about

    def applied(self, state: State) -> None:
        """Count an applied entry; compute the difference if there were many."""
        self._entries += 1
        if self._entries >= ENTRIES_MAX:
            self.follow(state)

    def claim(self, group_id: GroupId, growth: Usage, handed_out: int) -> None:
        """Replace a group's claim by the growth that it has proposed now.

        `handed_out`: unused member ids; each counts as the member that it may become.
        """
        made = _Claim(growth, handed_out)
        known = self._claims.get(group_id, _NO_CLAIM)
        if made == known:
            return
        more = made.usage().minus(known.usage())
        self._claimed, self._about = self._claimed.plus(more), self._about.plus(more)
        if made == _NO_CLAIM:
            del self._claims[group_id]
        else:
            self._claims[group_id] = made

    def landed(self, group_id: GroupId) -> None:
        """Drop the growth that a group had claimed: it is part of the state now.

        The sum stays what it is until the next difference tells the growth exactly.
        """
        known = self._claims.pop(group_id, None)
        if known is None:
            return
        self._claimed = self._claimed.minus(known.growth)
        if known.handed_out:
            self._claims[group_id] = _Claim(NOTHING, known.handed_out)

    def clear(self) -> None:
        """Drop all claims: this node does not lead any more."""
        self._claims.clear()
        self._about, self._claimed = self._about.minus(self._claimed), NOTHING


def _near(ceilings: Usage) -> Usage:
    """Return from which usage on each ceiling is near."""
    part, whole = _NEAR
    return Usage(*(-(-most * part // whole) for most in ceilings))
