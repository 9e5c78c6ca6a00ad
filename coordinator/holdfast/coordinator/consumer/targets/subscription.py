"""What a member says of itself in a heartbeat, and what of it changes (K-M16 to K-M19)."""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import usage
from holdfast.coordinator.consumer.state import ConsumerGroup
from holdfast.coordinator.consumer.targets import target
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.ids import InstanceId, MemberId
from holdfast.coordinator.model.member_profile import ClassicProfile, ConsumerProfile
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
    return note(draft, command.member_id, command.instance_id, said(command, old))


def note(
    draft: Draft,
    member_id: MemberId,
    instance_id: InstanceId | None,
    new: ConsumerProfile,
    classic: ClassicProfile | None = None,
) -> Change:
    """Note what a member is now, if it is another than before, in either protocol."""
    group: ConsumerGroup = draft.group
    known = group.body.members.get(member_id)
    old = ConsumerProfile() if known is None else known.profile
    if known is not None and new == old and classic == known.classic:
        return Change()
    before, alone = target.assignor_in_force(draft), not group.body.members
    resolved = group.body.regexes.get(new.regex)
    meant = instance_id if known is None else known.instance_id
    event = MemberSubscribed(member_id, meant, new, joined=known is None, classic=classic)
    draft.emit(event, "M5" if known is None else "M16")
    resubscribed = new.topics != old.topics or new.regex != old.regex
    dropped_or_known = new.regex != old.regex and (not new.regex or resolved is not None)
    if new.topics != old.topics or dropped_or_known:  # K-P1, K-P2, K-P6
        return Change("joined" if known is None else "subscription", resubscribed=True)
    if alone or target.assignor_in_force(draft) == before:
        return Change("", resubscribed)
    return Change("assignor", resubscribed)  # K-M19


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
    )


def too_much(draft: Draft, command: ConsumerGroupHeartbeat) -> InvalidRequest | None:
    """Refuse a subscription with which the group would have more than it may (S7)."""
    if not command.topics and not command.regex:
        return None
    group: ConsumerGroup | None = draft.found
    users = group.body.regex_users if group else {}
    if command.regex and command.regex not in users and len(users) >= REGEXES_MAX:
        problem = f"the group has {len(users)} regular expressions, {REGEXES_MAX} are allowed"
        return InvalidRequest("subscribed_topic_regex", problem)
    most = settings.of(draft.state, draft.group_id).metadata_pool
    size = usage.named(command.topics or ())
    if size > most:
        problem = f"{size} bytes of names, {most} are allowed"
        return InvalidRequest("subscribed_topic_names", problem)
    return None
