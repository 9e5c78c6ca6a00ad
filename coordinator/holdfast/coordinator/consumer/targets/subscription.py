"""What a member says of itself in a heartbeat, and what of it changes (K-M16 to K-M19)."""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import evolve, usage
from holdfast.coordinator.consumer.client_side import negotiation
from holdfast.coordinator.consumer.client_side.validation import FIELD
from holdfast.coordinator.consumer.state import JOINING, ConsumerBody, ConsumerGroup, Member
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.ids import InstanceId, Life, MemberId
from holdfast.coordinator.model.member_profile import (
    ClassicProfile,
    ClientAssignor,
    ConsumerProfile,
)
from holdfast.coordinator.model.rejections import InvalidRequest

REGEXES_MAX: Final = 32
"""Different regular expressions that the members of a group may have."""


class Change(NamedTuple):
    """What a heartbeat changed of a member's wishes."""

    cause: str = ""
    """Why another target is needed, in the words of `EpochRaised`; "": it is not."""
    resubscribed: bool = False
    """It names other topics, or has another regular expression."""


def update(draft: Draft, command: ConsumerGroupHeartbeat) -> Change:
    """Note what a member says of itself; return what of it asks for more."""
    group: ConsumerGroup = draft.group
    known = group.body.members.get(command.member_id)
    old = ConsumerProfile() if known is None else known.profile
    number = command.life, command.beat
    return note(draft, command.member_id, command.instance_id, said(command, old), number=number)


def note(
    draft: Draft,
    member_id: MemberId,
    instance_id: InstanceId | None,
    new: ConsumerProfile,
    classic: ClassicProfile | None = None,
    number: tuple[Life, int] = ("", 0),
) -> Change:
    """Note what a member is now, if it is another than before, in either protocol.

    `number`: life and number of the heartbeat that says so (S26).
    """
    group: ConsumerGroup = draft.group
    known = group.body.members.get(member_id)
    old = ConsumerProfile() if known is None else known.profile
    if known is not None and new == old and classic == known.classic:
        return Change()
    was, before, alone = group.body, target.assignor_in_force(draft), not group.body.members
    resolved = group.body.regexes.get(new.regex)
    meant = instance_id if known is None else known.instance_id
    joined = known is None
    life, beat = number
    event = MemberSubscribed(
        member_id,
        meant,
        new,
        joined=joined,
        classic=classic,
        life=life,
        beat=beat,
        session_timeout_ms=0 if classic is not None else _session_ms(draft, known),
    )
    draft.emit(event, "M5" if joined else "M16")
    resubscribed = new.topics != old.topics or new.regex != old.regex
    dropped_or_known = new.regex != old.regex and (not new.regex or resolved is not None)
    if new.topics != old.topics or dropped_or_known:  # K-P1, K-P2, K-P6
        return Change("joined" if known is None else "subscription", resubscribed=True)
    if alone or not _asks_anew(draft, was, before, member_id):
        return Change("", resubscribed)
    return Change("assignor", resubscribed)  # K-M19


def _asks_anew(draft: Draft, was: ConsumerBody, before: str, member_id: MemberId) -> bool:
    """Return whether another assignor is in force now, or the one that is has heard something new.

    While all members share one of their own, it does not count which of the service's they want.
    """
    body: ConsumerBody = draft.group.body
    if was.client_assignor_kinds or body.client_assignor_kinds:
        if negotiation.asks_anew(was, body, member_id):
            return True
        if negotiation.name_of(body):
            return False
    return target.assignor_in_force(draft) != before


def _session_ms(draft: Draft, known: Member | None) -> int:
    """Return the session timeout of who comes; of who is there it may change later (S11)."""
    if known is not None:
        return 0
    return settings.of(draft.state, draft.group_id).consumer.session_timeout_ms


