"""The table of served requests while records are folded: one is added, some old ones go (S15).

Total: an event on the log is a fact. Changes are open until they are kept or dropped, as those of
all maps under change. Knows no rules of what is answered from it; those are in `cluster.requests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.coordinator.cluster.request_ids import made_at_ms
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.state import RequestKey, RequestRecord
from holdfast.coordinator.structures.transient import Transient

if TYPE_CHECKING:
    from holdfast.coordinator.cluster.settings import ClusterSettings
    from holdfast.coordinator.model.events import Record, RequestRecorded
    from holdfast.coordinator.model.state import State

FORGOTTEN_AT_ONCE_MAX: Final = 8
"""How many requests one new one may push out: enough to catch up, too few to make a pause."""

WINDOWS_KEPT: Final = 2
"""Answers are kept for twice the window that an id may be old, so that an id whose time part runs
ahead of log time by up to a window is refused as too old before its answer is forgotten."""


class _Bounds(NamedTuple):
    """Which requests the table holds."""

    oldest: int
    """The number of the oldest one."""
    next: int
    """The number of the next one to be served; there are no gaps between the two."""
    floor_ms: int
    """The log time of the youngest request that was dropped for want of room."""


class RequestTable:
    """The served requests of a state, under change."""

    __slots__ = ("_bounds", "_by_key", "_by_number", "_kept_bounds")

    def __init__(self, state: State) -> None:
        self._by_key = Transient(state.requests)
        self._by_number = Transient(state.requests_by_number)
        oldest = state.requests_next - len(state.requests)
        self._bounds = _Bounds(oldest, state.requests_next, state.requests_floor_ms)
        self._kept_bounds = self._bounds

    def add(self, event: RequestRecorded, record: Record, settings: ClusterSettings) -> None:
        """Store a served request, which outlives its group, and forget some old ones."""
        oldest, number, floor_ms = self._bounds
        key = RequestKey(record.principal, record.group_id, event.request_id)
        known = self._by_key.get(key)
        if known is None:
            self._by_number.set(number, key)
            self._bounds = _Bounds(oldest, number + 1, floor_ms)
        else:
            number = known.number
        made = RequestRecord(
            event.digest, event.answer, record.log_time_ms, number, record.position
        )
        self._by_key.set(key, made)
        self._forget(record.log_time_ms, settings)

    def _forget(self, log_time_ms: int, settings: ClusterSettings) -> None:
        """Drop the oldest requests while they are too old or too many."""
        too_old_ms = log_time_ms - WINDOWS_KEPT * settings.dedupe_window_ms
        for _ in range(FORGOTTEN_AT_ONCE_MAX):
            oldest, after, floor_ms = self._bounds
            key, served_ms = self._served(oldest)
            if served_ms >= too_old_ms:
                if after - oldest <= settings.dedupe_requests_max:
                    return
                floor_ms = max(floor_ms, _floor(key, served_ms, settings.dedupe_window_ms))
            self._by_key.set(key, None)
            self._by_number.set(oldest, None)
            self._bounds = _Bounds(oldest + 1, after, floor_ms)

    def _served(self, number: int) -> tuple[RequestKey, int]:
        """Return a request's key, and when it was served."""
        key = self._by_number.get(number)
        served = None if key is None else self._by_key.get(key)
        if key is None or served is None:
            raise InvariantBroken("S15", f"request {number} is missing in the dedupe table")
        return key, served.log_time_ms

    def keep(self) -> None:
        """Make the open changes part of what `put_into` puts into a state."""
        self._by_key.keep()
        self._by_number.keep()
        self._kept_bounds = self._bounds

    def drop(self) -> None:
        """Forget the open changes."""
        self._by_key.drop()
        self._by_number.drop()
        self._bounds = self._kept_bounds

    def put_into(self, state: State) -> State:
        """Return the state with the table as it is with every kept change."""
        return state._replace(
            requests=self._by_key.persistent(),
            requests_by_number=self._by_number.persistent(),
            requests_next=self._kept_bounds.next,
            requests_floor_ms=self._kept_bounds.floor_ms,
        )


def _floor(key: RequestKey, served_ms: int, window_ms: int) -> int:
    """Return the time before which nothing is known of requests once this one is forgotten.

    An id may have been made ahead of the log time at which it was served: log time falls back when
    an idle leader fails over. By a window at most, or one wrong clock would make all be refused.
    """
    made_ms = made_at_ms(key.request_id) or 0
    return max(served_ms, min(made_ms, served_ms + window_ms))
