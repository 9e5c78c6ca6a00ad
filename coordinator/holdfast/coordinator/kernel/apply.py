"""Applies a committed entry: guard each part, give events positions, fold them (S1-S3, S8).

Every replica does this alike, from the log alone. A part that was decided in another term, or on
another version of its group, is skipped whole; the leader decides it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from holdfast.coordinator.kernel.evolve import Fold
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import GroupCreated, LogEntry, Part, Record
from holdfast.coordinator.model.ids import GroupId, Position
from holdfast.coordinator.model.state import Group, State

_new: Final[Any] = tuple.__new__
"""Makes a NamedTuple of its fields; its own constructor, a Python function, takes twice as long."""


class Skipped(NamedTuple):
    """A part that was not applied."""

    place: int
    """Its place in the entry, from 0."""
    group_id: GroupId
    rule: str
    """Why: `S1` (term), `S2` (version) or `S6` (impossible)."""


class Step(NamedTuple):
    """One record that was applied, between its group before and after it.

    None: there was no group, or is none any more; or the event is of the cluster.
    """

    before: Group[Any] | None
    record: Record
    after: Group[Any] | None


class Applied(NamedTuple):
    """What an entry did, record by record, so that projections can follow it."""

    state: State
    steps: tuple[Step, ...]
    skipped: tuple[Skipped, ...]
    parts: tuple[int, ...] = ()
    """The places in the entry of the parts that were applied, in order."""

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of all applied parts, in the order of the log."""
        return tuple([step.record for step in self.steps])


def apply_entry(state: State, index: int, term: int, entry: LogEntry) -> Applied:
    """Apply the entry at `index`, whose Raft term is `term`.

    A part with an event that cannot be true is skipped and its group quarantined, on every node
    alike: one bad event must not stop all three (S6).
    """
    fold = Fold(begin_entry(state, index, entry))
    steps: list[Step] = []
    skipped: list[Skipped] = []
    parts: list[int] = []
    for place, part in enumerate(entry.parts):
        fold.open(part.group_id)
        rule = guard(fold, term, part)
        if rule is None:
            try:
                steps += apply_part(fold, Position(index, len(steps)), entry.wall_time_ms, part)
            except Exception as error:  # noqa: BLE001 - whatever it is, all nodes have the same one
                fold.drop()
                fold.quarantine(index, f"entry {index} cannot be applied: {error}")
                rule = "S6"
            fold.keep()
        if rule is None:
            parts.append(place)
        else:
            skipped.append(Skipped(place, part.group_id, rule))
    return Applied(fold.state(), tuple(steps), tuple(skipped), tuple(parts))


def begin_entry(state: State, index: int, entry: LogEntry) -> State:
    """Return the state at the start of an entry; log time never runs backwards (S8)."""
    if index <= state.applied_index:
        raise InvariantBroken("S4", f"entry {index} after {state.applied_index}")
    log_time_ms = max(state.log_time_ms, entry.log_time_ms)
    return state._replace(applied_index=index, log_time_ms=log_time_ms)


def guard(fold: Fold, term: int, part: Part) -> str | None:
    """Return the rule by which the part that is open must be skipped; None: apply it."""
    if part.term != term:
        return "S1"
    return "S2" if part.expected_version != fold.version else None


def apply_part(fold: Fold, first: Position, wall_time_ms: int, part: Part) -> list[Step]:
    """Apply the part that is open; `first` is the position of its first record.

    The group's version becomes the entry's index (S2). Raises InvariantBroken as the fold does.
    """
    steps: list[Step] = []
    (index, ordinal), seq = first, fold.seq
    group_id, log_time_ms = part.group_id, fold.log_time_ms
    for event, cause, principal, request_id in part.events:
        seq = 1 if isinstance(event, GroupCreated) else seq + 1
        position, before = _new(Position, (index, ordinal)), fold.group
        record = _new(Record, (
            position, group_id, seq, log_time_ms, wall_time_ms, cause, principal, request_id, event
        ))  # fmt: skip
        fold.add(record)
        steps.append(_new(Step, (before, record, fold.group)))
        ordinal += 1
    fold.count(index, seq)
    return steps


def replay(state: State, records: Iterable[Record]) -> State:
    """Apply records of the event log, which were applied before, to a snapshot."""
    fold = Fold(state)
    index, log_time_ms = state.applied_index, state.log_time_ms
    for record in records:
        fold.open(record.group_id)
        fold.add(record)
        fold.count(record.position.index, record.group_seq)
        fold.keep()
        index = max(index, record.position.index)
        log_time_ms = max(log_time_ms, record.log_time_ms)
    return fold.state()._replace(applied_index=index, log_time_ms=log_time_ms)
