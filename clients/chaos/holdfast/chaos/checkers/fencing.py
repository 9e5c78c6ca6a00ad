"""INV-5: fencing is total (S12, S13).

Outside: once the storage accepted a token for a (group, partition), it accepts no lower one for it;
two members never write under one token, unless one has said that it stops and the other came in its
place: then the first writes no more; and the rightful holder is not refused. Inside: no request
of a fenced member id has an effect or is answered as if the member were still there; and whoever
is answered as a member was one, under this instance and in this generation, by the log: at the
position of the answer, or, where an answer has none, at some moment before it (K-A21, K-F4, K-F12).
In the heartbeat protocol a member is in its own epoch. A heartbeat may speak of the one before it,
whose answer may have been lost (K-M11), and a commit of an older one, if its member has had each of
the partitions ever since (their assignment epochs, K-J39). Member ids come back there: what ends a
life counts for that life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import NEVER, Call, calls_of
from holdfast.chaos.evidence.fences import Fence, Fences, fences
from holdfast.chaos.evidence.handovers import Heirs, heirs, inherits
from holdfast.chaos.evidence.heartbeats.group import Standing
from holdfast.chaos.evidence.log_view import View, label, records_of, seconds
from holdfast.chaos.evidence.membership_timeline import MembershipTimeline, timelines
from holdfast.chaos.history.happenings import Granted, Happening, Recorded, Wrote

INVARIANT: Final = "I5"

Served: TypeAlias = Mapping[tuple[str, str], Sequence[int]]
"""The indexes at which a request had an effect, by group and request id."""

_BEAT: Final = "ConsumerGroupHeartbeat"
_SPEAKS_AS_MEMBER: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", _BEAT})
_SAYS_GENERATION: Final = _SPEAKS_AS_MEMBER - {"JoinGroup"}


def check(history: Sequence[Happening]) -> Verdict:
    """Find effects of fenced members, and members treated wrongly."""
    writes = [each for each in history if isinstance(each, Wrote)]
    fenced = fences(history)
    speaking = [call for call in calls_of(history) if call.op in _SPEAKS_AS_MEMBER]
    calls = [call for call in speaking if fenced.get((call.group, call.member_id))]
    served = _served(records_of(history))
    late = [(call, fence) for call in calls if (fence := _passed(call, fenced, served))]
    found = [*_storage(history), *(_answered(call, fence) for call, fence in late)]
    found += _recorded(calls, fenced, served)
    known = {call.invoked.call for call, _ in late}
    accepted = [call for call in speaking if call.op in _SAYS_GENERATION and _as_member(call)]
    found += _outdated((c for c in accepted if c.invoked.call not in known), timelines(history))
    counts = {"writes": len(writes), "calls of fenced ids": len(calls)}
    return Verdict({**counts, "calls accepted": len(accepted)}, found)


# --- the storage outside ---


class _Writer(NamedTuple):
    """Who wrote under a token: the process, and the member that it was by its newest grant."""

    who: str
    member_id: str


def _storage(history: Sequence[Happening]) -> Iterator[Violation]:
    known = heirs(records_of(history))
    highest: dict[tuple[str, str, int], tuple[Wrote, _Writer]] = {}
    members: dict[tuple[str, str], str] = {}
    for each in history:
        if isinstance(each, Granted):
            members[each.who, each.group] = each.member_id
        if not isinstance(each, Wrote):
            continue
        partition = (each.group, each.topic, each.partition)
        writer = _Writer(each.who, members.get((each.who, each.group), ""))
        top, last = highest.get(partition, (None, writer))
        handed_on = _handed_on(known, each, writer, last)
        if what := _misjudged(each, top, handed_on=handed_on):
            yield Violation(INVARIANT, each.at_us, f"{label(partition)}: {what}")
        if each.accepted and (top is None or each.token > top.token or handed_on):
            highest[partition] = each, writer


def _handed_on(known: Heirs, write: Wrote, writer: _Writer, last: _Writer) -> bool:
    """Return whether a token came to a writer from the last one, which had said that it stops."""
    if not writer.member_id or writer.member_id == last.member_id:
        return False
    return inherits(known, write.group, writer.member_id, last.member_id)


def _misjudged(write: Wrote, top: Wrote | None, *, handed_on: bool) -> str:
    asked = f"{write.who} wrote with token {write.token}"
    if not write.accepted:
        rightful = top is None or write.token >= top.token
        return f"{asked} and was refused, though none higher had been accepted" if rightful else ""
    if top is None or write.token > top.token:
        return ""
    if write.token < top.token:
        return f"{asked}, after {top.token} of {top.who} had been accepted"
    shared = write.who != top.who and not handed_on
    return f"{asked}, which is also {top.who}'s" if shared else ""


# --- the group itself ---


def _passed(call: Call, fenced: Fences, served: Served) -> Fence | None:
    """Return the end of its member that a call came after, and should have been refused for.

    None: it did not, or it is of the next life, or it repeats a request that was served before,
    whose answer may be repeated (S14). A release counts in any generation (S12).
    """
    asked = call.invoked.arguments
    if not call.alive or (asked.get("release") and call.op != _BEAT):
        return None
    past = [f for f in fenced[call.group, call.member_id] if f.by_us < call.start_us]
    if not past or past[-1].again_us <= call.end_us:
        return None
    fence = past[-1]
    if fence.kind == "InstanceReleased" and call.op == _BEAT and asked.get("generation", 0) <= 0:
        return None  # its place is still kept
    earlier = min(served.get((call.group, call.request_id), ()), default=fence.index + 1)
    return fence if earlier > fence.index else None


def _answered(call: Call, fence: Fence) -> Violation:
    what = (
        f"{call} was accepted for member {call.member_id} of {call.group!r}, which {fence.kind}"
        f" had ended at index {fence.index}, by {seconds(fence.by_us)}"
    )
    return Violation(INVARIANT, call.end_us, what)


def _recorded(calls: Iterable[Call], fenced: Fences, served: Served) -> list[Violation]:
    """Find requests that took effect after their member's end in the log, whatever was answered."""
    found = {}
    for call in calls:
        indexes = served.get((call.group, call.request_id), ())
        for fence in fenced[call.group, call.member_id]:
            late = [i for i in indexes if fence.index < i < fence.again_index]
            if late and not any(i <= fence.index for i in indexes):
                what = (
                    f"{call} took effect at index {late[0]}, behind the end of member "
                    f"{call.member_id} of {call.group!r} at index {fence.index}"
                )
                found[call.group, call.request_id] = Violation(INVARIANT, call.start_us, what)
    return list(found.values())


