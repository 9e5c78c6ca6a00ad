"""Events, records and state as bytes, and back. The form is `holdfast.v1.events` and `.state`.

Encoding is canonical: equal values give equal bytes on every node, in every process and under any
PYTHONHASHSEED, since hash chains and digests are taken over them (S3). Decoding is total: whatever
the bytes are, the outcome is a value or a `CodecError`. Bytes of an older schema version are read;
those of a newer one are refused, because a node that applied an event in part would come to
another state than its peers. Knows no file, no database and no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from google.protobuf.message import DecodeError, Message

from holdfast.coordinator.kernel.group_types import TYPES
from holdfast.coordinator.model.events import (
    Cause,
    Event,
    LogEntry,
    Part,
    Proposed,
    Record,
    TopicSize,
)
from holdfast.coordinator.model.ids import Position, TopicPartition
from holdfast.coordinator.model.state import Group, Offset, RequestRecord, State
from holdfast.coordinator.projections.history import Rebalance
from holdfast.coordinator.structures.pmap import PMap
from holdfast.storage.codec.offset_record import offset_record
from holdfast.storage.codec.record_head import record_head
from holdfast.storage.codec.schema_versions import SCHEMA_VERSION, of_entry, of_event, of_state
from holdfast.storage.codec.shapes import Shape
from holdfast.storage.codec.state_shapes import StateShapes
from holdfast.storage.codec.wire import cut, nested, text, unsigned, varint
from holdfast.v1 import events_pb2, group_pb2, state_pb2

CHAIN_START: Final = bytes(32)
"""The hash that the first record of a chain is linked to."""

_CHAIN_BYTES: Final = 32
_CHAIN_TAG: Final = bytes([15 << 3 | 2, _CHAIN_BYTES])
"""Field 15 of EventRecord, length 32: the last field, so it can be appended and cut off again."""

_PARTS_TAG: Final = 4 << 3 | 2
"""Field 4 of LogEntry, its last one."""
_EVENTS_TAG: Final = 4 << 3 | 2
"""Field 4 of Part."""
_EVENT_TAG: Final = bytes([7 << 3 | 2])
"""Field 7 of EventRecord, the last one but for the chain hash."""
_PART_GROUP, _PART_TERM, _PART_VERSION, _PART_EVENTS = (
    bytes([1 << 3 | 2]),
    bytes([2 << 3]),
    bytes([3 << 3]),
    bytes([_EVENTS_TAG]),
)
"""The fields of Part."""
_EVENT_RULE, _EVENT_COMMAND, _EVENT_PRINCIPAL, _EVENT_REQUEST_ID = (
    bytes([number << 3 | 2]) for number in (1, 2, 3, 4)
)
"""The fields of Event before its body."""
_CAUSES_KEPT: Final = 1_024
"""Rules and commands are few, and of callers these were heard last."""

Scope: TypeAlias = PMap[str, str]
"""The settings of the cluster or of one group."""

StateValue: TypeAlias = (
    State | Group[Any] | tuple[Any, ...] | Offset | TopicSize | Scope | RequestRecord | Rebalance
)
"""The value of one stored record; State and Group without the parts that have their own records.

A NamedTuple of another class is a member, of the class that a group type names. A Rebalance is no
part of the state; the directory stores it beside the state.
"""


class CodecError(Exception):
    """Bytes that cannot be decoded, or a value that cannot be encoded.

    `what` says what is wrong, `where` in what kind of bytes. The caller adds which entry or record.
    """

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{where}: {what}")
        self.what = what
        self.where = where


class NewerSchema(CodecError):
    """Bytes that a newer version of Holdfast wrote: sound, but unreadable for this one."""


class StateItem(NamedTuple):
    """One record of the state."""

    key: tuple[str, ...]
    """() for the cluster, else the ids in the order that `StateRecord.key` documents; a partition
    is written as decimal digits."""
    value: StateValue


def encode_entry(entry: LogEntry) -> bytes:
    """Encode the payload of a Raft entry. Raises CodecError if the schema cannot hold a value."""
    return join_parts(entry, [encode_part(part) for part in entry.parts])


def encode_part(part: Part) -> bytes:
    """Encode one part of an entry, for `join_parts`. Raises CodecError as `encode_entry` does."""
    try:
        head = (
            text(_PART_GROUP, part.group_id)
            + unsigned(_PART_TERM, part.term, 64)
            + unsigned(_PART_VERSION, part.expected_version, 64)
        )
        events = [nested(_PART_EVENTS, _event_bytes(proposed)) for proposed in part.events]
    except (TypeError, ValueError) as error:
        raise CodecError(f"a field does not fit the schema: {error}", "log entry") from error
    return b"".join([head, *events])


def join_parts(entry: LogEntry, parts: Iterable[bytes]) -> bytes:
    """Join an entry's parts, as encoded, to its payload, without making the whole message."""
    head = events_pb2.LogEntry(
        schema_version=of_entry(entry.parts),
        log_time_ms=entry.log_time_ms,
        wall_time_ms=entry.wall_time_ms,
    )
    return b"".join([_bytes(head), *(nested(bytes((_PARTS_TAG,)), part) for part in parts)])


