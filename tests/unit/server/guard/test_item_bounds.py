"""What one request may hold: every list of every request has a bound, told before it is read (S7).

The table is held against the contract's descriptors, so a new field cannot be forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor

from holdfast.server.guard import item_bounds, wire
from holdfast.server.guard.item_bounds import ITEMS_MAX, Bounds, most_of
from holdfast.server.rpc.errors import CallFailed
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2, offset_pb2
from holdfast.v1 import offset_pb2 as o
from unit.server.nodes import Served, join, served

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

FILES = (g.DESCRIPTOR, offset_pb2.DESCRIPTOR, a.DESCRIPTOR, log_pb2.DESCRIPTOR)
PAYLOADS = (g.ConsumerProtocolSubscription, g.ConsumerProtocolAssignment)
"""What the bytes of type `consumer` hold: the service reads them, so they are bounded as well."""


def requests() -> dict[str, Descriptor]:
    """Everything that a caller can send, by name."""
    services = [s for file in FILES for s in file.services_by_name.values()]
    sent = [method.input_type for service in services for method in service.methods]
    return {one.name: one for one in (*sent, *(kind.DESCRIPTOR for kind in PAYLOADS))}


def lists_in(message: Descriptor, path: str) -> Iterator[tuple[str, FieldDescriptor]]:
    """Every repeated field, nested ones too."""
    for field in message.fields:
        where = f"{path}.{field.name}"
        if field.is_repeated:
            yield where, field
        if field.message_type is not None:
            yield from lists_in(field.message_type, where)


ALL_MESSAGES = requests()
BOUNDS = {name: Bounds(one) for name, one in ALL_MESSAGES.items()}
ALL = {path: field for name, one in ALL_MESSAGES.items() for path, field in lists_in(one, name)}
OF_ALL = [path for path in ALL if path.endswith(".holdfast.client_assignors.assignors")]
MOST = {path: most_of(path) for path in ALL}


def test_every_list_of_every_request_has_a_bound_and_every_bound_a_list() -> None:
    """But for the list in our own part of requests, which all of them have."""
    assert sorted({*ITEMS_MAX, *OF_ALL}) == sorted(ALL)
    assert all(most > 0 for most in MOST.values())


def test_lists_of_numbers_are_of_a_kind_that_is_counted_right() -> None:
    """A run of numbers of fixed length would be counted wrongly on the wire."""
    fixed = {
        FieldDescriptor.TYPE_DOUBLE,
        FieldDescriptor.TYPE_FLOAT,
        FieldDescriptor.TYPE_FIXED32,
        FieldDescriptor.TYPE_FIXED64,
        FieldDescriptor.TYPE_SFIXED32,
        FieldDescriptor.TYPE_SFIXED64,
    }
    assert not [path for path, field in ALL.items() if field.type in fixed]


def with_items(path: str, count: int) -> Message:
    """A message with so many items in one list, each as small as it can be."""
    name, *way = path.split(".")
    message = made(name)
    inside: Message = message
    for step in way[:-1]:
        nested = getattr(inside, step)
        inside = nested.add() if hasattr(nested, "add") else nested
    items = getattr(inside, way[-1])
    if ALL[path].message_type is not None:
        for _ in range(count):
            items.add()
    else:
        items.extend(["" if ALL[path].type == FieldDescriptor.TYPE_STRING else 0] * count)
    return message


def made(name: str) -> Message:
    kinds = (getattr(module, name, None) for module in (g, o, a, log_pb2))
    message: Message = next(kind for kind in kinds if kind is not None)()
    return message


@pytest.mark.parametrize("path", sorted(MOST))
def test_as_many_as_allowed_pass_and_one_more_is_told_with_field_and_limit(path: str) -> None:
    """Both before and after parsing."""
    found = BOUNDS[path.partition(".")[0]]
    least, more = with_items(path, MOST[path]), with_items(path, MOST[path] + 1)

    found.check(least, lambda: 0)
    found.check_bytes(least.SerializeToString())
    with pytest.raises(CallFailed) as refused:
        found.check(more, lambda: 0)

    assert refused.value.status is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.outcome == "not-applied"
    assert refused.value.sentence.startswith(path.partition(".")[2] + ": ")
    assert str(MOST[path]) in refused.value.sentence


@pytest.mark.parametrize("path", sorted(MOST))
def test_one_more_is_found_on_the_wire_too(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the parser makes objects of it; numbers count in a run and one by one."""
    monkeypatch.setattr(item_bounds, "COUNTED_FROM", 0)
    found = BOUNDS[path.partition(".")[0]]
    found.check_bytes(with_items(path, MOST[path]).SerializeToString())
    with pytest.raises(CallFailed) as refused:
        found.check_bytes(with_items(path, MOST[path] + 1).SerializeToString())

    assert refused.value.sentence.startswith(path.partition(".")[2] + ": ")
    assert str(MOST[path]) in refused.value.sentence