# --- who it was at the time ---


def _as_member(call: Call) -> bool:
    """Return whether a call was accepted as a member's.

    A release counts in any generation (S12), a commit without one is nobody's (K-C11), and a
    heartbeat without one joins.
    """
    if not call.alive or not call.member_id or call.invoked.arguments.get("release"):
        return False
    return call.op not in {"OffsetCommit", _BEAT} or (_generation(call) or 0) > 0


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
    if view.beats is not None:
        return _past(call, view.beats.standings.get(call.member_id, Standing()))
    if _generation(call) not in {None, view.generation}:
        return f"the generation was {view.generation}"
    return ""


def _past(call: Call, standing: Standing) -> str:
    """Say why a call of a group of the heartbeat protocol is of the past; "" if it is not."""
    epoch = _generation(call)
    if epoch is None or epoch == standing.epoch:
        return ""
    if call.op == _BEAT and epoch == standing.previous:
        return ""
    if call.op == "OffsetCommit" and epoch < standing.epoch:
        newer = [name for name in _committed(call) if _since(standing, name) > epoch]
        where = f"{newer[0][0]}/{newer[0][1]}" if newer else ""
        return f"its epoch was {standing.epoch}, and it had not had {where} since" if newer else ""
    return f"its epoch was {standing.epoch}"


def _committed(call: Call) -> list[tuple[str, int]]:
    """Return the partitions of which a commit was taken."""
    refused = {(row[0], row[1]) for row in call.result.get("errors", ())}
    rows = call.invoked.arguments.get("offsets", ())
    return [(topic, number) for topic, number, _ in rows if (topic, number) not in refused]


def _since(standing: Standing, partition: tuple[str, int]) -> int:
    """Return the assignment epoch of a partition; beyond every epoch, if it is not the member's."""
    grant = standing.held.get(partition)
    return NEVER if grant is None else grant.epoch


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
