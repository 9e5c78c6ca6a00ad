"""INV-4: at most one live binding per (group, instance id); a fenced member id never comes back.

A scan of the log, record by record (KIP-345, S12), and of what DescribeGroups answered. Members of
the heartbeat protocol make their ids themselves and come back under them; there an id that is a
member's is not given to a second one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.log_view import View, by_group, records_of, removed_by, views
from holdfast.chaos.history.happenings import Happening, Recorded

INVARIANT: Final = "I4"

_BINDS: Final = {
    "MemberJoined": "member_id",
    "MemberSubscribed": "member_id",
    "StaticMemberReplaced": "new_member_id",
}


def check(history: Sequence[Happening]) -> Verdict:
    """Find instances with two member ids, and member ids with two lives."""
    records = records_of(history)
    described = [call for call in calls_of(history) if call.op == "DescribeGroups" and call.ok]
    bindings = sum(1 for each in records if _binds(each) and each.fields.get("instance_id"))
    found = [*_log(records), *_answers(described)]
    return Verdict({"bindings": bindings, "descriptions": len(described)}, found)


def _binds(record: Recorded) -> bool:
    return record.kind in _BINDS and record.fields.get("joined", True)


def _log(records: Iterable[Recorded]) -> Iterator[Violation]:
    for group, own in by_group(records).items():
        used: set[str] = set()
        for before, record, after in views(own):
            if _binds(record):
                yield from _bound(group, before, record, used)
                used.add(record.fields[_BINDS[record.kind]])
            for instance_id, count in _instances(after).items():
                if count > 1 and _instances(before)[instance_id] < count:
                    what = f"instance {instance_id!r} of {group!r} is bound {count} times"
                    yield Violation(INVARIANT, record.at_us, f"{what} after index {record.index}")


def _instances(view: View) -> Counter[str]:
    return Counter(each.instance_id for each in view.members.values() if each.instance_id)


def _bound(group: str, before: View, record: Recorded, used: set[str]) -> Iterator[Violation]:
    """Find a binding of a used member id, and a swap that does not replace the bound member."""
    fields = record.fields
    member_id = fields[_BINDS[record.kind]]
    if member_id in (before.members if before.is_consumer else used):
        what = f"member id {member_id} of {group!r} is used a second time at index {record.index}"
        yield Violation(INVARIANT, record.at_us, what)
    if record.kind != "StaticMemberReplaced":
        return
    (old,) = removed_by(record.kind, fields)
    holder = before.members.get(old)
    if before.members and (holder is None or holder.instance_id != fields["instance_id"]):
        what = (
            f"index {record.index} replaces {old}, who does not hold instance "
            f"{fields['instance_id']!r} of {group!r}"
        )
        yield Violation(INVARIANT, record.at_us, what)


def _answers(described: Iterable[Call]) -> Iterator[Violation]:
    for call in described:
        counts = Counter(instance for _, instance in call.result.get("members", ()) if instance)
        for instance_id, count in counts.items():
            if count > 1:
                what = f"{call} was shown instance {instance_id!r} of {call.group!r} {count} times"
                yield Violation(INVARIANT, call.end_us, what)
