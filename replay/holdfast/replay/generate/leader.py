"""A coordinator on a log that always commits: decides, folds, chains, as a leading node does.

It has the parts of a node that shape records, and nothing of what makes them durable on three
disks. Its time is what it is told. Knows no client and no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from holdfast.coordinator.kernel.apply import apply_entry
from holdfast.coordinator.kernel.decide import decide_all, on_leading
from holdfast.coordinator.model.commands import Command
from holdfast.coordinator.model.effects import Decision
from holdfast.coordinator.model.events import LogEntry, Part, Proposed, Record
from holdfast.coordinator.model.ids import GroupId, Position
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.volatile import Volatile
from holdfast.storage.codec.event_codec import (
    CHAIN_START,
    append_chain,
    chain_hash,
    encode_record,
)
from holdfast.storage.segments.segments import Row

BEGIN_MS: Final = 1_700_000_000_000
"""Log time of the first entry; any other would do, but not the clock's."""
NOBODY: Final = Volatile()


class Written(NamedTuple):
    """A record, and its bytes as the event log has them."""

    record: Record
    row: Row


class HistoryBroken(AssertionError):
    """The generator asked for something that the rules refuse: a mistake of this program."""


class Leader:
    """One leader after the other, on one log."""

    def __init__(self) -> None:
        self.state = State()
        self.term = 1
        self.now_ms = BEGIN_MS
        self.count = 0
        """How many records the log has."""
        self.whole = CHAIN_START
        """Head of the chain over all records (S3)."""
        self._volatile: dict[GroupId, Volatile] = {}
        self._heads: dict[GroupId, bytes] = {}
        self._wall_skew_ms = 0

    def group(self, group_id: GroupId) -> Group[Any] | None:
        """Return a group as it is now; None: it does not exist."""
        return self.state.groups.get(group_id)

    def volatile(self, group_id: GroupId) -> Volatile:
        """Return what this leader knows of a group beside the log."""
        return self._volatile.get(group_id, NOBODY)

    def take_over(self, group_id: GroupId) -> tuple[Proposed, ...]:
        """Do what a new leader does before it serves a group; no time for one that it serves.

        Groups that are not heard of are left out, whose deadlines nobody would see.
        """
        if group_id in self._volatile or group_id not in self.state.groups:
            return ()
        decision = on_leading(self.state, group_id)
        self._volatile[group_id] = decision.volatile
        return decision.events

    def decide(self, group_id: GroupId, commands: Sequence[Command]) -> Decision:
        """Decide a batch of one group, and adopt what is beside the log: it will be committed."""
        held = self.volatile(group_id)
        decision = decide_all(self.state, held, group_id, commands, self.now_ms)
        self._volatile[group_id] = decision.volatile
        return decision

    def commit(self, decided: Iterable[tuple[GroupId, tuple[Proposed, ...]]]) -> list[Written]:
        """Append an entry with the events of these groups, and apply it."""
        state, term = self.state, self.term
        parts = [Part(each, term, state.version_of(each), events) for each, events in decided]
        entry = LogEntry(self.now_ms, self.now_ms + self._wall_skew_ms, tuple(parts))
        applied = apply_entry(state, state.applied_index + 1, term, entry)
        if applied.skipped:
            raise HistoryBroken(f"a part cannot be applied: {applied.skipped}")
        self.state = applied.state
        self.count += len(applied.steps)
        return [self._chained(step.record) for step in applied.steps]

    def _chained(self, record: Record) -> Written:
        content, group_id = encode_record(record), record.group_id
        mine = self.whole = chain_hash(self.whole, content)
        if group_id:
            mine = chain_hash(self._heads.get(group_id, CHAIN_START), content)
            self._heads[group_id] = mine
        return Written(record, Row(record.position, append_chain(content, mine)))

    def fail_over(self, wall_skew_ms: int) -> None:
        """Another node leads: a new term, whose first entry leaves no record."""
        self.term += 1
        self._volatile.clear()
        self._wall_skew_ms = wall_skew_ms
        self.state = self.state._replace(applied_index=self.state.applied_index + 1)

    @property
    def last(self) -> Position:
        """The place of the last entry; its last record is at or below this one."""
        return Position(self.state.applied_index, (1 << 31) - 1)
