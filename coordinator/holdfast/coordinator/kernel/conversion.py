"""Calls of one protocol to a group of the other, and groups that change their protocol (K-Q).

A heartbeat turns a classic group into one of the heartbeat protocol, if the settings allow it and
each assignment can be read. A classic join is taken by a group of the heartbeat protocol, and turns
one without members into a classic group. The last member of the heartbeat protocol that goes leaves
a classic group behind. No partition changes its owner by a conversion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.classic import parked_calls, protocol_votes, rebalance, validation
from holdfast.coordinator.classic.group_type import CLASSIC
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer import validation as consumer_validation
from holdfast.coordinator.consumer.group_type import CONSUMER_TYPE
from holdfast.coordinator.consumer.mixed import downgrade
from holdfast.coordinator.consumer.state import FIRST_EPOCH, JOINING
from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.kernel.conversion_fold import to_classic
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat, JoinGroup
from holdfast.coordinator.model.consumer_events import ConvertedMember, GroupConverted
from holdfast.coordinator.model.levels import too_low
from holdfast.coordinator.model.membership import line_of
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    OtherGroupType,
    RebalanceInProgress,
)
from holdfast.coordinator.model.state import EMPTY
from holdfast.coordinator.model.subscriptions import CONSUMER as CONSUMER_PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.classic.state import ClassicGroup
    from holdfast.coordinator.classic.state import Member as ClassicMember
    from holdfast.coordinator.consumer.state import ConsumerGroup
    from holdfast.coordinator.consumer.state import Member as ConsumerMember
    from holdfast.coordinator.groups.draft import Draft, Mark
    from holdfast.coordinator.groups.group_type import GroupType
    from holdfast.coordinator.model.ids import TopicPartition
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.state import Group

_OF_OTHERS: Final[Mapping[str, type]] = {
    CLASSIC.name: ConsumerGroupHeartbeat,
    CONSUMER_TYPE.name: JoinGroup,
}
"""The calls by which members of the other protocol come, by the group's type."""
_UP: Final = frozenset({"bidirectional", "upgrade"})
"""The migration policies under which a classic group with members may change its protocol."""
_UNREADABLE: Final = (
    "what they own cannot be told: their assignments are in another form, have an assignor's own "
    "data, or give one partition to two"
)


def concerns(group: Group[Any] | None, command: object) -> bool:
    """Return whether somebody of the other protocol comes to a group."""
    return group is not None and type(command) is _OF_OTHERS.get(group.group_type)


def call(draft: Draft, command: ConsumerGroupHeartbeat | JoinGroup) -> None:
    """Decide the call of somebody who comes with the other protocol."""
    if isinstance(command, ConsumerGroupHeartbeat):
        _heartbeat(draft, command)
    else:
        _join(draft, command)


# --- from classic to the heartbeat protocol ---


