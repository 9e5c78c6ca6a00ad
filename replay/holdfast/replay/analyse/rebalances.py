"""Rebalances of one group, with cause and length, and how its members came and went.

Plain Python over records, like `ownership`. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.coordinator.model.events import (
    AssignmentStored,
    GenerationStarted,
    GroupDeleted,
    GroupEmptied,
    RebalanceStarted,
    Record,
)
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.membership import JOINED, RELEASED, REPLACED, line_of
from holdfast.replay.analyse.departures import departures


class Rebalance(NamedTuple):
    """One rebalance."""

    group: str
    entry: int  # position of the record that started it
    ordinal: int
    start_ms: int
    reason: str
    who: str  # instance or member id of the member that caused it; "" if none did
    rule: str  # its cause as recorded
    command: str
    generation: int
    joined_ms: int | None  # length of the join phase; None if it did not close
    stable_ms: int | None  # from the start until the assignment was in force; None if it never was


class Turn(NamedTuple):
    """A member came, went, or was replaced under its instance id."""

    group: str
    owner: str
    kind: str  # joined, swapped, released, or how it departed (`Departures`)
    at_ms: int


_TURNS: Final = {JOINED: "joined", REPLACED: "swapped", RELEASED: "released"}


@dataclass(slots=True)
class RebalanceTimeline:
    """Folds one group's records. `generation` is that of the last closed join phase."""

    group: str
    owners: dict[MemberId, str] = field(default_factory=dict)
    pending: Rebalance | None = None
    generation: int = 0

    def ended(self, record: Record) -> Iterator[Rebalance]:
        """Take in a record; yield the rebalances that it ends or supersedes. Call `turns` first."""
        match record.event:
            case RebalanceStarted() as event:
                yield from self.close()
                self.pending = self._opened(event, record)
            case GenerationStarted(generation=generation):
                self._joined(generation, record)
            case AssignmentStored():
                if self.pending is not None:
                    stable_ms = record.log_time_ms - self.pending.start_ms
                    self.pending = self.pending._replace(stable_ms=stable_ms)
                yield from self.close()
            case GroupEmptied(generation=generation):
                self._joined(generation, record)
                yield from self.close()
            case GroupDeleted():
                yield from self.close()
                self.owners.clear()
            case _:  # no part of a rebalance
                return

    def close(self) -> Iterator[Rebalance]:
        """Yield the rebalance that is under way, as far as it got."""
        if self.pending is not None:
            yield self.pending
            self.pending = None

    def turns(self, record: Record) -> Iterator[Turn]:
        """Yield how a record's members came or went; keeps their names."""
        event, line = record.event, line_of(record.event)
        for member_id in line.came(event):
            self.owners[member_id] = line.instance_id(event) or member_id
        if kind := _TURNS.get(line.kind):
            whom = line.came(event) or line.fenced(event)
        else:
            whom, kind = departures(event)
        yield from (self._turn(member_id, kind, record) for member_id in whom)

    def _opened(self, event: RebalanceStarted, record: Record) -> Rebalance:
        (index, ordinal), cause = record.position, record.cause
        return Rebalance(
            group=self.group,
            entry=index,
            ordinal=ordinal,
            start_ms=record.log_time_ms,
            reason=event.reason,
            who=self.owners.get(event.member_id, event.member_id),
            rule=cause.rule,
            command=cause.command,
            generation=self.generation,
            joined_ms=None,
            stable_ms=None,
        )

    def _joined(self, generation: int, record: Record) -> None:
        self.generation = generation
        if self.pending is not None:
            taken_ms = record.log_time_ms - self.pending.start_ms
            self.pending = self.pending._replace(generation=generation, joined_ms=taken_ms)

    def _turn(self, member_id: MemberId, kind: str, record: Record) -> Turn:
        owner = self.owners.get(member_id, member_id)
        return Turn(self.group, owner, kind, record.log_time_ms)
