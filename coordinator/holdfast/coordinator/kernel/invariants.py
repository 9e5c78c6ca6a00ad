"""What must hold of every state, after every event (S6). Sentences, not exceptions: empty is good.

`check` looks at everything, for tests and for a node that starts; `check_group` looks at one group;
`check_touched` at what a batch touched of one, before it is proposed. Each sentence begins with the
rule's id. A group's type says what must hold of its members. Knows the state only; `transitions`
and `evolve` check the order of events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.ids import UNCOMMITTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.ids import MemberId
    from holdfast.coordinator.model.state import Group, State


def check(state: State) -> list[str]:
    """Return every broken invariant of the state."""
    found = list(_cluster(state))
    for group_id, group in state.groups.items():
        if group.group_id != group_id:
            found.append(f"S6: group {group.group_id!r} is kept as {group_id!r}")
        found += check_group(group)
        found += _times(state, group)
    return found


def check_group(group: Group[Any]) -> list[str]:
    """Return every broken invariant of a group, in time proportional to its size."""
    return _told(group, type_of(group).check(group))


def check_touched(
    before: Group[Any] | None, group: Group[Any], member_ids: Iterable[MemberId]
) -> list[str]:
    """Return broken invariants of a group and these members, in time independent of its size.

    `before`: the group before the events that touched them.
    """
    if before is not None and before.group_type != group.group_type:
        return check_group(group)  # all members are others than before
    return _told(group, type_of(group).check_touched(before, group, member_ids))


def _told(group: Group[Any], of_type: Iterable[str]) -> list[str]:
    return [f"{problem} (group {group.group_id!r})" for problem in (*_life(group), *of_type)]


def _life(group: Group[Any]) -> Iterator[str]:
    if not group.group_id:
        yield "I6: a group has the empty id, which is the cluster's own"
    if group.seq < 1 or group.generation < 0 or group.version < UNCOMMITTED:
        yield f"S3: seq {group.seq}, generation {group.generation}, version {group.version}"


def _times(state: State, group: Group[Any]) -> Iterator[str]:
    where = f"(group {group.group_id!r})"
    if group.version > state.applied_index:
        yield f"S2: version {group.version} is after the last entry {state.applied_index} {where}"
    latest_ms = max((each.committed_ms for each in group.offsets.values()), default=0)
    if max(latest_ms, group.state_since_ms) > state.log_time_ms:
        yield f"S8: something happened after log time {state.log_time_ms} {where}"


def _cluster(state: State) -> Iterator[str]:
    for name, size in state.topics.items():
        if size.name != name or size.num_partitions < 1:
            yield f"S6: topic {name!r} is kept as {size!r}"
    for scope in ("", *state.settings.groups):
        for problem in settings.unfit(state.settings, scope):
            yield f"S7: {problem}"
    yield from _requests(state)


def _requests(state: State) -> Iterator[str]:
    """Check that the dedupe table and its order agree, without gaps (S15)."""
    table, by_number = state.requests, state.requests_by_number
    oldest = state.requests_next - len(table)
    if len(by_number) != len(table):
        yield f"S15: {len(table)} requests, but {len(by_number)} in order"
    for key, record in table.items():
        if by_number.get(record.number) != key or record.number < oldest:
            yield f"S15: request {key.request_id!r} is out of order at {record.number}"
        if record.log_time_ms > state.log_time_ms:
            yield f"S15: request {key.request_id!r} was served after log time {state.log_time_ms}"
