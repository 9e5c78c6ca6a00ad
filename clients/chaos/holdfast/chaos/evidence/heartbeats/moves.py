"""What nothing asked for in groups of the heartbeat protocol: raised epochs, and moved partitions.

A raise of the epoch says its cause on the log, and what it names has to have happened. A target is
computed from who is there, what they want and how large topics are: where none of it has changed,
nobody loses anything. Knows no invariant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.evidence.balance import Owners, Share, moved, needed
from holdfast.chaos.evidence.calls import Call
from holdfast.chaos.evidence.heartbeats.group import HeartbeatGroup
from holdfast.chaos.evidence.log_view import NOTHING, View, fold, views
from holdfast.chaos.evidence.owned_partitions import Partition
from holdfast.chaos.evidence.topics import Topics
from holdfast.chaos.history.happenings import Recorded


class Needless(NamedTuple):
    """Something that happened for nothing."""

    at_us: int
    what: str


# --- causes ---

_GONE: Final = {"left": "MembersLeft", "removed": "MembersRemoved", "expired": "MemberExpired"}
"""The event that stands before a raise of the epoch, by the cause that this has."""


def needless_epochs(
    records: Sequence[Recorded], calls: Sequence[Call], counts: Counter[str]
) -> Iterator[Needless]:
    """Find raises of the epoch that nothing asked for, and conversions that moved something."""
    changed: dict[int, set[str]] = defaultdict(set)
    digest = ""
    for before, record, after in views(records):
        if record.kind == "GroupConverted":
            counts["conversions"] += 1
            yield from _moved_by_a_conversion(before, record, after)
            digest = ""  # the new type has not looked at topics yet
        if before.beats is None:
            continue
        changed[record.index].add(record.kind)
        if record.kind == "MemberSubscribed" and _wants_other(before, after, record):
            changed[record.index].add("other wishes")
        if record.kind != "EpochRaised":
            continue
        counts["epochs"] += 1
        cause, told = record.fields["cause"], record.fields["digest"]
        known = changed[record.index]
        if not _is_cause(cause, known, record, calls, other_topics=told != digest):
            what = f"group {record.group!r} raised its epoch to {after.generation} at index "
            what += f"{record.index} for {cause!r}, and nothing of the kind had happened"
            yield Needless(record.at_us, what)
        digest = told


def _wants_other(before: View, after: View, record: Recorded) -> bool:
    """Return whether a member says that it wants other topics than before."""
    member_id = record.fields["member_id"]
    was = before.beats.standings.get(member_id) if before.beats else None
    now = after.beats.standings[member_id] if after.beats else None
    return was is None or now is None or (was.topics, was.regex) != (now.topics, now.regex)


def _is_cause(
    cause: str, entry: set[str], record: Recorded, calls: Sequence[Call], *, other_topics: bool
) -> bool:
    """Return whether what a record says for its cause is so. `entry`: what its entry has so far."""
    if cause in _GONE:
        return _GONE[cause] in entry
    if cause in {"joined", "subscription"}:
        return "other wishes" in entry
    if cause == "topics":
        return other_topics
    if cause == "asked":
        known = {call.request_id for call in calls}
        strange = any(each not in known for each in record.request_ids)
        return strange or any(_triggers(call, record) for call in calls)
    return True  # an assignor that is preferred now; topics of a regular expression


def _triggers(call: Call, record: Recorded) -> bool:
    if call.op != "TriggerRebalance":
        return False
    named = bool(call.request_id) and call.request_id in record.request_ids
    return named or call.start_us <= record.at_us <= call.end_us


def _moved_by_a_conversion(before: View, record: Recorded, after: View) -> Iterator[Needless]:
    """Find members that own less once their group has changed its protocol (K-Q2, K-Q12)."""
    was, now = _owned(before), _owned(after)
    for member_id, own in was.items():
        if member_id in after.members and (lost := sorted(own - now.get(member_id, frozenset()))):
            what = f"{member_id} of {record.group!r} lost {lost[0][0]}/{lost[0][1]} and "
            what += f"{len(lost) - 1} more as its group changed its protocol"
            yield Needless(record.at_us, what)


def _owned(view: View) -> dict[str, frozenset[Partition]]:
    if view.beats is None:
        return {name: frozenset(own) for name, own in view.assigned.items()}
    return {name: frozenset(each.held) for name, each in view.beats.standings.items()}


# --- moves ---


class _Asked(NamedTuple):
    """What a target is computed from, besides the one before it."""

    wishes: frozenset[tuple[str, frozenset[str]]]
    """Each member's topics."""
    sizes: frozenset[tuple[str, int, int]]
    """Of these topics; and the entry that changed one, if perhaps it was not known yet, or 0."""
    assignor: str
    by_member: bool


def needless_moves(records: Iterable[Recorded], counts: Counter[str]) -> Iterator[Needless]:
    """Find targets that move partitions between those who stay without need."""
    topics = Topics()
    groups: dict[str, View] = {}
    last: dict[str, _Asked] = {}
    known: dict[str, int] = {}  # the entry before each group's newest: it was decided after that
    for record in records:
        topics.follow(record)
        if not record.group:
            continue
        before = groups.get(record.group, NOTHING)
        after = groups[record.group] = fold(before, record)
        if record.index != before.index:
            known[record.group] = before.index
        if record.kind == "GroupConverted":
            last.pop(record.group, None)  # what its members brought along is no target of the last
        if record.kind != "TargetStored" or after.beats is None:
            continue
        asked = _asked(after.beats, topics, known[record.group])
        held = {p: who for p, who in _by_target(before).items() if topics.may_have(p)}
        share = Share(_by_target(after), frozenset(after.members))
        same = asked == last.get(record.group) and not asked.by_member
        most = 0 if same else _most(asked, held, share)
        last[record.group] = asked
        if most is None:
            continue
        counts["moves judged"] += len(held)
        if (count := moved(held, share, "")) > most:
            what = f"group {record.group!r}, epoch {after.generation}: {count} partitions moved "
            what += f"between members that stayed, {most} had to"
            yield Needless(record.at_us, what)


def _asked(group: HeartbeatGroup, topics: Topics, known: int) -> _Asked:
    """Return what a target is computed from that was decided after the entry `known`.

    How much of what came to the log between that entry and its own was known then, nobody can say:
    a group's batch waits for the one before it, and for nothing else (S2).
    """
    wishes = frozenset((each, group.wants(each)) for each in group.standings)
    wanted = frozenset(topic for _, own in wishes for topic in own)
    changed = {name: topics.changed[name] for name in wanted if name in topics.changed}
    sizes = frozenset(
        (name, topics.sizes.get(name, 0), index if index > known else 0)
        for name, index in changed.items()
    )
    return _Asked(wishes, sizes, group.assignor, group.by_member)


def _most(asked: _Asked, held: Owners, share: Share) -> int | None:
    """Return how many partitions a target may move; None: its assignor promises nothing.

    `uniform` gives one more to members in an order of its own, however much they had (K-P13).
    """
    if asked.by_member or asked.assignor != "uniform" or len({own for _, own in asked.wishes}) != 1:
        return None
    over = len(share.owners) % max(1, len(share.identities))
    return needed(held, share) + min(over, len(share.identities) - over)


def _by_target(view: View) -> Owners:
    """Return who is to own each partition."""
    targets = view.beats.targets if view.beats else {}
    return {partition: name for name, own in targets.items() for partition in own}