def decode_entry(payload: bytes) -> LogEntry:
    """Decode a Raft entry's payload. Raises CodecError if it is none, or newer than this code."""
    return read_entry(payload)[0]


def read_entry(payload: bytes, known: LogEntry | None = None) -> tuple[LogEntry, list[list[bytes]]]:
    """Return an entry, and the bytes of each event of each part, for `encode_record`.

    `known`: the entry that was encoded here into these bytes; it is not made again. Raises
    CodecError as `decode_entry` does.
    """
    if known is None:
        message = _parse(events_pb2.LogEntry, payload, "log entry")
        parts = tuple([_part_to_value(part) for part in message.parts])
        known = LogEntry(message.log_time_ms, message.wall_time_ms, parts)
    return known, _events_of(payload)


def _events_of(payload: bytes) -> list[list[bytes]]:
    """Cut the bytes of each event of each part out of an entry's payload, as they were encoded."""
    try:
        return [
            [payload[start:end] for start, end in cut(payload, _EVENTS_TAG, *part)]
            for part in cut(payload, _PARTS_TAG, 0, len(payload))
        ]
    except ValueError as error:
        raise CodecError(f"not readable: {error}", "log entry") from error


def encode_record(record: Record, event: bytes | None = None) -> bytes:
    """Encode a record of the event log without its chain hash: the bytes that the chain covers.

    `event`: the bytes of the record's event, if they are at hand from `read_entry`.
    """
    position, group_id, group_seq, log_time_ms, wall_time_ms, cause, principal, request_id, fact = (
        record
    )
    try:
        version = of_event(fact)
        head = record_head(version, position, group_id, group_seq, log_time_ms, wall_time_ms)
        if event is None:
            event = _event_bytes(Proposed(fact, cause, principal, request_id))
    except (TypeError, ValueError) as error:
        raise CodecError(f"a field does not fit the schema: {error}", "event record") from error
    return head + nested(_EVENT_TAG, event)


def decode_record(payload: bytes) -> Record:
    """Decode a record, with or without chain hash. Raises CodecError as `decode_entry` does."""
    message = _parse(events_pb2.EventRecord, payload, "event record")
    told = _event_to_value(message.event, "event record")
    event, cause, principal, request_id = told
    index, ordinal, group_id, group_seq, log_time_ms, wall_time_ms = _RECORD_HEAD(message)
    record: Record = _new(Record, (
        _new(Position, (index, ordinal)), group_id, group_seq, log_time_ms, wall_time_ms,
        cause, principal, request_id, event,
    ))  # fmt: skip
    return record


def told_boundary(payload: bytes) -> Position | None:
    """Return the boundary of segments that a record tells; None if it tells another event (S22).

    For a search through many records: several times faster than `decode_record`. Raises CodecError
    for bytes that are no record; an event of an unknown kind is one that tells no boundary.
    """
    event = _parse(events_pb2.EventRecord, payload, "event record").event
    if event.WhichOneof("body") != "segment_sealed":
        return None
    last = event.segment_sealed.last
    return Position(last.index, last.ordinal)


def event_fields(event: Event) -> dict[str, Any]:
    """Return an event's values by the names, and in the order, of its message's fields."""
    return _EVENTS_BY_CLASS[type(event)][1].fields(event)


def chain_hash(previous: bytes, payload: bytes) -> bytes:
    """Compute a chain's next hash (S3): SHA-256 over the previous one and a record's payload."""
    return sha256(previous + payload).digest()


def append_chain(payload: bytes, chain: bytes) -> bytes:
    """Append the chain hash to a payload of `encode_record`: a whole `EventRecord` message."""
    if len(chain) != _CHAIN_BYTES:
        raise CodecError(f"a chain hash has 32 bytes, not {len(chain)}", "event record")
    return payload + _CHAIN_TAG + chain


def split_chain(stored: bytes) -> tuple[bytes, bytes]:
    """Undo `append_chain`. Raises CodecError if the bytes do not end in a chain hash."""
    cut = len(stored) - len(_CHAIN_TAG) - _CHAIN_BYTES
    if cut < 0 or stored[cut : cut + len(_CHAIN_TAG)] != _CHAIN_TAG:
        raise CodecError("no chain hash at the end", "event record")
    return stored[:cut], stored[-_CHAIN_BYTES:]


def decode_assignment(assignment: bytes) -> tuple[TopicPartition, ...]:
    """Decode the partitions of a member's assignment in a group of protocol type `consumer`.

    Raises CodecError if the bytes are no `ConsumerProtocolAssignment`; they are not checked when
    they are stored.
    """
    try:
        message = group_pb2.ConsumerProtocolAssignment.FromString(assignment)
    except DecodeError as error:
        raise CodecError(f"not readable: {error}", "assignment") from error
    return tuple(
        TopicPartition(topic.topic, partition)
        for topic in message.assigned_partitions
        for partition in topic.partitions
    )


