"""INV-11: a request has its effect exactly once, however often it is sent (S14, S15).

A one-shot request is in one entry of the log and nowhere else, and every answer to it tells the
same; once it was acknowledged, no repetition is refused. A join makes one member, and another one
only if that was thrown out meanwhile. A call that was surely not applied is not in the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import ONE_SHOT, Call, calls_of
from holdfast.chaos.evidence.log_view import place, records_of, removed_by
from holdfast.chaos.history.happenings import Happening, Recorded

INVARIANT: Final = "I11"

Request: TypeAlias = tuple[str, str]
"""Group and request id: an id counts within its group (S15)."""

Gone: TypeAlias = Mapping[tuple[str, str], Recorded]
"""What ended each member, by group and member id."""

_MAKES_MEMBER: Final = {
    "MemberJoined": "member_id",
    "MemberSubscribed": "member_id",
    "StaticMemberReplaced": "new_member_id",
}
_NO_EFFECT: Final = frozenset({"rejected", "not-applied"})


def check(history: Sequence[Happening]) -> Verdict:
    """Find requests with more than one effect, or with different answers."""
    tries: dict[Request, list[Call]] = defaultdict(list)
    for call in calls_of(history):
        if call.request_id:
            tries[call.group, call.request_id].append(call)
    served: dict[Request, list[Recorded]] = defaultdict(list)
    gone: dict[tuple[str, str], Recorded] = {}
    for record in records_of(history):
        for request_id in record.request_ids:
            served[record.group, request_id].append(record)
        for member_id in removed_by(record.kind, record.fields):
            gone.setdefault((record.group, member_id), record)
    found = [*_effects(tries, served, gone), *_answers(tries, gone), *_denied(tries, served)]
    repeated = sum(1 for each in tries.values() if len(each) > 1)
    return Verdict({"requests": len(tries), "sent again": repeated, "served": len(served)}, found)


# --- effects ---


def _effects(
    tries: Mapping[Request, Sequence[Call]],
    served: Mapping[Request, Sequence[Recorded]],
    gone: Gone,
) -> Iterator[Violation]:
    for request, records in served.items():
        made = [record for record in records if _makes_member(record)]
        for first, second in pairwise(made):
            if not _is_gone(request, _made(first), gone, before=second):
                what = f"made 2 members: {_made(first)}, {_made(second)}"
                yield _violation(request, second, what)
        ops = {call.op for call in tries.get(request, ())}
        indexes = sorted({record.index for record in records})
        if len(indexes) > 1 and (ops & ONE_SHOT or _is_one_shot(records)):
            yield _violation(request, records[-1], f"took effect at the indexes {indexes}")


def _makes_member(record: Recorded) -> bool:
    return record.kind in _MAKES_MEMBER and record.fields.get("joined", True)


def _made(record: Recorded) -> str:
    return str(record.fields[_MAKES_MEMBER[record.kind]])


def _is_gone(request: Request, member_id: str, gone: Gone, before: Recorded | None = None) -> bool:
    """Return whether something other than this request ended a member, so that it is not found."""
    group, request_id = request
    end = gone.get((group, member_id))
    if end is None or request_id in end.request_ids:
        return False
    return before is None or place(end) < place(before)


def _is_one_shot(records: Iterable[Recorded]) -> bool:
    """Return whether the request's answer was stored, even if its caller is not in the history."""
    return any(record.kind == "RequestRecorded" for record in records)


def _violation(request: Request, record: Recorded, what: str) -> Violation:
    group, request_id = request
    return Violation(INVARIANT, record.at_us, f"request {request_id} of {group!r} {what}")


# --- answers ---


def _answers(tries: Mapping[Request, Sequence[Call]], gone: Gone) -> Iterator[Violation]:
    for request, calls in tries.items():
        heard = sorted((call for call in calls if call.ok), key=lambda call: call.end_us)
        if not heard:
            continue
        first = heard[0]
        for other in heard[1:]:
            again = _is_gone(request, str(first.result.get("member_id")), gone)
            if (told := _told(other)) != (was := _told(first)) and not again:
                what = f"{first} was told {was}, its repetition {other} is told {told}"
                yield Violation(INVARIANT, other.end_us, what)
        for call in calls:
            late = call.start_us > first.end_us and call.outcome == "rejected"
            if late and call.op in ONE_SHOT and call.returned and not _elsewhere(call):
                what = f"{call} was refused ({call.returned.error}), after {first} had been served"
                yield Violation(INVARIANT, call.end_us, what)


def _told(call: Call) -> dict[str, object]:
    """Return what must be equal in all answers: everything, or of a join the member id (S14)."""
    if call.op == "JoinGroup":
        return {"member_id": call.result.get("member_id")}
    if call.op in ONE_SHOT:
        return {key: _plain(call.result.get(key)) for key in ("position", "errors")}
    return {}


def _plain(value: object) -> object:
    """Normalise a value: tuples become lists, None becomes an empty list."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return [] if value is None else value


def _elsewhere(call: Call) -> bool:
    """Return whether a node refused that does not lead: it did not look at the request."""
    error = call.returned.error if call.returned else ""
    return any(each in error for each in _NOT_ASKED)


_NOT_ASKED: Final = (
    *("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"),
    *("UNAVAILABLE", "RESOURCE_EXHAUSTED", "UNAUTHENTICATED"),
)


# --- no effect ---


def _denied(
    tries: Mapping[Request, Sequence[Call]], served: Mapping[Request, Sequence[Recorded]]
) -> Iterator[Violation]:
    """Find calls that were surely not applied, but are in the log.

    Joins are not judged: a parked one may be answered NOT_COORDINATOR after it was recorded (S5).
    """
    for request, calls in tries.items():
        if not all(call.outcome in _NO_EFFECT and call.op in ONE_SHOT for call in calls):
            continue
        if records := served.get(request):
            what = (
                f"was not applied, as {calls[-1]} was told, but it is at index {records[0].index}"
            )
            yield _violation(request, records[0], what)
