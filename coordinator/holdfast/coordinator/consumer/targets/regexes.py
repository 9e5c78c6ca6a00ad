"""Regular expressions of a group: when topics are looked up, and what is found (K-P1 to K-P10).

The search is the node's (`effects.ResolveRegexes`), since it takes a library and time; its result
comes back as `InstallRegexes`, and goes to the log if it is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer.state import ConsumerBody, Member
from holdfast.coordinator.consumer.targets import epochs, topics_digest
from holdfast.coordinator.consumer.targets.reconciliation import subscription
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.access import DENY, EVERYONE, NOTHING, TOPIC, rank
from holdfast.coordinator.model.consumer_events import RegexResolved
from holdfast.coordinator.model.effects import InstallRegexes, ResolveRegexes
from holdfast.coordinator.model.ids import MemberId, Principal, TopicName
from holdfast.coordinator.model.volatile import RegexLookup

REFRESH_MIN_MS: Final = 10_000
"""A group's expressions are not looked up more often (K-P5)."""
LOST_MS: Final = 60_000
"""After so long a search without a result counts as lost."""


def refresh(draft: Draft, before: ConsumerBody, member_id: MemberId) -> None:
    """Have the group's expressions looked up, if it is time (K-P5, K-P8), or rights ask for it.

    `before`: the group before the heartbeat of this member, which may have dropped what was found
    last.
    """
    body: ConsumerBody = draft.group.body
    if not body.regex_users:
        return
    if not _is_for_a_stranger(draft, before, member_id) and not _is_time(draft, before):
        return
    newest_index = topics_digest.newest_index(draft.state.topics)
    last = draft.volatile.regex_lookup
    looked_index = 0 if last is None else last.looked_index
    lookup = RegexLookup(
        *(draft.state.log_time_ms, newest_index), under_way=True, looked_index=looked_index
    )
    draft.volatile = draft.volatile._replace(regex_lookup=lookup)
    draft.effects.append(ResolveRegexes(tuple(sorted(body.regex_users))))


def _is_for_a_stranger(draft: Draft, before: ConsumerBody, member_id: MemberId) -> bool:
    """Return whether what was found is used by a principal now for which nobody searched (K-P9).

    A member that had the expression before was looked at then.
    """
    member: Member = draft.group.body.members[member_id]
    regex, was = member.profile.regex, before.members.get(member_id)
    if not draft.state.access_mode or regex not in before.regexes:
        return False
    if was is not None and (was.profile.regex, was.principal) == (regex, member.principal):
        return False
    return not _is_used_by(before, regex, member.principal)


def _is_time(draft: Draft, before: ConsumerBody) -> bool:
    """Return whether to search now; while nothing is resolved, there is nothing to wait for.

    A new leader knows of the last search what it has put on the log.
    """
    body: ConsumerBody = draft.group.body
    stored = RegexLookup(body.regexes_ms, body.regexes_index, under_way=False)
    last = draft.volatile.regex_lookup or stored
    since_ms = draft.state.log_time_ms - max(last.asked_ms, body.regexes_ms)
    if last.under_way:
        return since_ms > LOST_MS
    unresolved = any(
        each not in body.regexes and each not in last.in_vain for each in body.regex_users
    )
    if unresolved and not before.regexes:
        return True
    if since_ms <= REFRESH_MIN_MS:
        return False
    often_ms = settings.of(draft.state, draft.group_id).consumer.regex_refresh_interval_ms
    newer = topics_digest.newest_index(draft.state.topics) > last.newest_index
    return unresolved or newer or since_ms > often_ms


def _is_news(body: ConsumerBody, regex: str, topics: tuple[TopicName, ...]) -> bool:
    """Return whether a member has this expression, and it was not known to match these topics."""
    known = body.regexes.get(regex)
    return regex in body.regex_users and (known is None or known.topics != topics)


def _is_to_own_more(body: ConsumerBody, regex: str) -> bool:
    """Return whether a member with this expression is to own topics that it does not want any more.

    It had another expression before. Until there is another target, nobody gets these (INV-16).
    """
    users = [each for each in body.members.values() if each.profile.regex == regex]
    targets = [(each, body.targets.get(each.member_id)) for each in users]
    return any(
        not subscription(body, each).issuperset(meant.topic for meant in target.partitions)
        for each, target in targets
        if target is not None
    )


def cut(draft: Draft, regex: str, principal: Principal) -> None:
    """Cut what was found for others to what a principal may read that takes their expression.

    The heartbeat that says so may be assigned by it, before a search asks for these rights (K-P9).
    """
    body: ConsumerBody = draft.group.body
    found = body.regexes.get(regex)
    if draft.state.access_mode != DENY or found is None or _is_used_by(body, regex, principal):
        return
    topics = _readable(draft, (principal,), found.topics)
    if topics != found.topics:
        draft.emit(RegexResolved(regex, topics, body.regexes_index), "P9")


def _is_used_by(body: ConsumerBody, regex: str, principal: Principal) -> bool:
    """Return whether a member of a principal has this expression; the first one that has ends it.

    So only a principal that is new to the expression has all members looked at.
    """
    return any(
        each.principal == principal and each.profile.regex == regex
        for each in body.members.values()
    )


def _principals(body: ConsumerBody, regex: str) -> set[Principal]:
    return {each.principal for each in body.members.values() if each.profile.regex == regex}


def _readable(
    draft: Draft, principals: Iterable[Principal], topics: tuple[TopicName, ...]
) -> tuple[TopicName, ...]:
    """Return the topics that all of these may read, by any role, as the grants are now."""
    if draft.state.access_mode != DENY:
        return topics
    for principal in principals:
        known = [acl for acl in draft.state.acls if acl.principal in {principal, EVERYONE}]
        topics = tuple([each for each in topics if rank(known, principal, TOPIC, each) > NOTHING])
    return topics


def _is_newest(draft: Draft, command: InstallRegexes) -> bool:
    """Note that a search has ended, if none that began later has; return whether that is so."""
    last = draft.volatile.regex_lookup
    if last is None:
        return True
    if command.looked_index < last.looked_index:
        return False
    done = last._replace(
        newest_index=command.newest_index,
        under_way=False,
        looked_index=command.looked_index,
        in_vain=last.in_vain.union(command.in_vain),
    )
    draft.volatile = draft.volatile._replace(regex_lookup=done)
    return True


def install(draft: Draft, command: InstallRegexes) -> None:
    """Note what a search has found; expressions that nobody has any more are passed over (K-P3).

    So is what was found before the last result was.
    """
    if not _is_newest(draft, command) or draft.found is None:
        return
    moved = False
    for regex, found in command.resolved:
        body: ConsumerBody = draft.group.body
        topics = _readable(draft, _principals(body, regex), found)  # some came since: K-P9
        if not _is_news(body, regex, topics):
            continue
        known = body.regexes.get(regex)
        draft.emit(RegexResolved(regex, topics, command.newest_index), "P1")
        moved = moved or topics != (known.topics if known else ())  # K-P4
        moved = moved or (known is None and _is_to_own_more(draft.group.body, regex))
    if moved:
        epochs.raise_epoch(draft, "regex", "P1")
