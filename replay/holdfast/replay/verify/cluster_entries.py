"""What belongs to no group as keys and values, for comparison with `sql.cluster_state`.

Runs in Spark's workers, and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.coordinator.model.ids import Position
from holdfast.coordinator.model.state import Settings, State
from holdfast.replay.read.log_rows import Entry


def entries_of(state: State) -> Iterator[Entry]:
    """Yield the state without its groups; what was never set is not told."""
    for key, value in _counters(state).items():
        if value not in {"", "0", "0.0"}:
            yield Entry("cluster", key, value)
    yield from _settings(state.settings)
    for topic in state.topics.values():
        yield Entry("topic", topic.name, f"{topic.num_partitions}:{topic.created_index}")
    for acl in state.acls:
        yield Entry("acl", "|".join(acl), "")
    for each in state.revocations.values():
        fingerprint, *told = each
        yield Entry("revocation", fingerprint, "|".join(map(str, told)))
    yield from _requests(state)


def _counters(state: State) -> dict[str, str]:
    return {
        "id": state.cluster_id,
        "version": str(state.cluster_version),
        "seq": str(state.cluster_seq),
        "log time": str(state.log_time_ms),
        "recovery number": str(state.recovery_number),
        "recovered at": str(state.recovered_at),
        "sealed": _placed(state.sealed),
        "level": str(state.raised_to),
        "access mode": state.access_mode,
        "history cut": _history_cut(state),
        "backed up": str(state.backed_up),
        "requests next": str(state.requests_next),
        "requests floor": str(state.requests_floor_ms),
    }


def _history_cut(state: State) -> str:
    cut = state.history_cut
    return f"{_placed(cut.last)}:{cut.log_time_ms}:{cut.digest.hex()}" if cut else ""


def _placed(place: Position) -> str:
    return f"{place.index}.{place.ordinal}"


def _settings(settings: Settings) -> Iterator[Entry]:
    for scope, known in (("", settings.cluster), *settings.groups.items()):
        for key, value in known.items():
            yield Entry("setting", f"{scope}:{key}", value)


def _requests(state: State) -> Iterator[Entry]:
    for (principal, group_id, request_id), it in state.requests.items():
        content = f"{it.digest.hex()}:{it.answer.hex()}"
        told = f"{content}:{it.log_time_ms}:{it.number}:{_placed(it.position)}"
        yield Entry("request", f"{principal}|{group_id}|{request_id}", told)