def said(command: ConsumerGroupHeartbeat, old: ConsumerProfile) -> ConsumerProfile:
    """Return what a member is after a heartbeat; what that leaves unsaid is as before."""
    timeout_ms = command.rebalance_timeout_ms
    topics, assignor = command.topics, command.server_assignor
    return ConsumerProfile(
        client_id=command.caller.client_id,
        client_host=command.caller.client_host,
        rack_id=old.rack_id if command.rack_id is None else command.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        topics=old.topics if topics is None else tuple(sorted(set(topics))),  # K-M17
        regex=old.regex if command.regex is None else command.regex,
        server_assignor=old.server_assignor if assignor is None else assignor,
        client_assignors=_client_assignors(command, old),
    )


def _client_assignors(
    command: ConsumerGroupHeartbeat, old: ConsumerProfile
) -> tuple[ClientAssignor, ...]:
    """Return what a member can run; a process that joins and does not say so can run none."""
    if command.client_assignors is not None:
        return command.client_assignors
    return () if command.member_epoch == JOINING else old.client_assignors


def too_much(draft: Draft, command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    """Refuse a subscription with which the group would have more than it may (S7)."""
    if command.topics is None and command.regex is None and command.client_assignors is None:
        return None
    group: ConsumerGroup | None = draft.found
    known = None if group is None else group.body.members.get(command.member_id)
    old = ConsumerProfile() if known is None else known.profile
    return beyond(draft, command.member_id, said(command, old))


def beyond(draft: Draft, member_id: MemberId, new: ConsumerProfile) -> InvalidRequest | None:
    """Refuse what a member is to be, in either protocol, if it is too much with all the others."""
    group: ConsumerGroup | None = draft.found
    body = ConsumerBody() if group is None else group.body
    known = body.members.get(member_id)
    old = ConsumerProfile() if known is None else known.profile
    same_topics = new.topics == old.topics and new.regex == old.regex
    if same_topics and new.client_assignors == old.client_assignors:
        return None
    members = len(body.members) + (known is None)
    return (
        _too_many_regexes(body, old, new)
        or _too_long(draft, body, old, new)
        or _too_large(draft, body, old, new, members)
    )


def _too_many_regexes(
    body: ConsumerBody, old: ConsumerProfile, new: ConsumerProfile
) -> InvalidRequest | None:
    users = body.regex_users
    given_up = users.get(old.regex) == 1
    if not new.regex or new.regex in users or len(users) - given_up < REGEXES_MAX:
        return None
    problem = f"the group has {len(users)} regular expressions, {REGEXES_MAX} are allowed"
    return InvalidRequest("subscribed_topic_regex", problem)


def _too_long(
    draft: Draft, body: ConsumerBody, old: ConsumerProfile, new: ConsumerProfile
) -> InvalidRequest | None:
    """Check that what all members want can be written at once (S7)."""
    pool = settings.of(draft.state, draft.group_id).metadata_pool
    size = usage.said_by_all(body) - usage.said(old) + usage.said(new)
    if size <= pool:
        return None
    most = f"{pool} (group.max_size x group.metadata_bytes_max)"
    problem = f"all members together would name topics of {size} bytes, allowed are {most}"
    if new.client_assignors == old.client_assignors:
        return InvalidRequest("subscribed_topic_names", problem)
    problem = f"all members together would say {size} bytes for them and topics, allowed are {most}"
    return InvalidRequest(FIELD, problem)


def _too_large(
    draft: Draft, body: ConsumerBody, old: ConsumerProfile, new: ConsumerProfile, members: int
) -> InvalidRequest | None:
    """Check that a target for all members can be written at once (S7)."""
    pool = usage.target_pool(settings.of(draft.state, draft.group_id))
    wanted = evolve.recounted(body, old, new)
    size = usage.target_most(wanted, draft.state.topics, members)
    if size <= pool:
        return None
    share = f"group.max_size x (group.assignment_bytes_max + {usage.MEMBER_IN_POOL})"
    problem = f"a target for all members might have {size} bytes, allowed are {pool} ({share})"
    return InvalidRequest("subscribed_topic_names", problem)
