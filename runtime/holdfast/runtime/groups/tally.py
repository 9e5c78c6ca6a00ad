"""What the state takes up now, kept up with it: the sum that ceilings are held against.

Leader-local and derived, like deadlines: never on the log, in no snapshot and in no digest. It
follows the evolved state by difference, so it is right after a restart, a snapshot install and a
failover, whatever it has seen before. Groups are decided each on its own; what one of them has
decided and has not on the log yet is claimed here at once, so that all others count it, and no two
can fill the same room.

Far below the ceilings what was claimed stands for what became of it, and the difference is looked
at once in a while; near one of them, whenever it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import NOTHING, PENDING_BYTES, Usage, difference

if TYPE_CHECKING:
    from holdfast.coordinator.model.ids import GroupId

ENTRIES_MAX: Final = 64
"""So many entries may be applied before their difference is looked at."""
_NEAR: Final = (7, 8)
"""What part of a ceiling is near it."""


class _Claim(NamedTuple):
    """What one group adds to the state: what is on its way, and member ids that wait to be used."""

    growth: Usage
    handed_out: int

    def usage(self) -> Usage:
        if not self.handed_out:
            return self.growth
        handed_out = Usage(members=self.handed_out, state_bytes=self.handed_out * PENDING_BYTES)
        return self.growth.plus(handed_out)


_NO_CLAIM: Final = _Claim(NOTHING, 0)


class Tally:
    """The sum over a state, over what is on its way, and over member ids that were handed out."""

    def __init__(self) -> None:
        self._state = State()
        self._counted = NOTHING
        self._landed = NOTHING
        self._entries = 0
        self._claims: dict[GroupId, _Claim] = {}
        self._claimed = NOTHING

    def follow(self, state: State) -> None:
        """Count what has changed since the state that was followed last."""
        self._counted = self._counted.plus(difference(self._state, state))
        self._state, self._landed, self._entries = state, NOTHING, 0

    def used(self, state: State, ceilings: Usage = NOTHING) -> Usage:
        """What is taken up, with what is on its way; `state` is the newest evolved one.

        Exact near one of the ceilings; else it may lack what grew unasked since it was exact.
        """
        if self._entries < ENTRIES_MAX:
            about = self._counted.plus(self._landed).plus(self._claimed)
            if not _near(about, ceilings):
                return about
        self.follow(state)
        return self._counted.plus(self._claimed)

    def applied(self, state: State) -> None:
        """Another entry is part of the state, which may not be asked about for long."""
        self._entries += 1
        if self._entries >= ENTRIES_MAX:
            self.follow(state)

    def claim(self, group_id: GroupId, growth: Usage, handed_out: int) -> None:
        """Count what a group has on its way, in place of what it claimed before.

        `handed_out`: member ids that wait to be used; each counts as the member that it may become.
        """
        made = _Claim(growth, handed_out)
        known = self._claims.get(group_id, _NO_CLAIM)
        if made == known:
            return
        self._claimed = self._claimed.plus(made.usage()).minus(known.usage())
        if made == _NO_CLAIM:
            del self._claims[group_id]
        else:
            self._claims[group_id] = made

    def landed(self, group_id: GroupId) -> None:
        """What the group had on its way is part of the state now."""
        known = self._claims.get(group_id)
        if known is not None:
            self._landed = self._landed.plus(known.growth)
            self.claim(group_id, NOTHING, known.handed_out)

    def clear(self) -> None:
        """Nothing is on its way any more: this node does not lead."""
        self._claims.clear()
        self._claimed = NOTHING


def _near(used: Usage, ceilings: Usage) -> bool:
    part, whole = _NEAR
    return any(each * whole >= most * part for each, most in zip(used, ceilings, strict=True))
