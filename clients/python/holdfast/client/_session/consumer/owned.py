"""What the member owns: a table with a row for each partition, each under a grant of its own.

A row comes with a grant and goes only when the user has let go of the partition, or has heard that
it was lost. Until then the group is told that it is owned: whoever has it next must not meet code
of ours. What goes and comes back is another row, under another grant. Ownership ends by the clock
alone as well (S11). All times are boot-clock milliseconds that come in as arguments; what the user
must hear goes into the session's outputs. Rows are values and are replaced, never changed, so
threads of the user can look while the loop's thread works.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.client._session.lease import Lease
from holdfast.client._session.session_io import Assigned, Lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.session_io import Grant, Output, Settings, TopicPartition


class Hold(enum.Enum):
    """Where one partition stands between the group and the user."""

    GRANTED = enum.auto()
    """Given, and the user does not know: an old holder may still act (S12)."""
    HELD = enum.auto()
    """The user has been told to own it."""
    LETTING_GO = enum.auto()
    """The user has been asked to let go of it and owns it until it has."""
    LOST = enum.auto()
    """Ownership has ended by itself, and the user has not heard all of it yet."""


_HOLDING: Final = frozenset({Hold.HELD, Hold.LETTING_GO})
_GOING: Final = frozenset({Hold.LETTING_GO, Hold.LOST})


@dataclass(frozen=True, slots=True)
class Row:
    """One partition."""

    hold: Hold
    grant: Grant
    """The grant under which the user holds it, or will."""
    begins_at_ms: int
    """Before this moment an old holder may act, so that it is not held (S12)."""

    @property
    def held(self) -> bool:
        """Whether the user owns it, as far as the lease allows."""
        return self.hold in _HOLDING


class Owned:
    """The table, and the lease that limits acting on any of it."""

    def __init__(self, settings: Settings, outputs: list[Output]) -> None:
        self.lease = Lease(settings.session_timeout_ms, settings.rebalance_timeout_ms)
        self.loss: LostReason | None = None
        """Why something was lost last."""
        self.version = 0
        """Moves with every change that the group has to hear of."""
        self._rows: dict[TopicPartition, Row] = {}
        self._outputs = outputs

    # --- looks at the table, from any thread -----------------------------------------------------

    @property
    def held(self) -> dict[TopicPartition, Grant]:
        """What the user was told to own, each under its grant."""
        return {name: row.grant for name, row in self._table() if row.held}

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        """Whether the user holds it under this very grant and may act on it at `now_ms` (S11)."""
        row = self._rows.get(partition)
        return row is not None and row.held and row.grant is grant and self.lease.holds(now_ms)

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Return whether the user has been asked to let go of it, and has not done so yet."""
        row = self._rows.get(partition)
        return row is not None and row.hold in _GOING

    def holds(self, now_ms: int) -> bool:
        """Return whether the member may act on anything: by the clock, not by the last update."""
        return self.lease.holds(now_ms) and any(row.held for _, row in self._table())

    @property
    def known(self) -> frozenset[TopicPartition]:
        """All that the group must take for owned: by name."""
        return frozenset(self._rows)

    @property
    def going(self) -> frozenset[TopicPartition]:
        """What the user has been asked to let go of, or has yet to hear the loss of."""
        return frozenset(name for name, row in self._table() if row.hold in _GOING)

    def grant_of(self, partition: TopicPartition) -> Grant | None:
        """Return the grant under which it is owned; None: it is not, or not any more."""
        row = self._rows.get(partition)
        return None if row is None or row.hold in _GOING else row.grant

    @property
    def begins_at_ms(self) -> int | None:
        """When the clock alone will let the user own something more."""
        waiting = [row.begins_at_ms for _, row in self._table() if row.hold is Hold.GRANTED]
        return min(waiting, default=None)

    @property
    def ends_at_ms(self) -> int | None:
        """When the clock alone will end ownership; None: nothing is owned."""
        return self.lease.ends_at_ms if any(row.held for _, row in self._table()) else None

    def _table(self) -> tuple[tuple[TopicPartition, Row], ...]:
        return tuple(self._rows.items())  # in one step: the loop's thread may change it meanwhile

    # --- what comes ------------------------------------------------------------------------------

    def take(self, grants: Mapping[TopicPartition, Grant], begins_at_ms: int, now_ms: int) -> None:
        """Add what the group has given, and tell the user of what may be held by now."""
        for name, grant in grants.items():
            self._rows[name] = Row(Hold.GRANTED, grant, begins_at_ms)
        self.version += 1
        self.begin(now_ms)

    def begin(self, now_ms: int) -> None:
        """Have the user own what was given and may be held by now: an output for each grant."""
        begun: dict[Grant, list[TopicPartition]] = {}
        told: dict[Grant, Grant] = {}
        for name, row in self._table():
            if row.hold is Hold.GRANTED and now_ms >= row.begins_at_ms:
                # Equal grants are told as one, which is the very one that `may_act` is asked with.
                grant = told.setdefault(row.grant, row.grant)
                self._rows[name] = replace(row, hold=Hold.HELD, grant=grant)
                begun.setdefault(grant, []).append(name)
        for grant, names in begun.items():
            self._outputs.append(Assigned(tuple(sorted(names)), grant))

    # --- what goes -------------------------------------------------------------------------------

    def ask(self, names: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Count these as being let go of; return those that the user holds, sorted.

        What the user does not know yet goes at once.
        """
        told = []
        for name in sorted(names):
            row = self._rows[name]
            if row.hold is Hold.GRANTED:
                del self._rows[name]
            elif row.hold is Hold.HELD:
                self._rows[name] = replace(row, hold=Hold.LETTING_GO)
                told.append(name)
        return tuple(told)

    def lose(self, names: Iterable[TopicPartition], reason: LostReason) -> bool:
        """End ownership of these by itself; return whether the user has to hear of it."""
        gone = []
        for name in sorted(names):
            row = self._rows[name]
            if row.hold is Hold.GRANTED:
                del self._rows[name]
            elif row.held:
                self._rows[name] = replace(row, hold=Hold.LOST)
                gone.append(name)
        if gone:
            self.loss = reason
            self._outputs.append(Lost(tuple(gone), reason, after_revoked=True))
        return bool(gone)

    def drop(self) -> None:
        """Forget what the user has let go of, or has heard the loss of."""
        for name in self.going:
            del self._rows[name]
        self.version += 1

    def acknowledge(self) -> None:
        """Tell the group once more what is owned: the user has heard of what is new."""
        self.version += 1
