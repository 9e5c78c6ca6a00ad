"""How many items each repeated field of a request may hold, and how many bytes a request.

Without bounds, a caller could hold up a node with one message: a field of 300,000 empty texts takes
600 kB on the wire, 1.3 s in Python and 10 ms in protobuf's own parser. So a long request is counted
on the wire, before it is parsed, and every request again before anything looks at its items. A
table holds a bound for each field; a test walks the contract's descriptors, so that none is left
out. Knows the contract's messages and no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor import FieldDescriptor

from holdfast.server.guard import wire
from holdfast.server.guard.wire import PLAIN_MESSAGE_BYTES, Counter, Field, TooMany
from holdfast.server.rpc.errors import malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    from holdfast.server.rpc.errors import CallFailed

    MembersMax = Callable[[], int]
    """How many members the largest group may have at this moment (`group.max_size`, S23)."""

BEATS_MAX: Final = 2_000
"""Heartbeats in one message of a stream."""
MEMBERS_MAX: Final = 10_000
"""Members that a sync names, or as many as the group may have (`group.max_size`)."""
LEAVING_MAX: Final = 2_000
"""Members that a leave or a removal names, which is decided in one go: about 2 microseconds each.
A call for all members of a group, or for those of a prefix, names none of them."""
OFFSETS_MAX: Final = 500
"""Partitions of one commit or deletion, which is decided in one go: about 10 microseconds each."""

CALLS_MAX: Final = 2_000
"""Calls in one message of a stream. What all of them together list is bounded, too; what each of
them lists, by the bounds of its own request."""

ITEMS_MAX: Final[Mapping[str, int]] = {
    "JoinGroupRequest.protocols": 100,
    "SyncGroupRequest.assignments": MEMBERS_MAX,
    "HeartbeatBatch.requests": BEATS_MAX,
    "HeartbeatBatch.consumer_requests": BEATS_MAX,
    "HeartbeatBatch.consumer_requests.holdfast.client_assignors.assignors": 10_000,
    "HeartbeatBatch.consumer_requests.subscribed_topic_names.names": 10_000,
    "HeartbeatBatch.consumer_requests.topic_partitions.topic_partitions": 10_000,
    "HeartbeatBatch.consumer_requests.topic_partitions.topic_partitions.partitions": 100_000,
    "ConsumerGroupHeartbeatRequest.subscribed_topic_names.names": 5_000,
    "ConsumerGroupHeartbeatRequest.topic_partitions.topic_partitions": 10_000,
    "ConsumerGroupHeartbeatRequest.topic_partitions.topic_partitions.partitions": 100_000,
    "InstallAssignmentRequest.members": MEMBERS_MAX,
    "InstallAssignmentRequest.members.topic_partitions": 100_000,
    "InstallAssignmentRequest.members.topic_partitions.partitions": 100_000,
    "LeaveGroupRequest.members": LEAVING_MAX,
    "SessionRequest.calls": CALLS_MAX,
    "SessionRequest.calls.join.protocols": 10_000,
    "SessionRequest.calls.sync.assignments": MEMBERS_MAX,
    "SessionRequest.calls.leave.members": 10_000,
    "SessionRequest.calls.commit.topics": 10_000,
    "SessionRequest.calls.commit.topics.partitions": 10_000,
    "SessionRequest.calls.consumer_heartbeat.holdfast.client_assignors.assignors": 10_000,
    "SessionRequest.calls.consumer_heartbeat.subscribed_topic_names.names": 10_000,
    "SessionRequest.calls.consumer_heartbeat.topic_partitions.topic_partitions": 10_000,
    "SessionRequest.calls.consumer_heartbeat.topic_partitions.topic_partitions.partitions": 100_000,
    "SessionRequest.given_up": CALLS_MAX,
    "FindCoordinatorRequest.coordinator_keys": 1_000,
    "OffsetCommitRequest.topics": OFFSETS_MAX,
    "OffsetCommitRequest.topics.partitions": OFFSETS_MAX,
    "OffsetFetchRequest.groups": 1_000,
    "OffsetFetchRequest.groups.topics": 10_000,
    "OffsetFetchRequest.groups.topics.partition_indexes": 10_000,
    "OffsetDeleteRequest.topics": OFFSETS_MAX,
    "OffsetDeleteRequest.topics.partitions": OFFSETS_MAX,
    "DescribeGroupsRequest.groups": 5_000,
    "ConsumerGroupDescribeRequest.group_ids": 5_000,
    "ListGroupsRequest.states_filter": 100,
    "ListGroupsRequest.types_filter": 100,
    "DeleteGroupsRequest.groups_names": 1_000,
    "RemoveMembersRequest.members": LEAVING_MAX,
    "CreateTopicsRequest.topics": 2_000,
    "CreatePartitionsRequest.topics": 2_000,
    "DeleteTopicsRequest.topics": 2_000,
    "ListTopicsRequest.names": 10_000,
    "DescribeSettingsRequest.names": 100,
    "AlterSettingsRequest.settings": 100,
    "AlterAclsRequest.granted": 500,
    "AlterAclsRequest.revoked": 500,
    "AlterRevocationsRequest.revoked": 500,
    "AlterRevocationsRequest.lifted": 500,
    "ConsumerProtocolSubscription.topics": 5_000,
    "ConsumerProtocolSubscription.owned_partitions": 10_000,
    "ConsumerProtocolSubscription.owned_partitions.partitions": 100_000,
    "ConsumerProtocolAssignment.assigned_partitions": 10_000,
    "ConsumerProtocolAssignment.assigned_partitions.partitions": 100_000,
}
"""Most items, by message and field; items of a nested field are summed over the whole message.

