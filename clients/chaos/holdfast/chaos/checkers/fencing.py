"""I5: fencing is total (S12, S13).

Outside: once the storage accepted a token for a (group, partition), it accepts no lower one for it;
two members never write under one token; and the rightful holder is not refused. Inside: no request
of a fenced member id has an effect or is answered as if the member were still there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.log_view import Fence, fences, label, records_of, seconds
from holdfast.chaos.evidence.verdict import Verdict, Violation
from holdfast.chaos.history import Happening, Recorded, Wrote

INVARIANT: Final = "I5"

_SPEAKS_AS_MEMBER: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"})


def check(history: Sequence[Happening]) -> Verdict:
    """Nothing that is fenced has any effect."""
    writes = [each for each in history if isinstance(each, Wrote)]
    fenced = fences(history)
    calls = [
        call
        for call in calls_of(history)
        if call.op in _SPEAKS_AS_MEMBER and (call.group, call.member_id) in fenced
    ]
    found = [*_storage(writes), *_answered(calls, fenced, records_of(history))]
    found += _recorded(calls, fenced, records_of(history))
    counts = {"writes": len(writes), "calls of fenced ids": len(calls)}
    return Verdict(counts, found)


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


def _answered(
    calls: Iterable[Call], fenced: Mapping[tuple[str, str], Fence], records: Iterable[Recorded]
) -> Iterator[Violation]:
    """Whoever calls after its end is refused; only what was done before may be told again (S14)."""
    served = _served(records)
    for call in calls:
        fence = fenced[call.group, call.member_id]
        if not call.alive or call.start_us <= fence.by_us or call.invoked.arguments.get("release"):
            continue
        earlier = min(served.get((call.group, call.request_id), ()), default=fence.index + 1)
        if earlier <= fence.index:
            continue
        what = (
            f"{call} was accepted for member {call.member_id} of {call.group!r}, which {fence.kind}"
            f" had ended at index {fence.index}, by {seconds(fence.by_us)}"
        )
        yield Violation(INVARIANT, call.end_us, what)


def _recorded(
    calls: Iterable[Call], fenced: Mapping[tuple[str, str], Fence], records: Sequence[Recorded]
) -> list[Violation]:
    """Whatever was answered: no request of a member takes effect behind its end in the log."""
    served = _served(records)
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


def _served(records: Iterable[Recorded]) -> dict[tuple[str, str], list[int]]:
    """The indexes at which a request had an effect."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for record in records:
        for request_id in record.request_ids:
            found[record.group, request_id].append(record.index)
    return found
