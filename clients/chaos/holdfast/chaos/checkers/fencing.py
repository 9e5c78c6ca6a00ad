"""INV-5: fencing is total (S12, S13).

Outside: once the storage accepted a token for a (group, partition), it accepts no lower one for it;
two members never write under one token; and the rightful holder is not refused. Inside: no request
of a fenced member id has an effect or is answered as if the member were still there; and whoever
is answered as a member was one, under this instance and in this generation, by the log: at the
position of the answer, or, where an answer has none, at some moment before it (K-A21, K-F4, K-F12).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.fences import Fence, fences
from holdfast.chaos.evidence.log_view import View, label, records_of, seconds
from holdfast.chaos.evidence.membership_timeline import MembershipTimeline, timelines
from holdfast.chaos.history.happenings import Happening, Recorded, Wrote

INVARIANT: Final = "I5"

Served: TypeAlias = Mapping[tuple[str, str], Sequence[int]]
"""The indexes at which a request had an effect, by group and request id."""

_SPEAKS_AS_MEMBER: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"})
_SAYS_GENERATION: Final = _SPEAKS_AS_MEMBER - {"JoinGroup"}


def check(history: Sequence[Happening]) -> Verdict:
    """Find effects of fenced members, and members treated wrongly."""
    writes = [each for each in history if isinstance(each, Wrote)]
    fenced = fences(history)
    speaking = [call for call in calls_of(history) if call.op in _SPEAKS_AS_MEMBER]
    calls = [call for call in speaking if (call.group, call.member_id) in fenced]
    served = _served(records_of(history))
    late = [call for call in calls if _is_late(call, fenced[call.group, call.member_id], served)]
    found = [*_storage(writes), *(_answered(c, fenced[c.group, c.member_id]) for c in late)]
    found += _recorded(calls, fenced, served)
    known = {call.invoked.call for call in late}
    accepted = [call for call in speaking if call.op in _SAYS_GENERATION and _as_member(call)]
    found += _outdated((c for c in accepted if c.invoked.call not in known), timelines(history))
    counts = {"writes": len(writes), "calls of fenced ids": len(calls)}
    return Verdict({**counts, "calls accepted": len(accepted)}, found)


# --- the storage outside ---


def _storage(writes: Iterable[Wrote]) -> Iterator[Violation]:
    highest: dict[tuple[str, str, int], Wrote] = {}
    for write in writes:
        partition = (write.group, write.topic, write.partition)
        top = highest.get(partition)
        if what := _misjudged(write, top):
            yield Violation(INVARIANT, write.at_us, f"{label(partition)}: {what}")
        if write.accepted and (top is None or write.token > top.token):
            highest[partition] = write


def _misjudged(write: Wrote, top: Wrote | None) -> str:
    asked = f"{write.who} wrote with token {write.token}"
    if not write.accepted:
        rightful = top is None or write.token >= top.token
        return f"{asked} and was refused, though none higher had been accepted" if rightful else ""
    if top is None or write.token > top.token:
        return ""
    if write.token < top.token:
        return f"{asked}, after {top.token} of {top.who} had been accepted"
    shared = write.who != top.who
    return f"{asked}, which is also {top.who}'s" if shared else ""


# --- the group itself ---


def _is_late(call: Call, fence: Fence, served: Served) -> bool:
    """Return whether a call came after its member's end and was not refused.

    Only the answer of a request served before may be repeated (S14).
    """
    if not call.alive or call.start_us <= fence.by_us or call.invoked.arguments.get("release"):
        return False
    earlier = min(served.get((call.group, call.request_id), ()), default=fence.index + 1)
    return earlier > fence.index


def _answered(call: Call, fence: Fence) -> Violation:
    what = (
        f"{call} was accepted for member {call.member_id} of {call.group!r}, which {fence.kind}"
        f" had ended at index {fence.index}, by {seconds(fence.by_us)}"
    )
    return Violation(INVARIANT, call.end_us, what)


def _recorded(
    calls: Iterable[Call], fenced: Mapping[tuple[str, str], Fence], served: Served
) -> list[Violation]:
    """Find requests that took effect after their member's end in the log, whatever was answered."""
    found = {}
    for call in calls:
        fence = fenced[call.group, call.member_id]
        late = [i for i in served.get((call.group, call.request_id), ()) if i > fence.index]
        early = [i for i in served.get((call.group, call.request_id), ()) if i <= fence.index]
        if late and not early:
            what = (
                f"{call} took effect at index {late[0]}, behind the end of member "
                f"{call.member_id} of {call.group!r} at index {fence.index}"
            )
            found[call.group, call.request_id] = Violation(INVARIANT, call.start_us, what)
    return list(found.values())


# --- who it was at the time ---


def _as_member(call: Call) -> bool:
    """Return whether a call was accepted as a member's.

    A release counts in any generation (S12), and a commit without one is nobody's (K-C11).
    """
    if not call.alive or not call.member_id or call.invoked.arguments.get("release"):
        return False
    return call.op != "OffsetCommit" or (_generation(call) or 0) > 0


def _outdated(
    calls: Iterable[Call], groups: Mapping[str, MembershipTimeline]
) -> Iterator[Violation]:
    """Find calls that were accepted with an identity or a generation that was not current."""
    for call in calls:
        group = groups.get(call.group)
        if group is None:
            continue
        if call.position is not None:
            seen: Sequence[View] = [group.ahead_of(call.position)]
        else:
            seen = group.between(call.start_us, call.end_us)
        told = [_stands(call, view) for view in seen]
        if told and all(told):
            whom = f"member {call.member_id} of {call.group!r}, generation {_generation(call)}"
            what = f"{call} was accepted for {whom}; by the log, {told[-1]} then"
            yield Violation(INVARIANT, call.end_us, what)


def _stands(call: Call, view: View) -> str:
    """Say why a call could not be accepted in this view; "" if it could."""
    member = view.members.get(call.member_id)
    if member is None:
        return "there was no such member"
    instance_id = str(call.invoked.arguments.get("instance_id") or "")
    if instance_id and instance_id != member.instance_id:
        return f"it was not bound to instance {instance_id!r}"
    if _generation(call) not in {None, view.generation}:
        return f"the generation was {view.generation}"
    return ""


def _generation(call: Call) -> int | None:
    """Return the generation that a call carries; None: it carries none."""
    found = call.invoked.arguments.get("generation")
    return None if found is None else int(found)


def _served(records: Iterable[Recorded]) -> Served:
    """Return the indexes at which each request had an effect."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for record in records:
        for request_id in record.request_ids:
            found[record.group, request_id].append(record.index)
    return found
