"""INV-9: partitions move only if they must.

A rebalance has a cause: somebody joined, went, asked for something else, the group leader came
back, or an operator wanted it. A change of the leader is none, nor a static restart within its
session with the same wishes (KIP-345), nor the repetition of a request (S14). Where a sticky
assignor shares out topics that all members want, no more partitions change hands than balance
within one needs. That is counted over what the assignor was told when the generation began: a
partition is the member's that names the latest generation in which it owned it (KIP-792).

In the heartbeat protocol the same is asked of each raise of the epoch, whose record says its cause:
a static process that stops (-2) and returns is none, nor is a change of the leader. The assignor
`uniform` moves no more than balance needs, and what its own order adds to that; a target of the
same members with the same wishes moves nothing, and neither does a conversion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.balance import Owners, Share, moved, needed
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.heartbeats.moves import Needless, needless_epochs, needless_moves
from holdfast.chaos.evidence.log_view import (
    COMPLETING,
    NOTHING,
    REMOVALS,
    STABLE,
    View,
    by_group,
    records_of,
    views,
)
from holdfast.chaos.evidence.owned_partitions import ASKS, OwnedPartitions, Partition
from holdfast.chaos.evidence.rebalances import rebalances
from holdfast.chaos.evidence.topics import Sizes, Topics
from holdfast.chaos.history.happenings import Fields, Happening, Recorded, Role

INVARIANT: Final = "I9"

_CAUSES: Final = frozenset(
    {
        *("MemberJoined", "MemberUpdated", "MembersLeft", "MembersRemoved", "MemberExpired"),
        *("MemberRefused", "GroupEmptied"),
    }
)
"""What a rebalance is opened for; recorded in the same entry, behind it."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find rebalances without a cause, and partitions that moved without need."""
    calls = calls_of(history)
    terms = [each for each in history if isinstance(each, Role) and each.role == "leader"]
    counts: Counter[str] = Counter({"rebalances": 0, "moves judged": 0, "swaps": 0})
    counts |= Counter({"epochs": 0, "conversions": 0})
    found: list[Violation] = []
    everything = records_of(history)
    for group, records in by_group(everything).items():
        if group:
            own = [call for call in calls if call.group == group]
            found += _rebalances(records, own, terms, counts)
            found += _told(needless_epochs(records, own, counts))
    found += [*_moves(everything, counts), *_told(needless_moves(everything, counts))]
    return Verdict(counts, found)


def _told(found: Iterable[Needless]) -> Iterator[Violation]:
    return (Violation(INVARIANT, *each) for each in found)


# --- causes ---


def _rebalances(
    records: Sequence[Recorded], calls: Sequence[Call], terms: Sequence[Role], counts: Counter[str]
) -> Iterator[Violation]:
    entries: dict[int, list[Recorded]] = {}
    for record in records:
        entries.setdefault(record.index, []).append(record)
    served: dict[str, int] = {}
    made: dict[str, set[str]] = defaultdict(set)
    stable_us = 0
    leader = ""
    entered = NOTHING
    wishes = _Wishes()
    for before, record, after in views(records):
        entered = before if record.index != before.index else entered
        leader = _group_leader(leader, record)
        wishes.follow(record)
        if record.kind == "StaticMemberReplaced":
            counts["swaps"] += 1
        if record.kind == "RebalanceStarted":
            counts["rebalances"] += 1
            again = [
                each for each in record.request_ids if served.get(each, record.index) < record.index
            ]
            cause = wishes.changed_for(record)
            cause = cause or _cause(entered, record, entries[record.index], calls, leader)
            if again or not cause:
                yield _needless(
                    record, again, [r for r in terms if stable_us < r.at_us <= record.at_us]
                )
        for request_id in record.request_ids:
            served.setdefault(request_id, record.index)
        _forget_the_gone(served, made, record)
        stable_us = record.at_us if after.state == STABLE else stable_us


class _Wishes:
    """What members ask for and own: a follower that changes it begins a rebalance.

    So does a cooperative member that joins again without partitions that others wait for (K-A14,
    KIP-429).
    """

    def __init__(self) -> None:
        self._known: dict[str, Fields] = {}
        self._changed: tuple[int, str] = (0, "")

    def follow(self, record: Recorded) -> None:
        name = ASKS.get(record.kind)
        if name is None:
            return
        member_id, asked = record.fields[name], record.fields["protocols"]
        if record.kind == "MemberUpdated" and self._known.get(member_id) != asked:
            self._changed = record.index, member_id
        self._known[member_id] = asked

    def changed_for(self, start: Recorded) -> bool:
        """Return whether the entry that opens a rebalance says first that its member changed."""
        return self._changed == (start.index, start.fields["member_id"])


def _forget_the_gone(served: dict[str, int], made: dict[str, set[str]], record: Recorded) -> None:
    """Forget the joins of a member that is gone, since a repetition makes a new member (S14).

    The joins of a swapped-out member are forgotten when the last of those in its place is gone.
    """
    fields = record.fields
    joined = fields.get("new_member_id") or fields.get("member_id")
    if record.kind == "StaticMemberReplaced":
        made[fields["new_member_id"]] |= made.pop(fields["old_member_id"], set())
    if record.kind in {"MemberJoined", "StaticMemberReplaced", "MemberUpdated"} and joined:
        made[joined].update(record.request_ids)
    elif record.kind == "GenerationStarted":
        for each in fields.get("rejoined", ()):
            made[each["member_id"]].add(each["request_id"])
    elif record.kind in REMOVALS:
        for member_id in fields.get("member_ids") or [fields["member_id"]]:
            for request_id in made.pop(member_id, ()):
                served.pop(request_id, None)


