"""How a group of the heartbeat protocol changes by its events.

Each event costs what it changes, not the size of the group. Knows neither commands nor settings,
and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, TypeVar

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.client_side import folds
from holdfast.coordinator.consumer.state import (
    NEVER,
    RELEASED,
    ConsumerBody,
    ConsumerGroup,
    Holding,
    Member,
    is_settled,
    places,
    protocol_names,
    runnable,
)
from holdfast.coordinator.model.consumer_events import (
    AssignmentRequested,
    EpochRaised,
    MemberAdvanced,
    MemberSubscribed,
    RegexResolved,
    ResolvedRegex,
    TargetStored,
)
from holdfast.coordinator.model.errors import InvariantBroken
from holdfast.coordinator.model.events import (
    GroupEvent,
    InstanceReleased,
    MemberExpired,
    MembersLeft,
    MembersRemoved,
    Record,
    StaticMemberReplaced,
)
from holdfast.coordinator.model.ids import Life, MemberId, Principal, RequestId, TopicPartition
from holdfast.coordinator.model.member_profile import ClassicProfile, ConsumerProfile
from holdfast.coordinator.model.state import Group
from holdfast.coordinator.structures.copies import with_one
from holdfast.coordinator.structures.pmap import PMap

K = TypeVar("K", bound=Hashable)
_with_body: Final = with_one(Group, "body")
_NOBODY: Final = ConsumerProfile()
REPLACED_REQUESTS_MAX: Final = 8
"""So many classic joins of earlier processes are remembered for each static member (S14)."""


def evolve(group: ConsumerGroup, event: GroupEvent, record: Record) -> ConsumerGroup:
    """Fold an event of the heartbeat protocol. Raises InvariantBroken if it cannot be true."""
    return FOLDS[type(event)](group, event, record)


def known(group: ConsumerGroup, member_id: MemberId) -> Member:
    """Return the member that an event names. Raises InvariantBroken if there is none."""
    member = group.body.members.get(member_id)
    if member is None:
        raise InvariantBroken("S6", f"no member {member_id!r} in group {group.group_id!r}")
    return member


def own(group: ConsumerGroup, member_id: MemberId, principal: Principal) -> ConsumerGroup:
    """Note to whom a member belongs."""
    member = known(group, member_id)._replace(principal=principal)
    return _with_body(group, _put(group.body, member))


def _put(body: ConsumerBody, member: Member) -> ConsumerBody:
    """Return the body with a member in its place, and counted as settled or not."""
    member_id = member.member_id
    settled = body.settled.changed({member_id: True if is_settled(body, member) else None})
    return body._replace(members=body.members.set(member_id, member), settled=settled)


# --- who is there, and what they want ---


def _subscribed(group: ConsumerGroup, event: MemberSubscribed, record: Record) -> ConsumerGroup:
    body, was = group.body, group.body.members.get(event.member_id)
    if (was is None) != event.joined:
        raise InvariantBroken("S6", f"member {event.member_id!r} came twice, or never")
    if was is None:
        body = _bound(body, event)
        made = Member(
            event.member_id,
            event.instance_id,
            event.profile,
            joined_seq=record.group_seq,
            since_ms=record.log_time_ms,
            classic=event.classic,
            life=event.life,
            beat=event.beat,
            session_timeout_ms=event.session_timeout_ms,
        )
    else:
        if was.instance_id != event.instance_id:
            raise InvariantBroken("H4", f"member {event.member_id!r} is another instance now")
        made = was._replace(
            profile=event.profile,
            classic=event.classic,
            session_timeout_ms=event.session_timeout_ms or was.session_timeout_ms,
            unhurried_until_ms=_unhurried_until_ms(was, event, record),
        )
        made = _numbered(made, event.life or made.life, event.beat)
        if was.classic is None:
            made = _told_one_token(made, record)
    body = recounted(body, was.profile if was else _NOBODY, event.profile)
    return _with_body(group, _put(_spoken(body, was, made), made))


def _unhurried_until_ms(was: Member, event: MemberSubscribed, record: Record) -> int:
    """Return until when a member may reckon with an earlier rebalance timeout (S11).

    It hears of a shorter one by an answer, and that may be lost. Who numbers no heartbeats is
    Kafka's client, which ends no ownership by itself: there it counts at once, as in Kafka.
    """
    known_ms = was.profile.rebalance_timeout_ms
    if not event.beat or event.profile.rebalance_timeout_ms >= known_ms:
        return was.unhurried_until_ms
    return max(was.unhurried_until_ms, record.log_time_ms + known_ms)


def _numbered(member: Member, life: Life, beat: int) -> Member:
    """Note the number of a heartbeat, which begins anew with each life (S26)."""
    known = member.beat if life == member.life else 0
    return member._replace(life=life, beat=max(known, beat))


def _bound(body: ConsumerBody, event: MemberSubscribed) -> ConsumerBody:
    if event.instance_id is None:
        return body
    if event.instance_id in body.instances:
        raise InvariantBroken("C15", f"instance {event.instance_id!r} is held already")
    return body._replace(instances=body.instances.set(event.instance_id, event.member_id))


def recounted(body: ConsumerBody, old: ConsumerProfile, new: ConsumerProfile) -> ConsumerBody:
    """Count what members want; an expression that nobody has any more is forgotten (K-P7)."""
    regex_users = _with_others(body.regex_users, _some(old.regex), _some(new.regex))
    forgotten = old.regex and old.regex not in regex_users
    return body._replace(
        topic_users=_with_others(body.topic_users, old.topics, new.topics),
        regex_users=regex_users,
        regexes=body.regexes.remove(old.regex) if forgotten else body.regexes,
        assignor_users=_with_others(
            body.assignor_users, _some(old.server_assignor), _some(new.server_assignor)
        ),
        client_assignor_kinds=_with_others(
            body.client_assignor_kinds, _some(runnable(old)), _some(runnable(new))
        ),
        client_assignor_bytes=folds.with_bytes(body.client_assignor_bytes, old, new),
    )


def _spoken(body: ConsumerBody, old: Member | None, new: Member | None) -> ConsumerBody:
    """Note who speaks the classic protocol, after a member became another, came, or went."""
    was, now = old.classic if old else None, new.classic if new else None
    if was is None and now is None:
        return body
    speaking = body.classic_members
    if old is not None and was is not None:
        speaking = speaking.remove(old.member_id)
    if new is not None and now is not None:
        speaking = speaking.set(new.member_id, True)  # noqa: FBT003 - a set is a map to True
    counts = _with_others(body.classic_protocols, protocol_names(was), protocol_names(now))
    return body._replace(classic_members=speaking, classic_protocols=counts)


def _some(name: K) -> tuple[K, ...]:
    return (name,) if name else ()


def _with_others(counts: PMap[K, int], old: tuple[K, ...], new: tuple[K, ...]) -> PMap[K, int]:
    """Return the counts with these names instead of those."""
    if old == new:
        return counts
    changes: dict[K, int | None] = {}
    for names, by in ((old, -1), (new, 1)):
        for name in names:
            known = changes[name] if name in changes else counts.get(name)
            changes[name] = (known or 0) + by
    return counts.changed({name: count or None for name, count in changes.items()})


def _left(
    group: ConsumerGroup, event: MembersLeft | MembersRemoved, _record: Record
) -> ConsumerGroup:
    return without(group, event.member_ids)


def _expired(group: ConsumerGroup, event: MemberExpired, _record: Record) -> ConsumerGroup:
    return without(group, (event.member_id,))


def without(group: ConsumerGroup, member_ids: Iterable[MemberId]) -> ConsumerGroup:
    """Return the group without these members; all that they owned is free."""
    body = group.body
    for member_id in member_ids:
        member = known(_with_body(group, body), member_id)
        instance = member.instance_id
        body = _spoken(recounted(body, member.profile, _NOBODY), member, None)
        body = body._replace(
            members=body.members.remove(member_id),
            targets=body.targets.remove(member_id),
            settled=body.settled.remove(member_id),
            instances=body.instances.remove(instance) if instance else body.instances,
            owners=_freed(body, (*member.owned, *member.revoking)),
        )
        body = folds.unasked(body, member_id)
    if not body.members:
        body = body._replace(target_ms=NEVER)  # K-P17: the next join need not wait
    return _with_body(group, body)


def _freed(body: ConsumerBody, held: Iterable[Holding]) -> PMap[TopicPartition, MemberId]:
    return body.owners.changed(dict.fromkeys(places(held)))


# --- static members ---


def _released(group: ConsumerGroup, event: InstanceReleased, _record: Record) -> ConsumerGroup:
    """Keep the place of a static member whose process has stopped (K-N2).

    It was asked to give something up: it owns that no more, since it has stopped (K-N23). Who comes
    next may commit what it keeps, whatever epoch it knows (K-J41).
    """
    member = known(group, event.member_id)
    body = folds.unasked(group.body, event.member_id)
    body = body._replace(owners=_freed(body, member.revoking))
    stopped = member._replace(
        epoch=RELEASED,
        previous_epoch=member.epoch,
        owned=holdings.with_epoch(member.owned, 0),
        revoking=(),
        waiting=False,
    )
    stopped = _numbered(stopped, member.life, event.beat)._replace(absence_ms=event.absence_ms)
    return _with_body(group, _put(body, stopped))


def _replaced(group: ConsumerGroup, event: StaticMemberReplaced, record: Record) -> ConsumerGroup:
    """Do the whole swap (K-N6): what the instance owns, and is to own, goes with it.

    A holder that had released the instance has said itself that it stopped, so nothing that it
    wrote can come after it, and the tokens stay. One that had not may still run: there only newer
    tokens exclude it (S12, S13). A new holder that brings protocols speaks the classic one (K-Q7).
    """
    body, old = group.body, known(group, event.old_member_id)
    if old.instance_id != event.instance_id or event.new_member_id in body.members:
        raise InvariantBroken("C14", f"{event.old_member_id!r} cannot become what the event says")
    index = record.position.index
    profile = old.profile._replace(
        client_id=event.profile.client_id,
        client_host=event.profile.client_host,
        rebalance_timeout_ms=event.profile.rebalance_timeout_ms,
    )
    new = old._replace(
        member_id=event.new_member_id,
        profile=profile,
        since_ms=record.log_time_ms,
        epoch=0,
        previous_epoch=0,
        owned=old.owned if old.released else holdings.regranted(old.owned, index),
        revoking=(),
        waiting=False,
        predecessor_ms=event.predecessor_ms,
        classic=_classic_of(event),
        replaced_requests=_replaced_requests(old),
        replaced_life=max(old.life, old.replaced_life),
        life="",
        beat=0,
        unhurried_until_ms=0,
        absence_ms=0,
    )
    until_ms = record.log_time_ms + event.predecessor_ms if event.predecessor_ms else 0
    body = body._replace(predecessors_until_ms=max(body.predecessors_until_ms, until_ms))
    return _with_body(group, _swapped(body, old, _told_one_token(new, record)))


def _told_one_token(member: Member, record: Record) -> Member:
    """Return a member after a grant, or after it began to speak another protocol (S13).

    One of the classic protocol is told one token for all that it owns. All of it is granted anew,
    or a partition that is kept would fall back to an older token as the newest grant goes.
    """
    if member.classic is None:
        return member
    return member._replace(owned=holdings.regranted(member.owned, record.position.index))


def _classic_of(event: StaticMemberReplaced) -> ClassicProfile | None:
    told = event.profile
    if not told.protocols:
        return None
    return ClassicProfile(told.session_timeout_ms, told.protocols, event.request_id)


def _replaced_requests(old: Member) -> tuple[RequestId, ...]:
    if old.classic is None or not old.classic.request_id:
        return old.replaced_requests
    return (*old.replaced_requests, old.classic.request_id)[-REPLACED_REQUESTS_MAX:]


def _swapped(body: ConsumerBody, old: Member, new: Member) -> ConsumerBody:
    target = body.targets.get(old.member_id)
    targets = body.targets.remove(old.member_id)
    if target is not None:
        targets = targets.set(new.member_id, target._replace(member_id=new.member_id))
    owners = _freed(body, old.revoking)
    owners = owners.changed(dict.fromkeys(places(new.owned), new.member_id))
    body = folds.swapped(body, old.member_id, new.member_id)._replace(
        members=body.members.remove(old.member_id),
        settled=body.settled.remove(old.member_id),
        instances=body.instances.set(str(new.instance_id), new.member_id),
        targets=targets,
        owners=owners,
    )
    return folds.overtaken(_put(_spoken(body, old, new), new))


# --- epochs, targets, steps ---


def _epoch_raised(group: ConsumerGroup, event: EpochRaised, record: Record) -> ConsumerGroup:
    if event.epoch != group.generation + 1:
        raise InvariantBroken("A25", f"epoch {event.epoch} follows {group.generation}")
    until_ms = record.log_time_ms + event.predecessor_ms if event.predecessor_ms else 0
    body = group.body._replace(
        digest=event.digest,
        predecessors_until_ms=max(group.body.predecessors_until_ms, until_ms),
    )
    return group._replace(generation=event.epoch, body=body)


def _resolved(group: ConsumerGroup, event: RegexResolved, record: Record) -> ConsumerGroup:
    body = group.body
    if event.regex not in body.regex_users:
        raise InvariantBroken("P3", f"no member has the regular expression {event.regex!r}")
    found = ResolvedRegex(event.regex, event.topics)
    resolved = body._replace(
        regexes=body.regexes.set(event.regex, found),
        regexes_ms=record.log_time_ms,
        regexes_index=event.newest_index,
    )
    return _with_body(group, folds.overtaken(resolved))


def _target_stored(group: ConsumerGroup, event: TargetStored, record: Record) -> ConsumerGroup:
    body = group.body
    if not body.assignment_epoch < event.epoch <= group.generation:
        told = f"a target of epoch {event.epoch} after {body.assignment_epoch}"
        raise InvariantBroken("M5", f"{told}, and the group is at {group.generation}")
    changes = {each.member_id: each if folds.says(each) else None for each in event.targets}
    if not changes.keys() <= body.members.keys():
        raise InvariantBroken("M5", f"a target of strangers: {changes.keys() - set(body.members)}")
    stored = body._replace(
        assignment_epoch=event.epoch,
        target_ms=record.log_time_ms,
        targets=body.targets.changed(changes),
        settled=PMap(),
        client_assignor=event.assignor if event.installed_by else "",
        asked=None,
        late=folds.others(body.late, event.installed_by),
    )
    return _with_body(group, stored)


def _advanced(group: ConsumerGroup, event: MemberAdvanced, record: Record) -> ConsumerGroup:
    body, member = group.body, known(group, event.member_id)
    until_ms = max(0, body.predecessors_until_ms - record.log_time_ms)
    new = holdings.granted(event.granted, event.epoch, record.position.index)
    gone = (*event.asked_back, *event.freed)
    asked = holdings.only(member.owned, event.asked_back)
    advanced = member._replace(
        epoch=event.epoch,
        previous_epoch=member.epoch,
        owned=holdings.joined(holdings.without(member.owned, gone), new),
        revoking=holdings.joined(holdings.without(member.revoking, event.freed), asked),
        waiting=event.waiting,
        predecessor_ms=until_ms if event.granted else member.predecessor_ms,
    )
    if event.granted:
        advanced = _told_one_token(advanced, record)
    advanced = _numbered(advanced, member.life, event.beat)
    moved = body._replace(owners=_moved(body, event))
    return _with_body(group, _put(moved, advanced))


def _moved(body: ConsumerBody, event: MemberAdvanced) -> PMap[TopicPartition, MemberId]:
    """Return who owns what after a step. Raises InvariantBroken if it was another's (K-O8)."""
    owners, member_id = body.owners, event.member_id
    changes: dict[TopicPartition, MemberId | None] = {}
    for lists, owner in ((event.freed, None), (event.granted, member_id)):
        for topic, partitions in lists:
            for number in partitions:
                place = TopicPartition(topic, number)
                was = changes[place] if place in changes else owners.get(place)
                if was != (member_id if owner is None else None):
                    raise InvariantBroken("O8", f"{topic}-{number} belongs to {was!r}")
                changes[place] = owner
    return owners.changed(changes)


FOLDS: Final[dict[type, Callable[[ConsumerGroup, Any, Record], ConsumerGroup]]] = {
    MemberSubscribed: _subscribed,
    StaticMemberReplaced: _replaced,
    InstanceReleased: _released,
    MembersLeft: _left,
    MembersRemoved: _left,
    MemberExpired: _expired,
    EpochRaised: _epoch_raised,
    RegexResolved: _resolved,
    AssignmentRequested: folds.asked,
    TargetStored: _target_stored,
    MemberAdvanced: _advanced,
}
"""The fold of each event of the heartbeat protocol, by the event's class."""