def encode_state(item: StateItem) -> bytes:
    """Encode a record of the state with its key. The maps of State and Group are left out."""
    try:
        if type(item.value) is Offset:
            return offset_record(of_state(item.value), item.key, item.value)
        name, content = _STATE.to_message(item.value)
        keys = [nested(_STATE_KEY, str.encode(part)) for part in item.key]
    except KeyError:
        raise CodecError(
            f"{type(item.value).__name__} is no part of the state", "state record"
        ) from None
    except (TypeError, ValueError) as error:
        raise CodecError(f"a field does not fit the schema: {error}", "state record") from error
    version = bytes((_STATE_VERSION, of_state(item.value)))
    return b"".join((version, *keys, nested(_STATE.tags[name], _bytes(content))))


def decode_state(stored: bytes) -> StateItem:
    """Decode a state record. The maps of State and Group are empty: other records fill them."""
    message = _parse(_STATE.record, stored, "state record")
    body = message.WhichOneof("body")
    if body is None:
        raise CodecError("holds nothing that this version knows", "state record")
    try:
        value = _STATE.to_value(body, getattr(message, body))
    except ValueError as error:
        raise CodecError(str(error), "state record") from error
    return StateItem(tuple(message.key), value)


def _part_to_value(part: events_pb2.Part) -> Part:
    events = tuple([_event_to_value(event, "log entry") for event in part.events])
    made: Part = _new(Part, (*_PART_HEAD(part), events))
    return made


def _event_bytes(proposed: Proposed) -> bytes:
    """Encode an event: its head by hand, since a body that is put into a message is copied."""
    event, (rule, command), principal, request_id = proposed
    try:
        tag, shape = _BODIES[type(event)]
    except KeyError:
        raise CodecError(f"{type(event).__name__} is no event", "event") from None
    head = _told_bytes(rule, command, principal) + text(_EVENT_REQUEST_ID, request_id)
    return head + nested(tag, _bytes(shape.to_message(event)))


@lru_cache(maxsize=_CAUSES_KEPT)
def _told_bytes(rule: str, command: str, principal: str) -> bytes:
    """Encode the fields that are the same in most events of a caller."""
    cause = text(_EVENT_RULE, rule) + text(_EVENT_COMMAND, command)
    return cause + text(_EVENT_PRINCIPAL, principal)


def _event_to_value(message: events_pb2.Event, where: str) -> Proposed:
    body = message.WhichOneof("body")
    if body is None:
        raise CodecError("an event of a kind that this version does not know", where)
    rule, command, principal, request_id = _TOLD(message)
    event = _READERS[body](getattr(message, body))
    proposed: Proposed = _new(
        Proposed, (event, _new(Cause, (rule, command)), principal, request_id)
    )
    return proposed


def _parse(kind: Any, data: bytes, where: str) -> Any:  # noqa: ANN401 - a message class, its message
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise CodecError(f"not readable: {error}", where) from error
    version = message.schema_version
    if not 1 <= version <= SCHEMA_VERSION:
        raise (NewerSchema if version else CodecError)(
            f"schema version {version}, but this version of Holdfast reads 1 to {SCHEMA_VERSION}; "
            "if a newer node wrote it, upgrade this one",
            where,
        )
    return message


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _body_name(event: type[Any]) -> str:
    """Turn `MemberJoined` into `member_joined`, its name in the oneof."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


def _event_shape(event: type[Any]) -> Shape[Any]:
    field = events_pb2.Event.DESCRIPTOR.fields_by_name.get(_body_name(event))
    if field is None or field.message_type is None:
        raise TypeError(f"events.proto has no body for {event.__name__}: add it, then ./dev proto")
    return Shape(event, field.message_type)


_EVENTS_BY_CLASS: Final[dict[type[Any], tuple[str, Shape[Any]]]] = {
    event: (_body_name(event), _event_shape(event)) for event in get_args(Event)
}
_BODIES: Final = {
    event: (varint(events_pb2.Event.DESCRIPTOR.fields_by_name[body].number << 3 | 2), shape)
    for event, (body, shape) in _EVENTS_BY_CLASS.items()
}
"""The tag of each event's body, and how it is encoded."""
_READERS: Final = {body: shape.read for body, shape in _EVENTS_BY_CLASS.values()}
_PART_HEAD: Final = attrgetter("group_id", "term", "expected_version")
_RECORD_HEAD: Final = attrgetter(
    "position.index", "position.ordinal", "group_id", "group_seq", "log_time_ms", "wall_time_ms"
)
_TOLD: Final = attrgetter("rule", "command", "principal", "request_id")
_new: Final[Any] = tuple.__new__  # makes a NamedTuple of its fields

_STATE: Final = StateShapes(TYPES, state_pb2.StateRecord.DESCRIPTOR)
STATE_FORM: Final = state_pb2.DESCRIPTOR.serialized_pb
"""The messages in which a state is stored: where they are others, so may be its bytes."""
_STATE_VERSION: Final = 1 << 3
_STATE_KEY: Final = bytes([2 << 3 | 2])
"""The fields of StateRecord: they are written by hand, since a message put into one is copied."""
