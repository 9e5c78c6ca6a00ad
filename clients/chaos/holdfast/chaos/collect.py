"""Collects the history: the files of all processes, and the log as every node has it.

A process that was killed could not write the end of its calls and rights: that is added here, at
the moment of its death. Knows no checker.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import grpc.aio

from holdfast.chaos.clock import US_PER_MS
from holdfast.chaos.history.happenings import (
    Granted,
    Happening,
    Invoked,
    Recorded,
    Returned,
    Surrendered,
)
from holdfast.chaos.history.jsonl import happening_of
from holdfast.chaos.history.records import recorded
from holdfast.storage.codec.event_codec import decode_record
from holdfast.v1 import log_pb2
from holdfast.v1.extras_pb2 import Position

if TYPE_CHECKING:
    from holdfast.chaos.cluster.target import Target
    from holdfast.v1.events_pb2 import EventRecord

_PAGE: Final = 2_000
_CALL_S: Final = 30.0


class CollectedLog(NamedTuple):
    """The log of all nodes."""

    records: list[EventRecord]
    differences: list[str]
    """Sentences about nodes that have another log."""


async def read_logs(target: Target, first: int) -> CollectedLog:
    """Read the log from entry `first` on from every node. Raises grpc's error of the first node.

    It ends at what all had when the reading began, since sessions of released members still end.
    """
    last = min(one.applied_index for one in (await target.seen()).values())
    logs = {name: upto(last, await _log_of(target, name, first)) for name in target.names}
    reference, *others = target.names
    own = logs[reference]
    found = [
        sentence for name in others if (sentence := difference(reference, own, name, logs[name]))
    ]
    return CollectedLog(own, found)


async def read_any_log(target: Target, first: int) -> CollectedLog:
    """Read what can be read after a failed run: the longest log of the nodes that answer."""
    found: list[list[EventRecord]] = [[]]
    for name in target.names:
        with contextlib.suppress(
            grpc.aio.AioRpcError
        ):  # it is down, or stuck: that is told already
            found.append(await _log_of(target, name, first))
    return CollectedLog(max(found, key=len), [])


async def _log_of(target: Target, name: str, first: int) -> list[EventRecord]:
    stub, start, end = target.log_service(name), Position(index=first), False
    found: list[EventRecord] = []
    while not end:
        request = log_pb2.ReadEventsRequest(start=start, events_max=_PAGE)
        page = await stub.ReadEvents(request, timeout=_CALL_S)
        found += page.records
        start, end = page.next, page.end
    return found


def upto(last: int, records: Iterable[EventRecord]) -> list[EventRecord]:
    """Return the records of entries up to an index."""
    return [record for record in records if record.position.index <= last]


def difference(name: str, one: list[EventRecord], other_name: str, other: list[EventRecord]) -> str:
    """Say how two nodes' logs differ; empty if they do not (S3)."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            place = f"{mine.position.index}.{mine.position.ordinal}"
            return f"{name} and {other_name} have different records at {place}"
    if len(one) != len(other):
        return f"{name} has {len(one)} records, {other_name} has {len(other)}"
    return ""


class Seen(Protocol):
    """What an observer saw."""

    @property
    def arrived(self) -> Mapping[tuple[int, int], int]:
        """When a watch brought each record, by index and ordinal; microseconds."""

    @property
    def terms(self) -> Sequence[tuple[int, int]]:
        """Pairs of an applied index and the term that the node was in."""


def records_of(log: CollectedLog, observer: Seen, wall_behind_us: int) -> Iterator[Recorded]:
    """Yield the records as happenings, in order, each at the earliest moment of its commit."""
    terms = sorted(observer.terms)
    indexes = [index for index, _ in terms]
    last_us = last_term = 0
    for message in log.records:
        position = message.position
        wall_us = message.wall_time_ms * US_PER_MS - wall_behind_us
        seen_us = observer.arrived.get((position.index, position.ordinal), wall_us)
        right = wall_us <= seen_us + US_PER_MS  # else a clock that is ahead of the true one
        last_us = max(last_us, wall_us if right else last_us or seen_us)
        found = bisect_left(indexes, position.index)
        if found < len(terms):
            last_term = max(last_term, terms[found][1])
        record = decode_record(message.SerializeToString(deterministic=True))
        yield recorded(last_us, last_term, record)


def merged(files: Mapping[Path, int], more: Iterable[Happening]) -> list[Happening]:
    """Merge all happenings by time. `files`: when each file's process was killed, 0 if never."""
    found = [*more]
    for path, died_us in files.items():
        own = list(_lines(path))
        end_us = died_us or max((each.at_us for each in own), default=0)
        found += [*own, *_open_calls(own, end_us), *_open_rights(own, end_us)]
    return sorted(found, key=lambda each: each.at_us)


def _lines(path: Path) -> Iterator[Happening]:
    if not path.exists():
        return  # killed before its first word
    whole, _, _cut_off = path.read_text(encoding="utf-8").rpartition("\n")
    for line in whole.splitlines():
        yield happening_of(line)


def _open_calls(own: list[Happening], end_us: int) -> Iterator[Returned]:
    """Yield the outcome `unknown` for each call in which its process died (S5)."""
    returned = {each.call for each in own if isinstance(each, Returned)}
    for each in own:
        if isinstance(each, Invoked) and each.call not in returned:
            yield Returned(max(end_us, each.at_us), each.call, "unknown", "the caller died", {})


def _open_rights(own: list[Happening], end_us: int) -> Iterator[Surrendered]:
    """Yield the end of each right that a process held when it died."""
    held: dict[tuple[str, str], Granted] = {}
    for each in own:
        if isinstance(each, Granted):
            held[each.who, each.member_id] = each
        elif isinstance(each, Surrendered):
            held.pop((each.who, each.member_id), None)
    for grant in held.values():
        at_us = max(end_us, grant.at_us)
        yield Surrendered(at_us, grant.who, grant.group, grant.member_id, "crashed")


async def digests_agree(target: Target) -> bool:
    """Return whether all nodes have applied the whole log and have the same digest."""
    seen = await target.seen()
    places = {(one.applied_index, one.digest) for one in seen.values()}
    ends = {one.commit_index for one in seen.values()} | {index for index, _ in places}
    return len(seen) == len(target.names) and len(places) == len(ends) == 1