def _group_leader(leader: str, record: Recorded) -> str:
    if record.kind == "GenerationStarted":
        return str(record.fields["leader"])
    if record.kind == "StaticMemberReplaced" and record.fields["old_member_id"] == leader:
        return str(record.fields["new_member_id"])
    return leader


def _cause(
    before: View, start: Recorded, entry: Sequence[Recorded], calls: Sequence[Call], leader: str
) -> bool:
    """Return whether an opened rebalance has a cause; `before`: the group before its entry."""
    if before.state not in {STABLE, COMPLETING}:
        return True  # the first members of an empty group
    if any(each.kind in _CAUSES for each in entry if each.ordinal > start.ordinal):
        return True
    if any(each.kind == "GroupConverted" for each in entry if each.ordinal < start.ordinal):
        return True  # all join again, now as members of a classic group (K-Q12)
    if any(_asks_for_more(before, each) for each in entry):
        return True
    known = {call.request_id for call in calls}
    if any(each not in known for each in start.request_ids):
        return True  # a stranger's request, of which the history knows nothing else
    return any(_wanted(call, start, leader) for call in calls)


def _asks_for_more(view: View, record: Recorded) -> bool:
    """Return whether a record is a swap whose new holder asks for something else (K-B6)."""
    if record.kind != "StaticMemberReplaced":
        return False
    old = view.members.get(record.fields["old_member_id"])
    if old is None:
        return True
    offers = {
        each["name"]: None if each["topics"] is None else tuple(each["topics"])
        for each in record.fields["protocols"]
    }
    return offers != dict(old.offers) or view.state == COMPLETING


def _wanted(call: Call, start: Recorded, leader: str) -> bool:
    """Return whether a call is a cause of the rebalance.

    An operator's wish, the group leader's return, or a leave before the member had joined (K-G13).
    """
    if call.op not in {"TriggerRebalance", "LeaveGroup", "JoinGroup"}:
        return False
    if call.op == "JoinGroup" and not (leader == call.member_id == start.fields["member_id"]):
        return False
    if call.request_id and call.request_id in start.request_ids:
        return True
    return call.start_us <= start.at_us <= call.end_us


def _needless(record: Recorded, again: Sequence[str], terms: Sequence[Role]) -> Violation:
    why = f"though request {again[0]} had been served before" if again else "without a cause"
    if terms and not again:
        why += f"; the leader had changed to {terms[-1].node} in term {terms[-1].term}"
    reason = record.fields.get("reason", "")
    what = f"group {record.group!r} began to rebalance at index {record.index} ({reason}) {why}"
    return Violation(INVARIANT, record.at_us, what)


# --- moves ---


class _Heard(NamedTuple):
    """What an assignor was told when a generation began."""

    held: Owners
    """The owner of each partition."""
    sizes: Sizes
    """The sizes of all topics."""


def _heard(view: View, owned: OwnedPartitions, topics: Topics) -> _Heard:
    return _Heard(_held(view, owned, topics), dict(topics.sizes))


def _moves(records: Iterable[Recorded], counts: Counter[str]) -> Iterator[Violation]:
    for each in rebalances(records, _heard):
        held, sizes = each.begun
        view = each.after
        if "sticky" in view.protocol and _one_wish(view) and sizes == each.topics.sizes:
            counts["moves judged"] += len(held)
            yield from _too_many(held, _share(each.before, view), view, each.record)


def _too_many(held: Owners, share: Share, view: View, record: Recorded) -> Iterator[Violation]:
    count, least = moved(held, share, view.protocol), needed(held, share)
    if count > least:
        what = (
            f"group {record.group!r}, generation {view.generation}: {count} partitions "
            f"moved between members that stayed, {least} had to"
        )
        yield Violation(INVARIANT, record.at_us, what)


def _share(before: View, after: View) -> Share:
    owners = {
        partition: after.members[member_id].identity
        for member_id, own in after.assigned.items()
        if member_id in before.members
        for partition in own
    }
    return Share(owners, frozenset(each.identity for each in after.members.values()))


def _one_wish(view: View) -> bool:
    """Return whether all members want the same topics, and these are known."""
    wishes = {view.members[each].offers.get(view.protocol) for each in view.members}
    return len({frozenset(each) if each else None for each in wishes}) == 1 and None not in wishes


def _held(view: View, owned: OwnedPartitions, topics: Topics) -> Owners:
    """Return the owner of each partition that exists and that its owner wants.

    Of two members that claim it, the one with the later generation counts; of two with the same,
    the first: static members come by instance id, then dynamic ones by member id.
    """
    newest: dict[Partition, tuple[int, str]] = {}
    for member in sorted(view.members.values(), key=lambda m: (not m.instance_id, m.identity)):
        wanted = member.offers.get(view.protocol) or ()
        for partition, generation in owned.of(member.member_id).items():
            other = newest.get(partition)
            newer = other is None or other[0] < generation
            if newer and partition[0] in wanted and topics.may_have(partition):
                newest[partition] = generation, member.identity
    return {partition: owner for partition, (_, owner) in newest.items()}