def test_items_of_all_parents_count_together() -> None:
    """Else 5,000 topics with 5,000 partitions each would be twenty-five million."""
    most = ITEMS_MAX["OffsetCommitRequest.topics.partitions"]
    halves = [o.OffsetCommitRequestTopic(name=name) for name in "abc"]
    for topic in halves:
        for _ in range(most // 2):
            topic.partitions.add()
    request = o.OffsetCommitRequest(topics=halves)

    with pytest.raises(CallFailed, match=r"topics\.partitions"):
        BOUNDS["OffsetCommitRequest"].check(request, lambda: 0)
    with pytest.raises(wire.TooMany, match=r"topics\.partitions"):
        wire.Counter(request.SerializeToString(), 1_000_000).count(
            item_bounds.fields_of(ALL_MESSAGES["OffsetCommitRequest"])
        )


def test_a_call_may_name_as_many_members_as_a_group_may_have() -> None:
    """S23: a group leader must be able to assign, whatever `group.max_size` is raised to."""
    request = with_items("SyncGroupRequest.assignments", 20_000)
    found = BOUNDS["SyncGroupRequest"]
    long = g.SyncGroupRequest(group_id="x" * item_bounds.COUNTED_FROM)
    padded = request.SerializeToString() + long.SerializeToString()

    found.check(request, lambda: 20_000)
    found.check_bytes(padded, lambda: 20_000)
    with pytest.raises(CallFailed, match="19999"):
        found.check(request, lambda: 19_999)
    with pytest.raises(CallFailed, match="19999"):
        found.check_bytes(padded, lambda: 19_999)


LONG = item_bounds.COUNTED_FROM + 1
MANY = item_bounds.COUNTED_ALWAYS_FROM // 2 + 1
UNKNOWN = b"\xfa\x7f\x00"
"""A field that no message of the contract has, with nothing in it."""


def overlong(item: bytes) -> bytes:
    """The same with its first number written in more bytes than it needs, which parsers take."""
    return bytes([item[0] | 128, 128, 0]) + item[1:]


def test_a_number_that_is_written_long_does_not_hide_an_item() -> None:
    item = overlong(inside(2, b""))
    raw = item * (item_bounds.BEATS_MAX + 1) + b"\xfa\x7f\x00" * item_bounds.COUNTED_FROM
    raw = raw[: len(item) * (item_bounds.BEATS_MAX + 1) + 3 * 20_000]

    assert item_bounds.COUNTED_FROM < len(raw) < item_bounds.COUNTED_ALWAYS_FROM
    assert len(g.HeartbeatBatch.FromString(raw).requests) > item_bounds.BEATS_MAX
    with pytest.raises(CallFailed, match="requests"):
        BOUNDS["HeartbeatBatch"].check_bytes(raw)


AGAIN = b"\x0a\x00"
"""A single field, which may come again and again: the last one counts."""


def inside(number: int, content: bytes) -> bytes:
    """A nested message with this content, as field of that number."""
    return key(number) + varint(len(content)) + content


def key(number: int) -> bytes:
    return varint(number << 3 | wire.SIZED)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


@pytest.mark.parametrize(
    "raw",
    [UNKNOWN * MANY, AGAIN * MANY, inside(100, UNKNOWN * MANY), inside(7, AGAIN * MANY)],
    ids=["unknown", "again", "unknown in the extras", "again in an item"],
)
def test_fields_that_are_no_items_are_bounded_too(raw: bytes) -> None:
    with pytest.raises(CallFailed, match="more fields"):
        BOUNDS["JoinGroupRequest"].check_bytes(raw)


def test_fields_of_long_items_are_those_of_the_contract() -> None:
    items = [field.message_type for field in ALL.values() if field.message_type]
    plain = [item for item in items if not list(lists_in(item, ""))]
    assert max(len(item.fields) for item in plain) == item_bounds.PLAIN_FIELDS_MAX


@pytest.mark.parametrize("more", [0, 2_000])
def test_as_many_long_items_as_are_allowed_pass(more: int) -> None:
    """S7: with a large `log.entry_bytes_max`, assignments may be long and many, all fields set."""
    count = ITEMS_MAX["SyncGroupRequest.assignments"] + more
    long = b"x" * (wire.PLAIN_MESSAGE_BYTES + 1)
    one = g.SyncGroupRequestAssignment(member_id="m", assignment=long)
    raw = g.SyncGroupRequest(group_id="g", assignments=[one] * count).SerializeToString()

    BOUNDS["SyncGroupRequest"].check_bytes(raw, lambda: count)


HALVES = [b"\xff" * 20, key(5) + varint(1 << 40), b"\x2a", b"\x2f", b"\x2a\xff"]


@pytest.mark.parametrize("broken", HALVES)
def test_bytes_that_are_no_message_hide_nothing_that_comes_before_them(broken: bytes) -> None:
    """The parser reads as far as it can, so whatever it would read is counted."""
    partition = inside(2, b"")
    topic = inside(5, partition * (ITEMS_MAX["OffsetCommitRequest.topics.partitions"] + 2))
    found = BOUNDS["OffsetCommitRequest"]
    long = inside(1, b"g" * LONG)

    found.check_bytes(long + broken)  # left to the parser
    with pytest.raises(CallFailed, match=r"topics\.partitions"):
        found.check_bytes(long + topic + broken)
    with pytest.raises(CallFailed, match=r"topics\.partitions"):
        found.check_bytes(long + topic[:-1])


def test_random_bytes_never_break_the_count() -> None:
    """Whatever comes: it passes, or it is refused. The seed is printed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    found = BOUNDS["OffsetCommitRequest"]
    whole = with_items("OffsetCommitRequest.topics.partitions", 50).SerializeToString()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_bounds, "COUNTED_FROM", 0)
        for _ in range(2_000):
            at = chance.randrange(len(whole))
            with contextlib.suppress(CallFailed):
                found.check_bytes(whole[:at] + chance.randbytes(8) + whole[at + 4 :])


# --- over gRPC ---


async def told(call: Awaitable[object]) -> tuple[grpc.StatusCode, str, object]:
    """Status, sentence and outcome of a call that fails."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    trailing = dict(failed.value.trailing_metadata() or ())
    return failed.value.code(), failed.value.details() or "", trailing.get("holdfast-outcome")


HOSTILE: dict[str, Callable[[Served], Awaitable[object]]] = {
    "coordinator_keys": lambda node: node.group.FindCoordinator(
        g.FindCoordinatorRequest(coordinator_keys=[""] * 300_000)
    ),
    "groups.topics.partition_indexes": lambda node: node.offset.OffsetFetch(
        o.OffsetFetchRequest(
            groups=[
                o.OffsetFetchRequestGroup(
                    group_id="g",
                    topics=[o.OffsetFetchRequestTopic(name="t", partition_indexes=range(300_000))],
                )
            ]
        )
    ),
    "groups": lambda node: node.admin.DescribeGroups(
        a.DescribeGroupsRequest(groups=["g"] * 100_000)
    ),
    "protocols.metadata.topics": lambda node: node.group.JoinGroup(
        g.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[
                g.JoinGroupRequestProtocol(
                    name=name,
                    metadata=g.ConsumerProtocolSubscription(
                        topics=[""] * 4_000
                    ).SerializeToString(),
                )
                for name in "abcdefgh"
            ],
        )
    ),
}


