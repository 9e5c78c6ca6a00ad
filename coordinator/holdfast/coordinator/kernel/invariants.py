"""What must hold of every state, after every event (S6). Sentences, not exceptions: empty is good.

`check` looks at everything, for tests and for a node that starts; `check_group` looks at one group;
`check_touched` at what a batch touched of one, before it is proposed. Each sentence begins with the
rule's id. Knows the state only; that facts follow upon each other rightly is the business of
`transitions` and `evolve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.ids import UNCOMMITTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from holdfast.coordinator.model.ids import MemberId
    from holdfast.coordinator.model.state import Group, Member, State

_SAME_PLACE: Final = "S6: two members have the same place in the order of joining"


def check(state: State) -> list[str]:
    """Every broken invariant of the state."""
    found = list(_cluster(state))
    for group_id, group in state.groups.items():
        if group.group_id != group_id:
            found.append(f"S6: group {group.group_id!r} is kept as {group_id!r}")
        found += check_group(group)
        found += _times(state, group)
    return found


def check_group(group: Group) -> list[str]:
    """Every broken invariant of a group, in time proportional to its size."""
    found = [*_life(group), *type_of(group).check(group)]
    seqs = {member.joined_seq for member in group.members.values()}
    if len(seqs) != len(group.members):
        found.append(_SAME_PLACE)
    for member_id, member in group.members.items():
        if member.member_id != member_id:
            found.append(f"S6: member {member.member_id!r} is kept as {member_id!r}")
        found += _member(group, member)
    found += _instances(group)
    return [f"{problem} (group {group.group_id!r})" for problem in found]


def check_touched(before: Group | None, group: Group, member_ids: Iterable[MemberId]) -> list[str]:
    """Broken invariants of a group and of these members, in time that does not follow its size.

    `before`: the group before the events that touched them. Who was removed must have left no
    instance behind (K-C1).
    """
    found = [*_life(group), *type_of(group).check(group)]
    places: set[int] = set()
    for member_id in member_ids:
        member = group.members.get(member_id)
        if member is not None:
            found += _kept(group, member_id, member)
            found += () if member.joined_seq not in places else (_SAME_PLACE,)
            places.add(member.joined_seq)
        elif before is not None and (was := before.members.get(member_id)) is not None:
            found += _left_behind(group, was)
    return [f"{problem} (group {group.group_id!r})" for problem in found]


def _kept(group: Group, member_id: MemberId, member: Member) -> Iterator[str]:
    if member.member_id != member_id:
        yield f"S6: member {member.member_id!r} is kept as {member_id!r}"
    yield from _member(group, member)
    instance = member.instance_id
    if instance and group.instances.get(instance) != member_id:
        yield f"C1: instance {instance!r} is not said to be {member_id!r}, who holds it"


def _left_behind(group: Group, gone: Member) -> Iterator[str]:
    if gone.instance_id and group.instances.get(gone.instance_id) == gone.member_id:
        yield f"C1: instance {gone.instance_id!r} is said to be {gone.member_id!r}, who is gone"


def _life(group: Group) -> Iterator[str]:
    if not group.group_id:
        yield "I6: a group has the empty id, which is the cluster's own"
    if group.seq < 1 or group.generation < 0 or group.version < UNCOMMITTED:
        yield f"S3: seq {group.seq}, generation {group.generation}, version {group.version}"


def _member(group: Group, member: Member) -> Iterator[str]:
    who = f"member {member.member_id!r}"
    if not member.member_id:
        yield "A1: a member has an empty id"
    if not 0 < member.joined_seq <= group.seq:
        yield f"S3: {who} joined at seq {member.joined_seq}, the group is at {group.seq}"
    if member.granted_index < UNCOMMITTED or member.predecessor_ms < 0:
        yield f"S13: {who} has grant {member.granted_index} after {member.predecessor_ms} ms"
    if member.released and member.instance_id is None:
        yield f"S12: {who} is released, but not static"
    if member.assignment and not member.granted_index:
        yield f"S13: {who} has an assignment, but no grant"
    yield from type_of(group).check_member(group, member)


def _instances(group: Group) -> Iterator[str]:
    """Instances and static members are one to one: an identity is never held twice (K-I4, K-C1)."""
    static = {m.member_id: m.instance_id for m in group.members.values() if m.instance_id}
    if len(set(static.values())) != len(static):
        yield "C1: two members hold the same instance id"
    for instance_id, member_id in group.instances.items():
        if static.get(member_id) != instance_id:
            yield f"C1: instance {instance_id!r} is said to be {member_id!r}, who does not hold it"
    if len(group.instances) != len(static):
        yield f"C1: {len(group.instances)} instances are known, {len(static)} are held"


def _times(state: State, group: Group) -> Iterator[str]:
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
    """The dedupe table and its order are one, without gaps (S15)."""
    table, by_number = state.requests, state.requests_by_number
    oldest = state.requests_next - len(table)
    if len(by_number) != len(table):
        yield f"S15: {len(table)} requests, but {len(by_number)} in order"
    for key, record in table.items():
        if by_number.get(record.number) != key or record.number < oldest:
            yield f"S15: request {key.request_id!r} is out of order at {record.number}"
        if record.log_time_ms > state.log_time_ms:
            yield f"S15: request {key.request_id!r} was served after log time {state.log_time_ms}"