The last ones are no requests, but the messages in bytes of type `consumer`.
"""
_IN_EXTRAS: Final = ".holdfast.client_assignors.assignors"
"""The only list in our own part of requests; it means something in one kind of heartbeat alone, and
counts everywhere, for whatever has that part has the list."""
_IN_EXTRAS_MAX: Final = 5_000
"""Its items, where no line above says another number; a heartbeat with more than 16 is refused."""
_OF_MEMBERS: Final = frozenset(
    {"SyncGroupRequest.assignments", "SessionRequest.calls.sync.assignments"}
    | {"InstallAssignmentRequest.members"}
)
_OF_ANY_SIZE: Final = frozenset(
    {"JoinGroupRequest", "SyncGroupRequest", "LeaveGroupRequest", "RemoveMembersRequest"}
    | {"OffsetCommitRequest", "SessionRequest", "InstallAssignmentRequest"}
)
"""Requests that carry bytes or texts of their callers: only the setting bounds them (S7)."""
PLAIN_BYTES_MAX: Final = 64 << 10
"""Longest request without lists: a few ids of at most 4,096 characters each."""
_ITEM_BYTES: Final = 1_024
_LIST_BYTES_MAX: Final = 4 << 20
COUNTED_FROM: Final = 64 << 10
"""Bytes from which a request is counted before it is parsed: below, parsing takes some 2 ms."""
COUNTED_ALWAYS_FROM: Final = 1 << 20
"""Bytes from which fields that are no items, too, would take the parser more than some 6 ms."""
SINGLE_FIELDS_MAX: Final = 1_000
"""Fields beside those of items, known or unknown; no message of the contract has nearly as many."""


def fields_of(message: Descriptor, path: str = "") -> dict[int, Field]:
    """Return the fields of a message that are repeated or hold messages, by number.

    Raises KeyError for a repeated field without a bound.
    """
    path = path or message.name
    return {
        field.number: _field(field, f"{path}.{field.name}")
        for field in message.fields
        if field.is_repeated or field.message_type
    }


def _field(field: FieldDescriptor, path: str) -> Field:
    inner = fields_of(field.message_type, path) if field.message_type else None
    return Field(
        path=path,
        name=field.name,
        number=field.number,
        most=most_of(path) if field.is_repeated else None,
        packed=field.is_repeated and field.type in _NUMBERS,
        inner=inner,
        lists=any(one.most is not None or one.lists for one in (inner or {}).values()),
    )


def most_of(path: str) -> int:
    """Return the bound of a list; raises KeyError if it has none."""
    if path.endswith(_IN_EXTRAS):
        return ITEMS_MAX.get(path, _IN_EXTRAS_MAX)
    return ITEMS_MAX[path]


_NUMBERS: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_BOOL,
        FieldDescriptor.TYPE_ENUM,
    }
)
"""Types that are encoded as varints; the contract has lists of no other numbers (a test checks)."""


def walk(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield all fields, with those that are nested in them."""
    for field in fields:
        yield field
        yield from walk((field.inner or {}).values())


