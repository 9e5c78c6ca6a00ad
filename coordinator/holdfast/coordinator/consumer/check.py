"""Invariants of a group of the heartbeat protocol and its members (S6).

A sentence for each broken one; none is good. Each begins with the rule's id. Knows the state only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.coordinator.consumer import holdings, transitions
from holdfast.coordinator.consumer.state import (
    RELEASED,
    ConsumerBody,
    ConsumerGroup,
    Holding,
    Member,
    Stored,
    is_settled,
    places,
    restored,
)
from holdfast.coordinator.model.ids import MemberId, TopicPartition

_DERIVED: Final = (
    *("instances", "owners", "settled", "topic_users", "regex_users", "assignor_users"),
    *("client_assignor_kinds", "client_assignor_bytes"),
    *("classic_members", "classic_protocols"),
)
"""What follows from the members, and is kept so that nobody has to look at all of them."""


def check(group: ConsumerGroup) -> Iterator[str]:
    """Yield what does not hold of the group and its members, in time proportional to its size."""
    yield from _itself(group)
    body = group.body
    for member_id, member in body.members.items():
        if member.member_id != member_id:
            yield f"S6: member {member.member_id!r} is kept as {member_id!r}"
        yield from _member(group, member)
        yield from _more_than_meant(body, member)
    records: list[Stored] = [*body.members.values()]
    records += [*body.targets.values(), *body.regexes.values()]
    again = restored(body, records)
    for name in _DERIVED:
        if getattr(again, name) != getattr(body, name):
            yield f"S6: {name} do not follow from the members"
    owned = [place for each in body.members.values() for place in _all(each)]
    if len(set(owned)) != len(owned):
        yield "O15: a partition has two owners"
    if not body.targets.keys() <= body.members.keys():
        yield "M5: somebody has a target who is no member"
    meant = [place for each in body.targets.values() for place in holdings.pairs(each.partitions)]
    if len(set(meant)) != len(meant):
        yield "O8: two members are to own one partition, so one of them would wait for ever"


def check_touched(
    _before: ConsumerGroup | None, group: ConsumerGroup, member_ids: Iterable[MemberId]
) -> Iterator[str]:
    """Check these members, in time independent of the group's size."""
    yield from _itself(group)
    body = group.body
    for member_id in member_ids:
        member = body.members.get(member_id)
        if member is None:
            if member_id in body.targets or member_id in body.settled:
                yield f"M5: {member_id!r} is gone, and something of it is left"
            continue
        yield from _member(group, member)
        yield from _kept(body, member)


def _kept(body: ConsumerBody, member: Member) -> Iterator[str]:
    """Check what is kept of a member beside it."""
    who, instance = repr(member.member_id), member.instance_id
    if instance and body.instances.get(instance) != member.member_id:
        yield f"C1: instance {instance!r} is not said to be {who}, who holds it"
    if (member.member_id in body.settled) != is_settled(body, member):
        yield f"O1: {who} is counted as settled, or is not, against what it owns"
    yield from _more_than_meant(body, member)
    for place in _all(member):
        if body.owners.get(place) != member.member_id:
            yield f"O15: {place.topic}-{place.partition} is not said to be of {who}, who owns it"


def _more_than_meant(body: ConsumerBody, member: Member) -> Iterator[str]:
    """Check that who need not move keeps nothing from others, who would wait for it for ever."""
    if not is_settled(body, member):
        return
    target = body.targets.get(member.member_id)
    kept = holdings.pairs(member.owned) - holdings.pairs(
        () if target is None else target.partitions
    )
    if kept:
        yield f"O8: {member.member_id!r} rests, and owns {sorted(kept)[:3]} that others are to own"


def _all(member: Member) -> Iterator[TopicPartition]:
    return places((*member.owned, *member.revoking))


def _itself(group: ConsumerGroup) -> Iterator[str]:
    body = group.body
    if group.state != transitions.derived(group):
        yield f"transitions: it is {group.state}, and should be {transitions.derived(group)}"
    if body.assignment_epoch > group.generation:
        yield f"M5: a target of epoch {body.assignment_epoch} in epoch {group.generation}"
    if body.asked is not None and body.asked.member_id not in body.members:
        yield f"KIP-848: {body.asked.member_id!r} is to compute a target, and is no member"
    if body.asked is not None and not body.assignment_epoch < body.asked.epoch <= group.generation:
        yield f"KIP-848: a target of epoch {body.asked.epoch} is asked for, and nobody waits for it"
    if len(body.settled) > len(body.members) or len(body.instances) > len(body.members):
        yield "S6: more is counted than there are members"


def _member(group: ConsumerGroup, member: Member) -> Iterator[str]:
    who, body = f"member {member.member_id!r}", group.body
    if member.epoch > body.assignment_epoch:
        yield f"M10: {who} is at epoch {member.epoch}, the target at {body.assignment_epoch}"
    if member.epoch < RELEASED or (member.released and member.instance_id is None):
        yield f"N2: {who} is at epoch {member.epoch}"
    if member.released and (member.revoking or member.waiting):
        yield f"N23: {who} has stopped, and is still on the way"
    if member.classic is not None and (member.profile.regex or not member.classic.protocols):
        yield f"Q5: {who} speaks the classic protocol without protocols, or with an expression"
    if (member.member_id in body.classic_members) != (member.classic is not None):
        yield f"Q5: {who} is said to speak the other protocol"
    for holding in (*member.owned, *member.revoking):
        yield from _holding(who, holding)


def _holding(who: str, holding: Holding) -> Iterator[str]:
    lengths = {len(each) for each in (holding.partitions, holding.epochs, holding.granted)}
    if len(lengths) != 1 or not holding.partitions:
        yield f"O16: {who} owns partitions of {holding.topic} without epochs, or none"
    if list(holding.partitions) != sorted(set(holding.partitions)):
        yield f"O16: {who} owns partitions of {holding.topic} twice, or out of order"
