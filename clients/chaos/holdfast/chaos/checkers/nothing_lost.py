"""INV-2: no acknowledged event is lost or reordered.

What was acknowledged with a position is in the log at that position, with the request id that was
acknowledged and the content that was asked for; a change that was sent after another one had been
acknowledged stands behind it; and a group's records are consecutive, so nothing was cut out of the
middle (S3). That the log is the same on all nodes is judged by its digests (INV-6).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import NEVER, ONE_SHOT, Call, calls_of
from holdfast.chaos.evidence.log_view import by_group, place, records_of
from holdfast.chaos.history.happenings import Happening, Recorded

INVARIANT: Final = "I2"

Log: TypeAlias = dict[int, list[Recorded]]
"""The records of each index."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find acknowledged changes that are missing or out of order, and holes in the log."""
    records = records_of(history)
    if not records:
        return Verdict({"acknowledged changes": 0, "records": 0})
    calls = calls_of(history)
    acknowledged = [call for call in calls if call.ok and call.position]
    found = [
        *_missing(acknowledged, records),
        *_reordered(calls, acknowledged),
        *_holes(records),
    ]
    return Verdict({"acknowledged changes": len(acknowledged), "records": len(records)}, found)


# --- lost ---


def _missing(calls: Iterable[Call], records: Sequence[Recorded]) -> Iterator[Violation]:
    log: Log = {}
    places = {place(record) for record in records}
    for record in records:
        log.setdefault(record.index, []).append(record)
    first = min(places)
    for call in calls:
        position = call.position
        if position is None or position < first:
            continue  # older than the part of the log that was recorded
        if position not in places:
            what = f"{call} was acknowledged at {position}, where the log has nothing"
            yield Violation(INVARIANT, call.end_us, what)
        elif wrong := _differs(call, [r for r in log[position[0]] if r.group == call.group]):
            yield Violation(INVARIANT, call.end_us, f"{call}, acknowledged at {position}: {wrong}")


def _differs(call: Call, entry: Sequence[Recorded]) -> str:
    """Say how the entry differs from what was acknowledged; "" if it does not."""
    if call.op not in ONE_SHOT or not _had_effect(call):
        return ""
    served = [record for record in entry if call.request_id in record.request_ids]
    if call.request_id and not served:
        return f"the entry does not serve request {call.request_id}"
    if call.op == "OffsetCommit" and (lost := _lost_offsets(call, entry)):
        return f"the entry lacks the offsets {lost}"
    return ""


def _had_effect(call: Call) -> bool:
    """Return whether something of a call was certainly recorded: not if any part was refused."""
    return call.op == "OffsetCommit" or not call.result.get("errors")


def _lost_offsets(call: Call, entry: Iterable[Recorded]) -> list[Any]:
    refused = {(topic, number) for topic, number, _ in call.result.get("errors", ())}
    kept = {
        (each["topic"], each["partition"], each["offset"])
        for record in entry
        if record.kind == "OffsetsCommitted"
        for each in record.fields["offsets"]
    }
    asked = [tuple(each) for each in call.invoked.arguments.get("offsets", ())]
    return [each for each in asked if each[:2] not in refused and each not in kept]


# --- reordered ---


def _reordered(calls: Iterable[Call], acknowledged: Sequence[Call]) -> Iterator[Violation]:
    """Find changes that stand before one acknowledged before their request was first sent."""
    first_sent: dict[tuple[str, str], int] = {}
    for call in calls:
        if call.request_id:
            first_sent.setdefault((call.group, call.request_id), call.start_us)
    changes = [call for call in acknowledged if call.op in ONE_SHOT]
    done = sorted(acknowledged, key=lambda call: call.end_us)
    latest: Call | None = None
    reached = 0
    for call in sorted(changes, key=lambda call: _sent(call, first_sent)):
        while reached < len(done) and done[reached].end_us < _sent(call, first_sent):
            latest = _later(latest, done[reached])
            reached += 1
        if latest is not None and _index(call) <= _index(latest) and not _same(call, latest):
            what = (
                f"{call} was sent after {latest} had been acknowledged at {latest.position}, but "
                f"its own place is {call.position}"
            )
            yield Violation(INVARIANT, call.end_us, what)


def _sent(call: Call, first_sent: dict[tuple[str, str], int]) -> int:
    return first_sent.get((call.group, call.request_id), call.start_us)


def _same(call: Call, other: Call) -> bool:
    return bool(call.request_id) and call.request_id == other.request_id


def _later(one: Call | None, other: Call) -> Call:
    return other if one is None or _index(other) > _index(one) else one


def _index(call: Call) -> int:
    return call.position[0] if call.position else NEVER


# --- holes ---


def _holes(records: Sequence[Recorded]) -> Iterator[Violation]:
    """Find gaps in a group's numbers within a life (S3); after its end there are none to judge."""
    for group, own in by_group(records).items():
        last: int | None = None
        for record in own:
            expected = 1 if record.kind == "GroupCreated" else (last or 0) + 1
            if last is not None and record.group_seq > expected:
                what = (
                    f"group {group!r} goes from record {last} to {record.group_seq} at index "
                    f"{record.index}: what was between is lost"
                )
                yield Violation(INVARIANT, record.at_us, what)
            last = None if record.kind == "GroupDeleted" else record.group_seq