class Bounds:
    """The bounds of one kind of message."""

    def __init__(self, message: Descriptor, where: str = "") -> None:
        """`where`: the field whose bytes are the message. Raises KeyError if a bound is missing."""
        self._where = f"{where}." if where else ""
        self._name = message.name
        self._fields = fields_of(message)
        self._lists = tuple(
            field for field in self._fields.values() if field.most is not None or field.lists
        )
        items = sum(field.most or 0 for field in walk(self._fields.values()))
        self._items_max = items
        self._first_bytes = tuple(_first_bytes(walk(self._fields.values())))
        self._least = {field.path: _least((field,)) for field in walk(self._fields.values())}
        self.least = _least(self._fields.values())
        """The smallest bound of a list: a message of so many bytes, or items, breaks none."""
        any_size = self._name in _OF_ANY_SIZE
        of_all = (field for field in walk(self._fields.values()) if "holdfast" not in field.path)
        listed = sum(field.most or 0 for field in of_all)
        own = min(PLAIN_BYTES_MAX + listed * _ITEM_BYTES, _LIST_BYTES_MAX)
        self.bytes_max = None if any_size else own
        """Most bytes of such a message; None: as many as the setting allows."""

    def check_bytes(self, raw: bytes, members_max: MembersMax = lambda: MEMBERS_MAX) -> None:
        """Raise CallFailed for a message with too many items, before it is parsed."""
        if len(raw) <= COUNTED_FROM or self._cannot_be_too_many(raw):
            return
        try:
            Counter(raw, self._fields_max(raw)).count(self._fields)
        except TooMany as error:
            more = members_max() - MEMBERS_MAX if _names_members(error.field) else 0
            if more <= 0:
                raise self._too_many(error.field) from None
            self._check_more(raw, more)

    def _fields_max(self, raw: bytes, more: int = 0) -> int:
        """Return how many fields a valid message of this length may have at most."""
        items = self._items_max + more
        looked_into = min(items, len(raw) // PLAIN_MESSAGE_BYTES)
        return items * _FIELDS_EACH + looked_into * PLAIN_FIELDS_MAX + SINGLE_FIELDS_MAX

    def _cannot_be_too_many(self, raw: bytes) -> bool:
        """Return whether the bytes that begin items are too rare for too many items.

        This is so for most valid messages, and takes about a hundredth of the time of a count.
        """
        return len(raw) <= COUNTED_ALWAYS_FROM and all(
            sum(map(raw.count, first)) <= most for first, most in self._first_bytes
        )

    def _check_more(self, raw: bytes, more: int) -> None:
        try:
            Counter(raw, self._fields_max(raw, more), more).count(self._fields)
        except TooMany as error:
            raise self._too_many(error.field, more) from None

    def check(self, request: Message, members_max: MembersMax = lambda: MEMBERS_MAX) -> None:
        """Raise CallFailed for a message with too many items, before anything looks at them."""
        size = request.ByteSize()
        for field in self._lists:
            self._check(field, (request,), size, members_max)

    def _check(
        self, field: Field, among: Sequence[Message], size: int, members_max: MembersMax
    ) -> None:
        """Check a field and all inside of it; `size`: of the whole message, which an item is in."""
        most = field.most
        if not self._may_break(field, size):
            return
        if most is None:
            self._check_inside(field, among, size, members_max)
            return
        found = [getattr(one, field.name) for one in among]
        count = sum(map(len, found))
        if count > most:
            more = members_max() - MEMBERS_MAX if _names_members(field) else 0
            if count > most + max(0, more):
                raise self._too_many(field, more)
        inside = [each for each in (field.inner or {}).values() if self._may_break(each, size)]
        if inside:
            items = [item for each in found for item in each]
            for inner in inside:
                self._check(inner, items, size, members_max)

    def _may_break(self, field: Field, size: int) -> bool:
        """Return whether a list here or inside could be too long in a message of so many bytes.

        One that could hold as many items as the message has bytes is not looked at: hundreds of
        heartbeats share a message, and each could name topics.
        """
        return 0 < self._least[field.path] < size

    def _check_inside(
        self, field: Field, among: Sequence[Message], size: int, members_max: MembersMax
    ) -> None:
        """Check the lists in a single message that is set in some of these."""
        if not field.lists or not field.inner:
            return
        set_ones = [getattr(one, field.name) for one in among if one.HasField(field.name)]
        for inner in field.inner.values() if set_ones else ():
            self._check(inner, set_ones, size, members_max)

    def _too_many(self, field: Field | None, more: int = 0) -> CallFailed:
        if field is None:
            return malformed("the request", "has more fields than the contract; leave them out")
        most = (field.most or 0) + max(0, more)
        return malformed(
            self._where + field.path.removeprefix(f"{self._name}."),
            f"has more items than the {most} that one call may have, so nothing was done. Split "
            "the call",
        )


_FIELDS_EACH: Final = 2
"""Fields that are counted for an item: the item itself and, on average, one field in it."""
PLAIN_FIELDS_MAX: Final = 6
"""Fields of an item without lists, at most. They are counted only where the item is long."""


def _least(fields: Iterable[Field]) -> int:
    """Return the smallest bound of a list among these and inside of them; 0: there is no list."""
    return min((field.most for field in walk(fields) if field.most), default=0)


def _first_bytes(fields: Iterable[Field]) -> Iterator[tuple[tuple[bytes, ...], int]]:
    """Yield the bytes that begin an item and how often they may occur; -1 for packed numbers."""
    for field in fields:
        if field.most is not None:
            yield wire.first_bytes(field), -1 if field.packed else field.most


def _names_members(field: Field | None) -> bool:
    return field is not None and field.path in _OF_MEMBERS
