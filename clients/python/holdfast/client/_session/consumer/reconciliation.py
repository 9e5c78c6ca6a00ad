"""From what the member owns to what it is to own: which partitions go, and which come.

The target is what the group gave last. Letting go comes first, then the assignor hears what it says
beside the partitions, then they are taken up (KIP-848). When which of them happens is session.py's
matter. No IO, no clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.client._session import loss

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client._session.consumer.owned import Owned
    from holdfast.client._session.session_io import (
        Grant,
        Settings,
        ToldByAssignor,
        TopicPartition,
    )


class Reconciliation:
    """The target, and the steps towards it."""

    def __init__(self, settings: Settings, owned: Owned) -> None:
        self.target: Mapping[TopicPartition, Grant] = {}
        """What the group gave last, each under the grant under which it would be held."""
        self._owned = owned
        self._waits = settings.takeover == "wait"
        self._begins_at_ms = 0
        self._aimed: Mapping[TopicPartition, Grant] = {}
        self._coming: frozenset[TopicPartition] = frozenset()
        self._unsaid: tuple[int, ToldByAssignor] | None = None
        self._said: tuple[int, ToldByAssignor] | None = None
        """What an assignor has heard last, with the epoch of it."""

    def aim(self, target: Mapping[TopicPartition, Grant], now_ms: int) -> None:
        """Take a target from an answer."""
        self.target = target
        if self._waits:
            waits_ms = max((grant.predecessor_ms for grant in target.values()), default=0)
            self._begins_at_ms = max(self._begins_at_ms, now_ms + waits_ms)

    def hear(self, told: ToldByAssignor, epoch: int) -> None:
        """Keep what the assignor of the target says until it is its turn; once for each epoch."""
        self._unsaid = None if (epoch, told) == self._said else (epoch, told)

    def take_told(self) -> list[ToldByAssignor]:
        """Take what assignors are to hear now: also that the target is of another one."""
        if self._unsaid is None:
            return []
        before, self._said, self._unsaid = self._said, self._unsaid, None
        told = self._said[1]
        news = [told] if told.assignor else []
        if before is not None and before[1].assignor not in {"", told.assignor}:
            left = replace(told, assignor=before[1].assignor, metadata=None, version=0)
            news.insert(0, left)
        return news

    def forget(self) -> None:
        """Aim at nothing: the member is in no group."""
        self._unsaid = None
        self.target = self._aimed = {}
        self._coming = frozenset()
        self._begins_at_ms = 0

    @property
    def is_newer(self) -> bool:
        """Whether the target differs from the one that the callbacks under way are for."""
        return _tokens(self.target) != _tokens(self._aimed)

    @property
    def going(self) -> frozenset[TopicPartition]:
        """What is owned, and not to be owned any more."""
        owned = self._owned
        return frozenset(name for name in owned.known - owned.going if name not in self.target)

    @property
    def coming(self) -> dict[TopicPartition, Grant]:
        """What is to be owned, and is not."""
        known = self._owned.known
        return {name: grant for name, grant in self.target.items() if name not in known}

    def lose_regranted(self) -> None:
        """End what was given anew under another token: somebody may have had it in between."""
        owned, again = self._owned, []
        for name in owned.known & self.target.keys():
            grant = owned.grant_of(name)
            if grant is not None and grant.fencing_token != self.target[name].fencing_token:
                again.append(name)
        owned.lose(again, loss.REGRANTED)

    def lose_running(self, *, all_of_it: bool) -> None:
        """End what a callback is running for that has lost its purpose.

        What was to be let go of cannot be worked on again by whoever was told so. What is new is
        kept if the target still has it, unless `all_of_it` ends.
        """
        owned = self._owned
        coming = frozenset(name for name in self._coming & owned.known)
        kept = frozenset() if all_of_it else coming & self.target.keys()
        owned.lose((owned.going | coming) - kept, loss.SUPERSEDED)

    def let_go(self, *, everything: bool = False) -> tuple[TopicPartition, ...]:
        """Begin the first half; return what the user is to be asked for."""
        owned = self._owned
        self._aimed, self._coming = self.target, frozenset()
        return owned.ask(owned.known - owned.going if everything else self.going)

    def take_up(self, now_ms: int) -> None:
        """Begin the second half: the user owns what comes."""
        coming = self.coming
        self._aimed = self.target
        self._coming = frozenset(coming) | (self._coming & self._owned.known)
        self._owned.take(coming, self._begins_at_ms, now_ms)

    def taken_up(self) -> None:
        """End the second half."""
        self._coming = frozenset()
        self._owned.acknowledge()


def _tokens(grants: Mapping[TopicPartition, Grant]) -> dict[TopicPartition, int]:
    return {name: grant.fencing_token for name, grant in grants.items()}
