"""Retention: where the history is cut off, and the least that is kept of it (S24).

The leader looks at its segments and makes a checkpoint first; here it is decided whether the cut is
allowed now, by what is on the log: settings, boundaries, verified backups. Pure; knows no segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.model.events import BackupVerified, HistoryCut
from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.levels import too_low
from holdfast.coordinator.model.rejections import InvalidRequest
from holdfast.coordinator.model.replies import DoneReply
from holdfast.coordinator.model.text import truncate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import CutHistory, ReportBackup
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import State

NO_POSITION: Final = Position(0, 0)
_ORDINAL_MAX: Final = (1 << 32) - 1


RECORDS_A_CUT: Final = 2_000_000
"""The records of several segments are folded at once up to about so many: some minutes of work."""


class SealedPart(NamedTuple):
    """What retention looks at of a sealed segment."""

    last: Position
    last_ms: int
    """Log time of its last record."""
    records: int
    size: int
    """Its bytes on the disk of the node that asks."""


def cut(draft: Draft, command: CutHistory) -> None:
    """Cut the history off, unless something has come in between that forbids it."""
    if cut_at(draft.state) < command.last <= last_allowed(draft.state):
        draft.emit(HistoryCut(command.last, command.log_time_ms, command.digest), "S24")


def report_backup(draft: Draft, command: ReportBackup) -> DoneReply:
    """Note how far a verified backup reaches, if it is further than the others."""
    too_old = too_low(draft.state, BackupVerified, "a report of a backup")
    problem = too_old or _no_backup_of(draft.state, command)
    if problem is None and command.index > draft.state.backed_up:
        draft.emit(BackupVerified(command.index), "S24")
    return DoneReply(problem)


def _no_backup_of(state: State, command: ReportBackup) -> Rejection | None:
    """Refuse a backup that does not hold this cluster's own log."""
    if command.cluster_id != state.cluster_id:
        problem = f"the backup is of cluster {truncate(command.cluster_id)!r}"
        return InvalidRequest("cluster_id", f"{problem}, and this is {state.cluster_id!r}")
    if command.recovery_number != state.recovery_number:
        return InvalidRequest(
            "recovery_number",
            f"the backup is of recovery number {command.recovery_number}, and the cluster has "
            f"{state.recovery_number}: it was restored in between. Take a new backup",
        )
    if command.index > state.applied_index:
        problem = f"the backup ends at {command.index}, and the log at {state.applied_index}"
        return InvalidRequest("index", problem)
    return None


def cut_at(state: State) -> Position:
    """Return the last position that is history no more; 0.0: nothing was ever cut off."""
    return NO_POSITION if state.history_cut is None else state.history_cut.last


def last_allowed(state: State) -> Position:
    """Return the position behind which nothing may be cut off; 0.0: nothing may be.

    It is the last boundary; if a backup is required, no record that the last verified one lacks.
    """
    if too_low(state, HistoryCut, "a cut of the history"):
        return NO_POSITION
    if settings.of_cluster(state).history_requires_backup:
        return min(state.sealed, Position(state.backed_up, _ORDINAL_MAX))
    return state.sealed


def due(state: State, sealed: Sequence[SealedPart], now_ms: int) -> Position | None:
    """Return where to cut; None: nothing is due.

    `sealed`: the node's segments in the order of the log. `now_ms`: log time now (S8). Each
    segment is cut off as a whole: if its last record is too old, or as long as all together are too
    large, and never one with a record that is younger than the least age.
    """
    return _due(state, sealed, now_ms, last_allowed(state))


def off(state: State) -> bool:
    """Return whether no setting says that history is ever deleted."""
    bounds = settings.of_cluster(state)
    return bounds.history_age_ms_max < 0 and bounds.history_bytes_max < 0


def hindrance(state: State, sealed: Sequence[SealedPart], now_ms: int) -> str:
    """Say what on the log forbids a cut that the settings ask for; empty: nothing does.

    `sealed`, `now_ms`: as for `due`.
    """
    if off(state) or _due(state, sealed, now_ms, last_allowed(state)) is not None:
        return ""
    if _due(state, sealed, now_ms, state.sealed) is None:
        return ""
    if too_low(state, HistoryCut, "a cut of the history"):
        return (
            f"level {state.level} of the cluster has no deletion of history yet: end the upgrade "
            "with `holdfast cluster upgrade finish`"
        )
    if not state.backed_up:
        known = "none was verified and reported"
    else:
        known = f"the last one that was verified and reported ends at entry {state.backed_up}"
    return (
        f"a backup is required (log.retention_require_backup), and {known}: make one with "
        "`holdfast backup create`, and report it with `holdfast backup verify --report`"
    )


def _due(
    state: State, sealed: Sequence[SealedPart], now_ms: int, allowed: Position
) -> Position | None:
    bounds, before = settings.of_cluster(state), cut_at(state)
    size = sum(each.size for each in sealed if each.last > before)
    found, records = None, 0
    for each in sealed:
        if each.last <= before:
            continue
        age = now_ms - each.last_ms
        old = 0 <= bounds.history_age_ms_max < age
        large = 0 <= bounds.history_bytes_max < size
        if each.last > allowed or age < bounds.history_age_ms_min or not (old or large):
            break
        records += each.records
        if found is not None and records > RECORDS_A_CUT:
            break
        found, size = each.last, size - each.size
    return found
