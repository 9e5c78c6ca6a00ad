"""A record of the committed log as a happening, and back.

Whoever sees records applied (a node in the simulator, a reader of the event log of a real one)
turns them into `Recorded` here, so that the checkers find the same fields whatever the source.
Knows no checker and no client.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from holdfast.chaos.history.happenings import Fields, Recorded
from holdfast.coordinator.model.events import (
    Assigned,
    Event,
    GenerationStarted,
    MemberJoined,
    MemberUpdated,
    Record,
    RequestRecorded,
    StaticMemberReplaced,
)
from holdfast.storage.codec.event_codec import decode_record, encode_record, event_fields
from holdfast.v1 import group_pb2


def recorded(at_us: int, term: int, record: Record, *, payload: bool = True) -> Recorded:
    """Make the happening of a record applied at `at_us`, in an entry of the Raft term `term`.

    `payload`: keep the record's bytes too, for the checker that folds the log again (INV-6).
    """
    return Recorded(
        at_us,
        record.position.index,
        record.position.ordinal,
        term,
        record.group_id,
        record.group_seq,
        type(record.event).__name__,
        record.log_time_ms,
        request_ids_of(record),
        fields_of(record.event),
        encode_record(record).hex() if payload else "",
    )


def record_of(happening: Recorded) -> Record:
    """Decode the record. Raises CodecError, or ValueError if its bytes were not kept."""
    if not happening.payload:
        raise ValueError(f"record {happening.index}.{happening.ordinal} was kept without its bytes")
    return decode_record(bytes.fromhex(happening.payload))


def request_ids_of(record: Record) -> tuple[str, ...]:
    """Return all requests that a record serves: its own, joins that a generation answers (S14)."""
    event = record.event
    found = [record.request_id]
    if isinstance(event, MemberJoined | MemberUpdated | StaticMemberReplaced | RequestRecorded):
        found.append(event.request_id)
    if isinstance(event, GenerationStarted):
        found += [rejoin.request_id for rejoin in event.rejoined]
    return tuple(dict.fromkeys(each for each in found if each))


def fields_of(event: Event) -> Fields:
    """Convert an event's content to JSON's values: bytes in hexadecimal, named tuples as objects.

    Their names and their order are those of the log, so that histories stay the same whatever the
    classes look like. An assignment has `partitions` beside its bytes where these are a
    `ConsumerProtocolAssignment`.
    """
    return {name: _plain(value) for name, value in event_fields(event).items()}


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        plain = {name: _plain(each) for name, each in value._asdict().items()}
        if isinstance(value, Assigned):
            plain["partitions"] = partitions_of(value.assignment)
        return plain
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


def partitions_of(assignment: bytes) -> list[list[str | int]]:
    """Decode the partitions of a consumer's assignment; none, if the bytes are something else."""
    message = group_pb2.ConsumerProtocolAssignment()
    try:
        message.ParseFromString(assignment)
    except DecodeError:
        return []
    return [
        [topic.topic, partition]
        for topic in message.assigned_partitions
        for partition in topic.partitions
    ]