@pytest.mark.parametrize("field", sorted(HOSTILE))
def test_a_hostile_call_is_told_field_and_limit_and_that_nothing_happened(field: str) -> None:
    """A node looked at each of these items: 1.3 s for 300,000 empty keys."""

    async def story() -> None:
        async with served() as node:
            code, sentence, outcome = await told(HOSTILE[field](node))

        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert sentence.startswith(f"{field}: ")
        assert outcome == "not-applied"

    asyncio.run(story())


def test_a_stream_is_told_too() -> None:
    async def story() -> None:
        async with served() as node:
            many = o.OffsetCommitRequestTopic(name="t")
            for _ in range(ITEMS_MAX["OffsetCommitRequest.topics.partitions"] + 1):
                many.partitions.add()
            commits = node.offset.OffsetCommitStream(
                iter([o.OffsetCommitRequest(group_id="g", topics=[many])])
            )
            committed = await told(commits.read())
            batch = g.HeartbeatBatch(requests=[g.HeartbeatRequest()] * (item_bounds.BEATS_MAX + 1))
            beats = await told(node.group.HeartbeatStream(iter([batch])).read())

        assert committed[0] is beats[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert committed[1].startswith("topics.partitions: ")
        assert beats[1].startswith("requests: ")
        assert committed[2] == beats[2] == "not-applied"

    asyncio.run(story())


def test_a_watch_that_cannot_be_read_is_told_and_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What one caller sends must not fill the node's log."""

    async def story() -> None:
        async with served() as node:
            watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = node.channel.unary_stream(
                "/holdfast.v1.LogService/Watch"
            )
            code, _, outcome = await told(watch(b"\xff\xff").read())

        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert outcome == "not-applied"
        assert not caplog.records

    asyncio.run(story())


def test_a_call_that_cannot_be_long_has_a_limit_of_its_own() -> None:
    """S7's limit is for what may hold metadata, assignments and offsets; a heartbeat never does."""

    async def story() -> None:
        async with served() as node:
            long = g.HeartbeatRequest(group_id="g" * (item_bounds.PLAIN_BYTES_MAX + 1))
            code, sentence, outcome = await told(node.group.Heartbeat(long))
            joined = await node.group.JoinGroup(join())

        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert f"at most {item_bounds.PLAIN_BYTES_MAX} are allowed" in sentence
        assert outcome == "not-applied"
        assert joined.error_code == 0

    asyncio.run(story())


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("HeartbeatRequest", item_bounds.PLAIN_BYTES_MAX),
        ("FindCoordinatorRequest", item_bounds.PLAIN_BYTES_MAX + 1_000 * 1_024),
        ("DescribeGroupsRequest", 4 << 20),
        ("OffsetCommitRequest", None),
    ],
)
def test_how_long_each_kind_may_be(name: str, most: int | None) -> None:
    """An id of 1,024 bytes an item, never above gRPC's own default; None: the setting (S7)."""
    assert BOUNDS[name].bytes_max == most
