"""INV-8: each partition of each subscribed topic of a Stable group has one owner, or a reason.

Two questions. Of every assignment in the log: does it give each partition to exactly one member of
the group that asked for its topic? And at the end, when faults are over: does every member that is
alive act on what the group says is its own? Reasons for an unowned partition: its topic is not
there, or grew after the generation began; a cooperative assignor gives it to nobody while a member
says that it owns it (ADR 10), unless the generation that it names had not given it to that member;
its holder is silent, and its session has not run out yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.log_view import (
    STABLE,
    View,
    by_group,
    label,
    records_of,
    views,
)
from holdfast.chaos.evidence.owned_partitions import COOPERATIVE, OwnedPartitions, Partition
from holdfast.chaos.evidence.rebalances import rebalances
from holdfast.chaos.evidence.rights import rights
from holdfast.chaos.evidence.topics import Sizes, Topics, missing
from holdfast.chaos.history.happenings import Happening, Phase, Recorded, Surrendered

INVARIANT: Final = "I8"


def check(history: Sequence[Happening]) -> Verdict:
    """Find partitions with two owners, or with none and no reason."""
    records = records_of(history)
    counts: Counter[str] = Counter({"assignments": 0, "partitions": 0, "unowned with a reason": 0})
    found = [*_assignments(records, counts), *_at_the_end(history, records, counts)]
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


# --- the end ---


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
    for group, own in by_group(each for each in records if each.at_us <= end_us).items():
        *_, (_, last, view) = views(own)
        if view.state != STABLE:
            continue
        for member_id, partitions in view.assigned.items():
            idle = [each for each in partitions if (group, member_id, *each) not in acting]
            counts["partitions"] += len(partitions)
            if not idle or member_id not in view.members:
                continue
            session_us = view.members[member_id].session_timeout_ms * 1_000
            if beats.get((group, member_id), 0) <= max(end_us - session_us // 2, last.at_us):
                counts["unowned with a reason"] += len(idle)
                continue
            what = (
                f"{label((group, *idle[0]))} and {len(idle) - 1} more belong to {member_id}, which "
                "is alive at the end, but does not act on them"
            )
            yield Violation(INVARIANT, end_us, what)


def _last_beats(calls: Iterable[Call], history: Sequence[Happening]) -> dict[tuple[str, str], int]:
    """Find when each member that has not gone last sent a heartbeat answered NONE."""
    found: dict[tuple[str, str], int] = {}
    whose: dict[tuple[str, str], tuple[str, str]] = {}
    for call in calls:
        if call.op == "Heartbeat" and call.ok and not call.invoked.arguments.get("release"):
            found[call.group, call.member_id] = call.start_us
            whose[call.invoked.who, call.group] = (call.group, call.member_id)
    for each in history:
        if isinstance(each, Surrendered):
            place = whose.get((each.who, each.group), ("", ""))
            if found.get(place, 0) <= each.at_us:
                found.pop(place, None)
    return found
