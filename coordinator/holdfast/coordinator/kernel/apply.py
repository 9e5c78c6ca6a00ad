"""Applies a committed entry: guard each part, give events positions, fold them (S1-S3, S8).

Every replica does this alike, from the log alone. A part that was decided in another term, or on
another version of its group, is skipped whole; the leader decides it again.
"""

from __future__ import annotations

from typing import NamedTuple

from holdfast.coordinator.kernel.evolve import evolve
from holdfast.coordinator.kernel.group_types import new_group
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import GroupCreated, LogEntry, Part, Record
from holdfast.coordinator.model.ids import GroupId, Position
from holdfast.coordinator.model.state import State


class Skipped(NamedTuple):
    """A part that was not applied."""

    place: int
    """Its place in the entry, from 0."""
    group_id: GroupId
    rule: str
    """Why: `S1` (term), `S2` (version) or `S6` (impossible)."""


class Step(NamedTuple):
    """One record that was applied, between the states before and after it."""

    before: State
    record: Record
    after: State


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
    state = begin_entry(state, index, entry)
    steps: list[Step] = []
    skipped: list[Skipped] = []
    parts: list[int] = []
    for place, part in enumerate(entry.parts):
        rule = guard(state, term, part)
        if rule is not None:
            skipped.append(Skipped(place, part.group_id, rule))
            continue
        try:
            state, made = apply_part(state, Position(index, len(steps)), entry, part)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the same on every node
            state = _quarantine(state, index, part.group_id, error)
            skipped.append(Skipped(place, part.group_id, "S6"))
            continue
        steps.extend(made)
        parts.append(place)
    return Applied(state, tuple(steps), tuple(skipped), tuple(parts))


def _quarantine(state: State, index: int, group_id: GroupId, error: Exception) -> State:
    """Quarantine a group until an operator deletes it; the rest of the cluster goes on.

    The cluster's own part has no quarantine: a part that could not be applied is only skipped.
    """
    if not group_id:
        return state
    group = state.groups.get(group_id) or new_group(group_id)
    why = f"entry {index} cannot be applied: {error}"
    return state._replace(
        groups=state.groups.set(group_id, group._replace(quarantined=why, version=index))
    )


def begin_entry(state: State, index: int, entry: LogEntry) -> State:
    """Return the state at the start of an entry; log time never runs backwards (S8)."""
    if index <= state.applied_index:
        raise InvariantBroken("S4", f"entry {index} after {state.applied_index}")
    log_time_ms = max(state.log_time_ms, entry.log_time_ms)
    return state._replace(applied_index=index, log_time_ms=log_time_ms)


def guard(state: State, term: int, part: Part) -> str | None:
    """Return the rule by which a part must be skipped; None: apply it."""
    if part.term != term:
        return "S1"
    return "S2" if part.expected_version != state.version_of(part.group_id) else None


def apply_part(
    state: State, first: Position, entry: LogEntry, part: Part
) -> tuple[State, tuple[Step, ...]]:
    """Apply one part that the guard lets through; `first` is the position of its first record.

    The group's version becomes the entry's index (S2). Raises InvariantBroken as `evolve` does.
    """
    steps: list[Step] = []
    seq = _seq(state, part.group_id)
    for ordinal, proposed in enumerate(part.events, first.ordinal):
        seq = 1 if isinstance(proposed.event, GroupCreated) else seq + 1
        record = Record(
            Position(first.index, ordinal),
            part.group_id,
            seq,
            state.log_time_ms,
            entry.wall_time_ms,
            proposed.cause,
            proposed.principal,
            proposed.request_id,
            proposed.event,
        )
        after = evolve(state, record)
        steps.append(Step(state, record, after))
        state = after
    return _counted(state, part.group_id, first.index, seq), tuple(steps)


def replay(state: State, records: tuple[Record, ...]) -> State:
    """Apply records of the event log, which were applied before, to a snapshot."""
    for record in records:
        if record.position.index > state.applied_index:
            state = state._replace(applied_index=record.position.index)
        state = state._replace(log_time_ms=max(state.log_time_ms, record.log_time_ms))
        state = evolve(state, record)
        state = _counted(state, record.group_id, record.position.index, record.group_seq)
    return state


def _seq(state: State, group_id: GroupId) -> int:
    if not group_id:
        return state.cluster_seq
    group = state.groups.get(group_id)
    return group.seq if group else 0


def _counted(state: State, group_id: GroupId, index: int, seq: int) -> State:
    """Count the records of the cluster's own part; a group counts its own with each event."""
    return state if group_id else state._replace(cluster_version=index, cluster_seq=seq)