def _heartbeat(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Convert a classic group for a member that joins it; one that is refused converts nothing."""
    error = consumer_validation.of_heartbeat(draft, command) or _not_upgradable(draft, command)
    members = None if error is not None else _readable(draft.group)
    if members is None:
        refusal = error or _stays(draft, _UNREADABLE)
        draft.answer(command.caller.call, CONSUMER_TYPE.refused(command, refusal))
        return
    before = draft.mark()
    _upgrade(draft, members)
    _take(draft, before, command, CONSUMER_TYPE)


def _not_upgradable(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Say why this caller cannot have the group converted (K-Q3, K-M30)."""
    group: ClassicGroup = draft.group
    if command.member_epoch != JOINING:
        return GroupIdNotFound(draft.group_id)
    low = too_low(draft.state, GroupConverted, "the heartbeat protocol")
    if low is not None or group.state == EMPTY:
        return low  # K-Q1
    in_force = settings.of(draft.state, draft.group_id).consumer
    if in_force.migration_policy not in _UP:
        return _stays(draft, f"group.consumer_migration_policy is {in_force.migration_policy!r}")
    if group.body.protocol_type != CONSUMER_PROTOCOLS:
        return _stays(draft, f"its protocol type is {group.body.protocol_type!r}")
    if len(group.body.members) > in_force.max_size:
        return _stays(draft, f"it has more than the {in_force.max_size} of group.consumer_max_size")
    return None


def _stays(draft: Draft, why: str) -> OtherGroupType:
    """K-Q3: say why a group that is there stays what it is."""
    told = f"it has members of the classic protocol, and {why}. Stop these first, or use another id"
    return OtherGroupType(draft.group_id, told)


def _readable(group: ClassicGroup) -> tuple[ConvertedMember, ...] | None:
    """Return the members with what they own; None if that cannot be told of all."""
    members = sorted(group.body.members.values(), key=lambda each: each.joined_seq)
    name, owned = _voted(members), _owned(members)
    if owned is None:
        return None
    found: list[ConvertedMember] = []
    for member, some in zip(members, owned, strict=True):
        topics = next((p.topics for p in member.profile.protocols if p.name == name), None)
        if topics is None or _has_user_data(member):
            return None
        found.append(ConvertedMember(member.member_id, topics, holdings.by_topic(some)))
    return tuple(found)


def _owned(members: list[ClassicMember]) -> list[tuple[TopicPartition, ...]] | None:
    """Return what each member owns, or still may own; None if that cannot be told.

    What was abandoned counts: its owner may still work on it (K-D10). So does what nobody is
    assigned and a member said that it owns: it gives that up only as it joins again (S11).
    """
    read = [assignment_bytes.partitions(each.assignment or each.abandoned) for each in members]
    assigned = [each for each in read if each is not None]
    if len(assigned) < len(read):
        return None
    taken = {place for some in assigned for place in some}
    pairs = zip(members, assigned, strict=True)
    owned = [(*some, *(_claimed(member) - taken)) for member, some in pairs]
    every = [place for some in owned for place in some]
    return owned if len(set(every)) == len(every) else None  # else two own one partition


def _claimed(member: ClassicMember) -> set[TopicPartition]:
    """Return what a member said at its last join that it owns, in any of its protocols.

    Who was granted nothing owns nothing, and a process that has stopped neither (S12).
    """
    if member.released or not member.granted_index:
        return set()
    told = [assignment_bytes.claimed(each.metadata) or () for each in member.profile.protocols]
    return {place for some in told for place in some}


def _voted(members: list[ClassicMember]) -> str | None:
    """Return the protocol that the members agree on now, whether a generation has begun or not."""
    return protocol_votes.vote(members, protocol_votes.count(members)) if members else None


def _has_user_data(member: ClassicMember) -> bool:
    return assignment_bytes.has_user_data(member.assignment or member.abandoned)


def _upgrade(draft: Draft, members: tuple[ConvertedMember, ...]) -> None:
    """Convert a classic group: its generation is its epoch, so none is given out twice (S13).

    The generation of an empty group nobody was in: it becomes the first epoch that anybody is in,
    which follows.
    """
    group: ClassicGroup = draft.group
    epoch = max(group.generation if members else group.generation - 1, FIRST_EPOCH)
    for each in members:
        parked_calls.refuse(draft, each.member_id, RebalanceInProgress(), each.member_id)
    event = GroupConverted(CONSUMER_TYPE.name, epoch, members)
    _convert(draft, event, "Q2" if members else "Q1")


def _convert(draft: Draft, event: GroupConverted, rule: str) -> None:
    """Convert the group; nothing is left of its calls and deadlines, and all sessions run."""
    draft.emit(event, rule)
    draft.blank()
    for each in event.members:
        draft.arm_session(each.member_id)


def _take(draft: Draft, before: Mark, command: object, kind: GroupType[Draft]) -> None:
    """Decide a call by the new type; a conversion of which only a refusal came is taken back."""
    chosen, effects = len(draft.proposed), len(draft.effects)
    kind.call(draft, command)
    if len(draft.proposed) > chosen or draft.volatile.pending:
        return
    refusal = draft.effects[effects:]
    draft.back_to(before)
    draft.effects += refusal


# --- from the heartbeat protocol to classic ---


def _join(draft: Draft, command: JoinGroup) -> None:
    """Take a classic join; one without a member id makes an empty group classic (K-Q14)."""
    error = validation.of_join(draft, command) or validation.of_metadata(draft, command, 0)
    if error is not None:
        draft.answer(command.caller.call, CLASSIC.refused(command, error))
    elif not CONSUMER_TYPE.is_empty(draft.group):
        CONSUMER_TYPE.call(draft, command)
    else:
        before = draft.mark()
        _convert(draft, GroupConverted(CLASSIC.name, draft.group.generation, ()), "Q14")
        _take(draft, before, command, CLASSIC)


def finish(draft: Draft, chosen: int) -> None:
    """Make a group classic again if the last member of the heartbeat protocol went (K-Q12).

    `chosen`: how many events the draft had before the command that may have taken it out.
    """
    group = draft.found
    if group is None or group.group_type != CONSUMER_TYPE.name:
        return
    went = any(line_of(each.event).went(each.event) for each in draft.proposed[chosen:])
    if went and downgrade.is_due(draft):
        draft.close()
        _downgrade(draft)


def _downgrade(draft: Draft) -> None:
    """Convert a group whose members all speak the classic protocol, and let them join again."""
    group: ConsumerGroup = draft.group
    old = sorted(group.body.members.values(), key=lambda each: each.joined_seq)
    members = tuple([_owner(each) for each in old])
    made = [to_classic(*each, index=1) for each in zip(old, members, strict=True)]
    leader = members[0].member_id
    event = GroupConverted(CLASSIC.name, group.generation, members, _voted(made) or "", leader)
    _convert(draft, event, "Q12")
    rebalance.open_join_phase(draft, "Q12", "the last member of the heartbeat protocol is gone")
    rebalance.close_if_complete(draft)


def _owner(member: ConsumerMember) -> ConvertedMember:
    """Return a member with all that it owns, or still may own."""
    owned = holdings.by_topic(holdings.pairs((*member.owned, *member.revoking)))
    return ConvertedMember(member.member_id, (), owned)
