"""Committed offsets as registers, one for each (group, topic, partition), for the search of `wgl`.

A linearizable object is one whose every part is, so each register is judged alone. What a commit of
several partitions did to one of them is one write; a retry with the same request id is the same
write (S14, S15). A call of unknown outcome may take effect at any later time, or never (S5). Knows
no invariant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from holdfast.chaos.evidence.calls import Call, calls_of
from holdfast.chaos.evidence.log_view import by_group, records_of
from holdfast.chaos.evidence.wgl import Operation
from holdfast.chaos.history.happenings import Happening, Recorded

NONE: Final = -1
"""What a register holds, and a fetch answers, when nothing is committed."""

UNKNOWN: Final = -2
"""What a register held before the history began, until a read tells."""

Register: TypeAlias = tuple[str, str, int]
"""Group, topic and partition."""


class Access(NamedTuple):
    """One write or read of a register."""

    kind: Literal["write", "read"]
    value: int


def step(held: int, access: Access) -> int | None:
    """Return what a register holds after an access; None: the read cannot have seen that."""
    if access.kind == "write":
        return access.value
    return access.value if held in {access.value, UNKNOWN} else None


def registers(history: Sequence[Happening]) -> dict[Register, list[Operation]]:
    """Return the operations on each register that was read or written."""
    calls, records = calls_of(history), records_of(history)
    found: dict[Register, list[Operation]] = defaultdict(list)
    for call in calls:
        if call.op == "OffsetFetch" and call.ok and not call.invoked.arguments.get("stale_ok"):
            for topic, number, value in call.result.get("offsets", ()):
                access = Access("read", value)
                read = Operation(str(call), call.start_us, call.end_us, access, reads=True)
                found[call.group, topic, number].append(read)
    writes = sorted([*_written(calls), *_unasked(calls, records)], key=_of_a_whole_group)
    for group, topic, number, write in writes:
        whole = [register for register in found if register[0] == group]
        for register in [(group, topic, number)] if topic else whole:
            found[register].append(write)
    return {register: _pruned(own) for register, own in found.items()}


def _of_a_whole_group(write: tuple[str, str, int, Operation]) -> bool:
    """Sort writes to a whole group last, when all registers of the group are known."""
    return not write[1]


def initial(records: Sequence[Recorded]) -> dict[str, int]:
    """Return what each group's registers held at first: nothing, if its creation was recorded."""
    return {
        group: NONE if own[0].kind == "GroupCreated" else UNKNOWN
        for group, own in by_group(records).items()
    }


# --- writes ---


def _written(calls: Iterable[Call]) -> Iterator[tuple[str, str, int, Operation]]:
    """Yield each write that was asked for; a topic "" stands for every register of the group."""
    for tries in _requests(calls).values():
        first = tries[0]
        heard = [call.end_us for call in tries if call.ok]
        if not heard and not any(call.outcome == "unknown" for call in tries):
            continue
        answered = min((call for call in tries if call.ok), default=first, key=_end)
        refused = {(row[0], row[1]) for row in answered.result.get("errors", ())}
        end_us = min(heard, default=None)
        for topic, number, value in _rows(first):
            if (topic, number) not in refused:
                write = Operation(str(first), first.start_us, end_us, Access("write", value))
                yield first.group, topic, number, write


def _requests(calls: Iterable[Call]) -> dict[tuple[str, str], list[Call]]:
    """Sort calls by the change that they try; a call without a request id is its own change."""
    found: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in calls:
        if call.op in {"OffsetCommit", "OffsetDelete", "DeleteGroups"}:
            found[call.group, call.request_id or f"call {call.invoked.call}"].append(call)
    return found


def _end(call: Call) -> int:
    return call.end_us


def _rows(call: Call) -> list[tuple[str, int, int]]:
    arguments = call.invoked.arguments
    if call.op == "OffsetCommit":
        return [(topic, number, value) for topic, number, value in arguments.get("offsets", ())]
    if call.op == "OffsetDelete":
        return [(topic, number, NONE) for topic, number in arguments.get("partitions", ())]
    return [("", 0, NONE)]


def _unasked(
    calls: Iterable[Call], records: Iterable[Recorded]
) -> Iterator[tuple[str, str, int, Operation]]:
    """Yield writes that no call of the history asked for: retention, deleted topics, strangers.

    It is left open when a write happened and whether a reader could see it, so it excuses only
    answers that it really can have caused.
    """
    calls = list(calls)
    ids = {(call.group, call.request_id) for call in calls if call.request_id}
    indexes = {(call.group, call.position[0]) for call in calls if call.position}
    for record in records:
        known = any((record.group, each) in ids for each in record.request_ids)
        if known or (record.group, record.index) in indexes:
            continue
        for topic, number, value in _effects(record):
            label = f"record {record.index}.{record.ordinal}"
            yield record.group, topic, number, Operation(label, 0, None, Access("write", value))


def _effects(record: Recorded) -> list[tuple[str, int, int]]:
    if record.kind == "OffsetsCommitted":
        rows = record.fields["offsets"]
        return [(each["topic"], each["partition"], each["offset"]) for each in rows]
    if record.kind == "OffsetsDeleted":
        return [(each["topic"], each["partition"], NONE) for each in record.fields["partitions"]]
    return [("", 0, NONE)] if record.kind == "GroupDeleted" else []


def _pruned(operations: list[Operation]) -> list[Operation]:
    """Drop writes that may not have happened and whose value was never read.

    They change nothing: such a write can be left out of any order, since no read comes right after
    it. Each one that stays doubles what the search may have to try.
    """
    read = {each.what.value for each in operations if each.what.kind == "read"}
    return [each for each in operations if each.end_us is not None or each.what.value in read]
