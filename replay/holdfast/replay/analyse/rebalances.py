"""Rebalances of one group, with cause and length, and how its members came and went.

In a group of the heartbeat protocol each epoch is a rebalance, from its raise until all members own
what its target gives them; one that another epoch overtakes never was in force.
Plain Python over records, like `ownership`. Times are log time in milliseconds (S8).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from holdfast.coordinator.model.consumer_events import EpochRaised, TargetStored
from holdfast.coordinator.model.events import (
    AssignmentStored,
    Event,
    GenerationStarted,
    GroupDeleted,
    GroupEmptied,
    RebalanceStarted,
    Record,
)
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.membership import (
    ADVANCED,
    JOINED,
    RELEASED,
    REPLACED,
    SUBSCRIBED,
    line_of,
)
from holdfast.replay.analyse.convergence import Convergence
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
    generation: int  # or the group epoch
    joined_ms: int | None  # until the join phase closed, or the target was there; None: never
    stable_ms: int | None  # from the start until the assignment was in force; None if it never was


class Turn(NamedTuple):
    """A member came, went, or was replaced under its instance id."""

    group: str
    owner: str
    kind: str  # joined, swapped, released, or how it departed (`Departures`)
    at_ms: int


_OF_MEMBERS: Final = frozenset({"joined", "subscription", "assignor", "left", "removed", "expired"})
"""The causes of epochs that the record before tells the member of."""
_TURNS: Final = {JOINED: "joined", SUBSCRIBED: "joined", REPLACED: "swapped", RELEASED: "released"}


@dataclass(slots=True)
class RebalanceTimeline:
    """Folds one group's records. `generation` is that of the last closed join phase."""

    group: str
    owners: dict[MemberId, str] = field(default_factory=dict)
    pending: Rebalance | None = None
    generation: int = 0
    convergence: Convergence = field(default_factory=Convergence)
    """Of a group of the heartbeat protocol."""
    _turned: tuple[int, str] = (0, "")
    """The entry in which a member last came, went or spoke, and its name."""

    def ended(self, record: Record) -> Iterator[Rebalance]:
        """Take in a record; yield the rebalances that it ends or supersedes. Call `turns` first."""
        match record.event:
            case RebalanceStarted() as event:
                yield from self.close()
                self.pending = self._opened(event, record)
            case GenerationStarted(generation=generation):
                self._joined(generation, record)
            case AssignmentStored():
                yield from self._stable(record)
            case GroupEmptied(generation=generation):
                self._joined(generation, record)
                yield from self.close()
            case GroupDeleted():
                yield from self.close()
                self.owners.clear()
                self.convergence = Convergence()
            case event:
                yield from self._towards_target(event, record)

    def _towards_target(self, event: Event, record: Record) -> Iterator[Rebalance]:
        """Take in an event of the heartbeat protocol, or one that is no part of a rebalance."""
        self.convergence.follow(event)
        if isinstance(event, EpochRaised):
            yield from self.close()
            self.generation = event.epoch
            index, name = self._turned
            of_member = event.cause in _OF_MEMBERS and index == record.position.index
            who = name if of_member else ""
            self.pending = self._begun(event.cause, who, record)
            if not self.convergence.members:
                yield from self.close()  # nobody is left who could be given anything
        elif isinstance(event, TargetStored):
            self._joined(event.epoch, record)
        if self.pending is not None and self.convergence.reached(self.pending.generation):
            yield from self._stable(record)

    def _stable(self, record: Record) -> Iterator[Rebalance]:
        if self.pending is not None:
            stable_ms = record.log_time_ms - self.pending.start_ms
            self.pending = self.pending._replace(stable_ms=stable_ms)
        yield from self.close()

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
        named = whom if line.kind == ADVANCED else (*whom, *line.named(event))
        if named:
            self._turned = (record.position.index, self.owners.get(named[0], named[0]))
        yield from (self._turn(member_id, kind, record) for member_id in whom)

    def _opened(self, event: RebalanceStarted, record: Record) -> Rebalance:
        who = self.owners.get(event.member_id, event.member_id)
        return self._begun(event.reason, who, record)

    def _begun(self, reason: str, who: str, record: Record) -> Rebalance:
        (index, ordinal), cause = record.position, record.cause
        return Rebalance(
            group=self.group,
            entry=index,
            ordinal=ordinal,
            start_ms=record.log_time_ms,
            reason=reason,
            who=who,
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
