"""INV-8: each partition of each subscribed topic of a Stable group has one owner, or a reason.

Of every assignment in the log, and every target of the heartbeat protocol: does it give each
partition to exactly one member of the group that asked for its topic? Of every step there, and of
every conversion: does any partition belong to two, or, once the group is Stable, to nobody? And at
the end, when faults are over: does every member that is alive act on what the group says is its
own? Reasons for an unowned partition: its topic is not there, or grew after the generation or epoch
began; a cooperative assignor gives it to nobody while a member says that it owns it (ADR 10),
unless the generation that it names had not given it to that member; its holder is silent, and its
session has not run out yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.heartbeats.group import HeartbeatGroup
from holdfast.chaos.evidence.log_view import (
    NOTHING,
    STABLE,
    Known,
    View,
    by_group,
    fold,
    label,
    records_of,
    views,
)
from holdfast.chaos.evidence.owned_partitions import COOPERATIVE, OwnedPartitions, Partition
from holdfast.chaos.evidence.rebalances import rebalances
from holdfast.chaos.evidence.rights import rights
from holdfast.chaos.evidence.sessions import session_us, sessions_told
from holdfast.chaos.evidence.topics import Sizes, Topics, missing
from holdfast.chaos.history.happenings import Happening, Phase, Recorded, Surrendered

INVARIANT: Final = "I8"


def check(history: Sequence[Happening]) -> Verdict:
    """Find partitions with two owners, or with none and no reason."""
    records = records_of(history)
    counts: Counter[str] = Counter({"assignments": 0, "partitions": 0, "unowned with a reason": 0})
    found = [
        *_assignments(records, counts),
        *_targets(records, counts),
        *_at_the_end(history, records, counts),
    ]
    return Verdict(counts, found)


# --- every assignment ---


class _Begun(NamedTuple):
    """The group, topics and owned partitions when a generation began."""

    view: View
    sizes: Sizes
    owned: frozenset[Partition]


def _begun(view: View, owned: OwnedPartitions, topics: Topics) -> _Begun:
    return _Begun(view, dict(topics.sizes), owned.confirmed(view.members))


def _assignments(records: Iterable[Recorded], counts: Counter[str]) -> Iterator[Violation]:
    for each in rebalances(records, _begun):
        for what in _wrong(each.begun, each.after, each.topics, counts):
            where = f"group {each.record.group!r}, generation {each.after.generation}: {what}"
            yield Violation(INVARIANT, each.record.at_us, where)


def _wrong(begun: _Begun, after: View, topics: Topics, counts: Counter[str]) -> Iterator[str]:
    asked = _asked(begun.view, after)
    if not any(asked.values()):
        return  # opaque protocols: nobody but the assignor knows what there is to own
    wanted = {topic for own in asked.values() for topic in own}
    given = Counter(each for own in after.assigned.values() for each in own)
    counts["assignments"] += bool(given or missing(wanted, topics.sizes, given))
    counts["partitions"] += len(given)
    yield from _given_wrongly(after, asked, given, topics)
    sure = {topic: min(size, topics.sizes.get(topic, 0)) for topic, size in begun.sizes.items()}
    unsure = len(missing(wanted, topics.sizes, given)) - len(missing(wanted, sure, given))
    counts["unowned with a reason"] += max(0, unsure)
    for topic, number in missing(wanted, sure, given):
        if COOPERATIVE in after.protocol and (topic, number) in begun.owned:
            counts["unowned with a reason"] += 1
        else:
            yield f"{topic}/{number} is given to nobody"


def _asked(begun: View, after: View) -> dict[str, set[str]]:
    """Return the topics each member asked for as the generation began or since (a swap, K-B6)."""
    found: dict[str, set[str]] = {}
    for view in (begun, after):
        for member in view.members.values():
            found.setdefault(member.member_id, set()).update(member.offers.get(view.protocol) or ())
    for member in after.members.values():  # a swapped member inherits what was asked before it
        for other in begun.members.values():
            if other.identity == member.identity:
                found[member.member_id] |= found[other.member_id]
    return found


def _given_wrongly(
    after: View, asked: Mapping[str, set[str]], given: Counter[tuple[str, int]], topics: Topics
) -> Iterator[str]:
    for (topic, number), times in given.items():
        if times > 1:
            yield f"{topic}/{number} is given {times} times"
        if topic in topics.largest and number >= topics.largest[topic]:
            yield f"{topic}/{number} is given, but there never was such a partition"
    for member_id, own in after.assigned.items():
        if member_id not in after.members:
            yield f"{member_id} is given partitions, but is no member"
        elif strange := {topic for topic, _ in own} - asked.get(member_id, set()):
            yield f"{member_id} is given {sorted(strange)}, which it did not ask for"


# --- every target and step of the heartbeat protocol ---


def _targets(records: Iterable[Recorded], counts: Counter[str]) -> Iterator[Violation]:
    """Find what is wrong in targets and steps.

    An entry was decided on the group's entry before it, at least: whatever topics were by then, a
    target has to have. What changes them meanwhile may stand between the two.
    """
    topics = Topics()
    groups: dict[str, View] = {}
    raised: dict[str, Sizes] = {}
    last: dict[str, Recorded] = {}
    seen: dict[str, Sizes] = {}
    now: dict[str, Sizes] = {}
    for record in records:
        topics.follow(record)
        if not record.group:
            continue
        before, entry = groups.get(record.group, NOTHING), last.get(record.group, record)
        if record.index > entry.index:
            yield from _stable(before, entry, raised.get(record.group, {}), topics, counts)
            seen[record.group] = now[record.group]
        now[record.group] = dict(topics.sizes)
        after = groups[record.group] = fold(before, record)
        last[record.group] = record
        if after.beats is None or record.kind not in _TOUCHES_OWNERS:
            continue
        if record.kind == "EpochRaised":
            raised[record.group] = seen.get(record.group, {})
        elif record.kind == "TargetStored":
            begun = raised.get(record.group, {})
            for what in _wrong_target(after.beats, begun, topics, counts):
                yield _of_target(record, after, what)
        for partition, owners in _owned_twice(after.beats):
            what = f"{partition[0]}/{partition[1]} belongs to {' and '.join(owners)}"
            yield _of_target(record, after, what)


def _stable(
    view: View, record: Recorded, begun: Sizes, topics: Topics, counts: Counter[str]
) -> Iterator[Violation]:
    """Find what nobody owns in a group that is Stable behind a whole entry, whose last is `record`.

    Topics that grow count from the next epoch on, which has to come (INV-17).
    """
    group = view.beats
    if group is None or view.state != STABLE or record.kind not in _TOUCHES_OWNERS:
        return
    if group.by_member:
        return  # its assignor promises nothing
    counts["assignments"] += 1
    wanted = {topic for member_id in group.standings for topic in group.wants(member_id)}
    sure = {topic: min(size, topics.sizes.get(topic, 0)) for topic, size in begun.items()}
    for topic, number in missing(wanted, sure, dict(group.owners())):
        yield _of_target(record, view, f"it is Stable, and {topic}/{number} is nobody's")


_TOUCHES_OWNERS: Final = frozenset(
    {
        *("EpochRaised", "TargetStored", "MemberAdvanced", "StaticMemberReplaced"),
        *("MembersLeft", "MembersRemoved", "MemberExpired", "GroupConverted"),
    }
)


def _of_target(record: Recorded, view: View, what: str) -> Violation:
    where = f"group {record.group!r}, epoch {view.generation}, index {record.index}"
    return Violation(INVARIANT, record.at_us, f"{where}: {what}")


def _wrong_target(
    group: HeartbeatGroup, begun: Sizes, topics: Topics, counts: Counter[str]
) -> Iterator[str]:
    """Find what a target gives twice, to nobody, or to somebody who did not ask for it."""
    asked = {member_id: set(group.wants(member_id)) for member_id in group.standings}
    wanted = {topic for own in asked.values() for topic in own}
    given = Counter(each for own in group.targets.values() for each in own)
    counts["assignments"] += bool(given or missing(wanted, topics.sizes, given))
    counts["partitions"] += len(given)
    assigned = {member_id: tuple(own) for member_id, own in group.targets.items()}
    members = dict.fromkeys(group.standings, _NOBODY)
    yield from _given_wrongly(View(members=members, assigned=assigned), asked, given, topics)
    if group.by_member:
        return  # what the assignor of a member leaves to nobody, it means to
    sure = {topic: min(size, topics.sizes.get(topic, 0)) for topic, size in begun.items()}
    for topic, number in missing(wanted, sure, given):
        yield f"{topic}/{number} is nobody's in the target"


_NOBODY: Final = Known("", "", 0, 0, {})


def _owned_twice(group: HeartbeatGroup) -> Iterator[tuple[Partition, list[str]]]:
    owners: dict[Partition, list[str]] = {}
    for partition, member_id in group.owners():
        owners.setdefault(partition, []).append(member_id)
    yield from ((partition, who) for partition, who in owners.items() if len(who) > 1)


# --- the end ---

_BEATS: Final = frozenset({"Heartbeat", "ConsumerGroupHeartbeat"})


def _at_the_end(
    history: Sequence[Happening], records: Sequence[Recorded], counts: Counter[str]
) -> Iterator[Violation]:
    """Check what members act on at the phase `end`; skip a history without phases."""
    end_us = max(
        (each.at_us for each in history if isinstance(each, Phase) and each.name == "end"),
        default=None,
    )
    if end_us is None:
        return
    acting = {
        (right.holder[1], right.holder[2], *right.partition[1:])
        for right in rights(history)
        if right.start_us <= end_us < right.end_us
    }
    beats = _last_beats(calls_of(history), history)
    told = sessions_told(calls_of(history))
    for group, own in by_group(each for each in records if each.at_us <= end_us).items():
        *_, (_, last, view) = views(own)
        if view.state != STABLE:
            continue
        for member_id, partitions in _shares(view).items():
            idle = [each for each in partitions if (group, member_id, *each) not in acting]
            counts["partitions"] += len(partitions)
            if not idle or member_id not in view.members:
                continue
            silent_us = session_us(told, group, view.members[member_id]) // 2
            if beats.get((group, member_id), 0) <= max(end_us - silent_us, last.at_us):
                counts["unowned with a reason"] += len(idle)
                continue
            what = (
                f"{label((group, *idle[0]))} and {len(idle) - 1} more belong to {member_id}, which "
                "is alive at the end, but does not act on them"
            )
            yield Violation(INVARIANT, end_us, what)


def _shares(view: View) -> Mapping[str, Collection[Partition]]:
    """Return what the group says that each member owns."""
    if view.beats is None:
        return view.assigned
    return {name: tuple(each.owned) for name, each in view.beats.standings.items()}


def _last_beats(calls: Iterable[Call], history: Sequence[Happening]) -> dict[tuple[str, str], int]:
    """Find when each member that has not gone last sent a heartbeat answered NONE."""
    found: dict[tuple[str, str], int] = {}
    whose: dict[tuple[str, str], tuple[str, str]] = {}
    for call in calls:
        if call.op in _BEATS and call.ok and call.result.get("generation", 0) >= 0:
            if call.invoked.arguments.get("release"):
                continue
            found[call.group, call.member_id] = call.start_us
            whose[call.invoked.who, call.group] = (call.group, call.member_id)
    for each in history:
        if isinstance(each, Surrendered):
            place = whose.get((each.who, each.group), ("", ""))
            if found.get(place, 0) <= each.at_us:
                found.pop(place, None)
    return found
