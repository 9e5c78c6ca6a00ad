"""How the second coordinator leads a member of a consumer group to its target, one beat at a time.

A member gives up first what others are to have; only what nobody holds is given to it. Belongs to
`kafka_consumer_model`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from property.kafka_consumer_parts import (
    STABLE,
    UNRELEASED,
    UNREVOKED,
    ConsumerGroup,
    Member,
    Partition,
)

Owned = set[Partition] | None
"""What the client says that it owns; None: it does not say."""


def reconcile(
    group: ConsumerGroup, member: Member, owned: Owned, topics: Container[str], *, changed: bool
) -> bool:
    """Take one step (K-O1 to K-O16); whether anything of the member is another than before.

    `changed`: this beat brought another subscription. A step that only makes the present epoch the
    one before (K-M11) is not on the log, so that a failover forgets it.
    """
    before = replace(member)
    wanted = {topic for topic in group.wanted_by(member) if topic in topics}
    there = member.state == STABLE and member.epoch == group.target_epoch
    waits = member.state == UNREVOKED and _owns(owned, member.revoking)  # K-O5
    if not (there or waits):
        _advance(group, member, owned, wanted)
    elif changed:
        _cut(member, owned, wanted)
    if replace(member, previous=before.previous) == before:
        member.previous, member.knows = before.previous, before.knows or member != before
    elif member != before:
        member.knows = False
    return member != before


def _owns(owned: Owned, asked_back: Mapping[Partition, int]) -> bool:
    """Whether the client may still work on any of these; if it does not say, it may."""
    return owned is None or not owned.isdisjoint(asked_back)


def _cut(member: Member, owned: Owned, wanted: set[str]) -> None:
    """K-O13: topics that it does not want any more go at once, at the same epoch."""
    gone = {each: epoch for each, epoch in member.owned.items() if each[0] not in wanted}
    if not gone:
        return
    member.owned = {each: epoch for each, epoch in member.owned.items() if each not in gone}
    member.previous = member.epoch
    if _owns(owned, member.revoking | gone):
        member.state, member.revoking = UNREVOKED, member.revoking | gone


def _advance(group: ConsumerGroup, member: Member, owned: Owned, wanted: set[str]) -> None:
    """Ask back what is not in the target; else take what is free, and be at the target's epoch."""
    target = {each for each in group.target.get(member.member_id, set()) if each[0] in wanted}
    keep = {each: epoch for each, epoch in member.owned.items() if each in target}
    revoke = {each: epoch for each, epoch in member.owned.items() if each not in target}
    member.previous = member.epoch
    if revoke and _owns(owned, revoke):  # K-O3, K-O4
        member.state, member.owned, member.revoking = UNREVOKED, keep, revoke
        return
    free = target - keep.keys() - group.taken_by_others(member)  # K-O7, K-O8
    member.owned = keep | dict.fromkeys(free, group.target_epoch)  # K-O16
    member.revoking = {}
    member.state = UNRELEASED if target - member.owned.keys() else STABLE
    member.epoch = group.target_epoch
