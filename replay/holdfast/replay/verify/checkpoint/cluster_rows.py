"""Tell what belongs to no group as rows of a log: a part of `checkpoint.rows`.

What a checkpoint knows of the dedupe table is told by rows of kinds that no record has. Runs in
Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import State

Told: TypeAlias = tuple[Position, dict[str, Any]]
FIRST: Final = Position(0, 0)
_BEFORE: Final = -1
"""The ordinal of a row that stands for an entry, before its records."""


def cluster_rows(state: State, last: Position) -> Iterator[Told]:
    """Yield what led to a state, without its groups; no row lies behind `last`."""
    formed = {"type": "ClusterFormed", "name": state.cluster_id, "scope": ""}
    yield FIRST, {**formed, "settings": _settings(state.settings.cluster)}
    for scope, settings in state.settings.groups.items():
        told = {"scope": scope, "settings": _settings(settings)}
        yield FIRST, {"type": "SettingsChanged", **told}
    if state.raised_to:
        yield FIRST, {"type": "LevelRaised", "number": state.raised_to}
    for topic in state.topics.values():
        at = Position(topic.created_index, _BEFORE) if topic.created_index else FIRST
        size = {"name": topic.name, "num_partitions": topic.num_partitions}
        yield at, {"type": "TopicsCreated", "sizes": [size]}
    yield from _access(state)
    yield from _places(state)
    yield from _requests(state)
    counted = Position(min(state.cluster_version, last.index), _BEFORE)
    yield counted, {"type": "ClusterCounted"}


def _settings(settings: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a map of the state
    return [{"key": key, "value": value} for key, value in settings.items()]


def _access(state: State) -> Iterator[Told]:
    if state.access_mode:
        yield FIRST, {"type": "AccessModeChanged", "name": state.access_mode}
    acls = [{**acl._asdict(), "granted": True} for acl in state.acls]
    revocations = [each._asdict() for each in state.revocations.values()]
    yield FIRST, {"type": "AclsChanged", "acls": acls}
    yield FIRST, {"type": "RevocationsChanged", "revocations": revocations}


def _places(state: State) -> Iterator[Told]:
    if state.sealed.index:
        yield FIRST, {"type": "SegmentSealed", "place": _place(state.sealed, None, None)}
    if (cut := state.history_cut) is not None:
        place = _place(cut.last, cut.log_time_ms, cut.digest)
        yield FIRST, {"type": "HistoryCut", "place": place}
    if state.recovery_number:
        told = {"type": "RecoveryNumberRaised", "number": state.recovery_number}
        yield Position(state.recovered_at, _BEFORE), told
    if state.backed_up:
        yield FIRST, {"type": "BackupVerified", "number": state.backed_up}


def _place(last: Position, log_time_ms: int | None, digest: bytes | None) -> dict[str, Any]:
    index, ordinal = last
    return {"idx": index, "ordinal": ordinal, "log_time_ms": log_time_ms, "digest": digest}


def _requests(state: State) -> Iterator[Told]:
    counted = _place(FIRST, state.requests_floor_ms, None)
    told = {"type": "RequestsCounted", "number": state.requests_next, "place": counted}
    yield FIRST, {**told, "log_time_ms": state.log_time_ms}
    for (principal, group_id, request_id), it in state.requests.items():
        content = {"request_id": request_id, "digest": it.digest, "answer": it.answer}
        names = {"principal": principal, "scope": group_id, "log_time_ms": it.log_time_ms}
        told = {"type": "RequestKept", "number": it.number, "request": content, **names}
        yield it.position, told
