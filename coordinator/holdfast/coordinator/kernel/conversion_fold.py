"""How a group becomes one of the other type: the fold of `GroupConverted`.

Here alone the members of one type are made of those of the other. Each member keeps its id, its
instance, its place in the order, its principal, and what it owns with the tokens of it. Decides
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.coordinator.classic.state import ClassicBody
from holdfast.coordinator.classic.state import Member as ClassicMember
from holdfast.coordinator.classic.state import restored as classic_body
from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.mixed.told import PROTOCOL_TYPE, newest_grant
from holdfast.coordinator.consumer.state import CONSUMER, RELEASED, ConsumerBody
from holdfast.coordinator.consumer.state import Member as ConsumerMember
from holdfast.coordinator.consumer.state import restored as consumer_body
from holdfast.coordinator.groups import assignment_bytes
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ConsumerProfile,
    MemberProfile,
)
from holdfast.coordinator.model.state import EMPTY, STABLE

if TYPE_CHECKING:
    from holdfast.coordinator.model.consumer_events import ConvertedMember, GroupConverted
    from holdfast.coordinator.model.events import Record
    from holdfast.coordinator.model.state import Group


def converted(group: Group[Any], event: GroupConverted, record: Record) -> Group[Any]:
    """Return the group under its new type. Raises InvariantBroken if that cannot be."""
    if event.group_type == group.group_type:
        raise InvariantBroken("Q2", f"it is of type {event.group_type!r} already")
    if [each.member_id for each in event.members] != _in_order(group):
        raise InvariantBroken("Q2", "not all members are named, or in another order")
    to_consumer = event.group_type == CONSUMER
    body: Any = _consumer(group, event) if to_consumer else _classic(group, event, record)
    state = STABLE if event.members else EMPTY  # of a consumer group it is derived
    return group._replace(
        group_type=event.group_type, generation=event.generation, body=body, state=state
    )


def _in_order(group: Group[Any]) -> list[str]:
    members = sorted(group.body.members.values(), key=lambda each: each.joined_seq)
    return [each.member_id for each in members]


# --- to the heartbeat protocol (K-Q1, K-Q2) ---


def _consumer(group: Group[ClassicBody], event: GroupConverted) -> ConsumerBody:
    """Make the body of a group in which everybody owns the target, at one epoch."""
    was, epoch = group.body, event.generation
    members = [_to_consumer(was.members[each.member_id], each, epoch) for each in event.members]
    targets = [MemberTarget(e.member_id, e.partitions) for e in event.members if e.partitions]
    made = ConsumerBody(assignment_epoch=epoch, predecessors_until_ms=was.predecessors_until_ms)
    return consumer_body(made, [*members, *targets])


def _to_consumer(old: ClassicMember, told: ConvertedMember, epoch: int) -> ConsumerMember:
    profile = old.profile
    return ConsumerMember(
        member_id=old.member_id,
        instance_id=old.instance_id,
        profile=ConsumerProfile(
            client_id=profile.client_id,
            client_host=profile.client_host,
            rebalance_timeout_ms=profile.rebalance_timeout_ms,
            topics=told.topics,
        ),
        joined_seq=old.joined_seq,
        since_ms=old.since_ms,
        epoch=RELEASED if old.released else epoch,
        previous_epoch=epoch,
        owned=holdings.granted(told.partitions, 0 if old.released else epoch, old.granted_index),
        predecessor_ms=old.predecessor_ms,
        principal=old.principal,
        classic=ClassicProfile(profile.session_timeout_ms, profile.protocols, old.request_id),
        replaced_requests=old.replaced_requests,
        replaced_life=old.replaced_life,
    )


# --- to the classic protocol (K-Q12, K-Q14) ---


def _classic(group: Group[ConsumerBody], event: GroupConverted, record: Record) -> ClassicBody:
    """Make the body of a Stable group, whose next join phase is about to open; or of an Empty one.

    An Empty one did have members, so its offsets age as those of a classic group do (K-J27).
    """
    was, index = group.body, record.position.index
    made = ClassicBody(
        protocol_type=PROTOCOL_TYPE,
        protocol_name=event.protocol_name if event.members else None,
        leader=event.leader if event.members else None,
        predecessors_until_ms=was.predecessors_until_ms,
    )
    members = [to_classic(was.members[each.member_id], each, index) for each in event.members]
    return classic_body(made, members)


def to_classic(old: ConsumerMember, told: ConvertedMember, index: int) -> ClassicMember:
    """Make a classic member of one that speaks the classic protocol already.

    It has one token for all that it owns, that of the newest grant. Who owns nothing is granted
    nothing, by the entry at `index`.
    """
    if old.classic is None:
        raise InvariantBroken("Q12", f"{old.member_id!r} speaks the heartbeat protocol")
    return ClassicMember(
        member_id=old.member_id,
        instance_id=old.instance_id,
        profile=MemberProfile(
            client_id=old.profile.client_id,
            client_host=old.profile.client_host,
            session_timeout_ms=old.classic.session_timeout_ms,
            rebalance_timeout_ms=old.profile.rebalance_timeout_ms,
            protocols=old.classic.protocols,
        ),
        request_id=old.classic.request_id,
        joined_seq=old.joined_seq,
        since_ms=old.since_ms,
        assignment=assignment_bytes.written(told.partitions),
        granted_index=newest_grant(old) or index,
        predecessor_ms=old.predecessor_ms,
        released=old.released,
        replaced_requests=old.replaced_requests,
        replaced_life=old.replaced_life,
        principal=old.principal,
    )
