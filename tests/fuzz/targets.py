"""Everything that reads bytes from the network or a disk, as functions that refuse or succeed.

A target may raise its refusals and nothing else, whatever the bytes; the seeds are well-formed, so
that mutations reach deep. Knows the decoders, not how bytes are made.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_type_hints
from zlib import crc32

from google.protobuf.message import DecodeError, Message

from golden.values_v1 import EVENTS, entry, record
from golden.values_v2 import STATE
from harness import hostile
from holdfast.chaos.history.happenings import Role
from holdfast.chaos.history.jsonl import happening_of, line_of
from holdfast.client._session.protocol import read_assignment, read_subscription
from holdfast.client.errors import IncompatibleServer
from holdfast.coordinator.model.commands import Caller
from holdfast.raft import messages
from holdfast.raft.api import BadMessage
from holdfast.raft.transport import frames, wrong_port
from holdfast.raft.wire import codec, greeting
from holdfast.runtime.errors import NotCoordinator
from holdfast.server.config import cluster_file, node_config
from holdfast.server.rpc.errors import CallFailed
from holdfast.server.translate import admin, assignments, requests
from holdfast.storage.codec import event_codec
from holdfast.storage.disk import records
from holdfast.storage.disk.folder import Folder
from holdfast.storage.errors import InstallRefused, JournalDamaged
from holdfast.storage.journal import tail_batch, tail_file, tail_recovery
from holdfast.storage.journal.journal import (
    Entry,
    HardState,
    Identity,
    JournalBatch,
    JournalImage,
)
from holdfast.storage.segments import segments
from holdfast.storage.segments.segment_writer import write_segment
from holdfast.storage.state import state_stream
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as log
from holdfast.v1 import offset_pb2 as o

CALLER: Final = Caller(1, principal="fuzz", client_id="fuzz")


class Target(NamedTuple):
    """One decoder: `read` raises one of `refusals` or returns; anything else is a defect."""

    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: Sequence[bytes]

    def __call__(self, data: bytes) -> bool:
        """Give it bytes; True if they were accepted."""
        try:
            self.read(data)
        except self.refusals:
            return False
        return True


# --- what peers send ---------------------------------------------------------------------


def _frames(data: bytes) -> None:
    """Read a connection whose bytes come in pieces of 50."""
    reader = frames.FrameReader()
    for at in range(0, len(data), 50):
        reader.feed(data[at : at + 50])
        while (frame := reader.take()) is not None:
            if frame:
                codec.decode(frame)


def _wrong_port(data: bytes) -> None:
    """Read a client of gRPC at the peer port; how it begins is taken as right."""
    caller = wrong_port.WrongPort("n1", "", "")
    caller.feed(wrong_port.PREFACE)
    for at in range(0, len(data), 50):
        caller.feed(data[at : at + 50])


def _filled(kind: type[Any]) -> Any:  # noqa: ANN401 - a message of that kind
    """Make a message with the simplest value of each field's type."""
    simple: dict[object, object] = {int: 7, bool: False, str: "n1", bytes: b"payload"}
    simple[tuple[messages.LogEntry, ...]] = (messages.LogEntry(7, b"command"),) * 2
    simple[tuple[messages.Formed, ...]] = (messages.Formed("n1", "disk-1"),) * 2
    hints = get_type_hints(kind)
    return kind(*(simple[hints[field.name]] for field in fields(kind)))


def _framed() -> list[bytes]:
    each = [frames.pack(codec.encode(_filled(kind))) for kind in get_args(messages.Message)]
    return [*each, frames.ALIVE.join(each)]


def _stream(data: bytes) -> None:
    decoder = state_stream.StreamDecoder()
    for at in range(0, len(data), 50):
        decoder.feed(data[at : at + 50])


def _streamed() -> list[bytes]:
    one = [state_stream.StreamedRecord(n, b"key%d" % n, b"content" * n) for n in range(4)]
    return [
        b"".join(state_stream.encode_stream(one, 64)),
        b"".join(state_stream.encode_stream([], 9)),
    ]


_GREETING: Final = greeting.Greeting("c", "n1", "n2", method="segments")
_HTTP2: Final = hostile.frame(hostile.SETTINGS) + hostile.frame(
    hostile.HEADERS, hostile.END_HEADERS, 1, hostile.call_headers()
)


# --- what lies on disks ------------------------------------------------------------------


def _entry_record(data: bytes) -> None:
    records.unpack_entry(7, data)


def _named_record(data: bytes) -> None:
    records.unpack_named(b"hard_state", data)


def _body(read: Callable[[object], object], *bodies: object) -> Target:
    """Read a named record's body; its checksum is taken as right, or nothing would get here."""

    def run(data: bytes) -> None:
        stored = crc32(data, crc32(b"name")).to_bytes(4, "big") + data
        read(records.unpack_named(b"name", stored))

    seeds = [json.dumps(body).encode() for body in bodies]
    return Target(run, (records.RecordDamaged,), seeds)


_IDENTITY: Final = Identity("c", "n1", "disk-1", "member", (("n2", "disk-2"),), 400)


_TAIL_CHECKPOINT: Final = tail_recovery.Checkpoint(bytes(16).hex(), 0, 0)


def _tail_batch(data: bytes) -> None:
    """Read a batch's body; its checksum is taken as right, or nothing would get here."""
    tail_batch.decode_batch(data)


def _tail_file(data: bytes) -> None:
    """Start on a file of the tail behind an empty environment, and beside one without a tail."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / tail_file.file_name(1)).write_bytes(data)
        with suppress(JournalDamaged):
            tail_recovery.refuse_tail_before_checkpoint(path, Folder(path))
        recovered = tail_recovery.recover(path, _TAIL_CHECKPOINT, Folder(path))
        tail_recovery.replayed(path, JournalImage(), recovered)


def _tail_bodies() -> list[bytes]:
    batches = [
        JournalBatch(append=(Entry(1, 1, b"payload"), Entry(2, 1, b"")), commit_index=1),
        JournalBatch(truncate_from=2, append=(Entry(2, 2, b"other"),), cut_to=(1, 1)),
        JournalBatch(reset_to=(9, 3), hard_state=HardState(4, "n1"), identity=_IDENTITY),
    ]
    return [b"".join(tail_batch.encode_batch(batch)) for batch in batches]


def _tail_contents() -> list[bytes]:
    """A file as it was written; one whose last batch is torn; one that was used before."""
    head = tail_file.file_head(bytes(16), 1)
    whole, before = (
        b"".join(
            tail_file.pack_batch(tail_file.mark_of(bytes(16), serial), number, [body])
            for number, body in enumerate(_tail_bodies(), start=1)
        )
        for serial in (1, 9)
    )
    torn = whole[: tail_file.BATCH_HEAD_BYTES + 9 - tail_file.BLOCK]
    used = whole[: tail_file.BLOCK] + before[tail_file.BLOCK :]
    return [(head + batches).ljust(4096, b"\0") for batches in (whole, torn, used)]


def _state_record(data: bytes) -> None:
    records.unpack_record("groups", data[:20], data[20:])


def _manifest(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / segments.MANIFEST).write_bytes(data)
        segments.read_manifest(Path(folder))


def _written_manifest() -> bytes:
    rows = [
        segments.Row(
            r.position,
            event_codec.append_chain(event_codec.encode_record(r), event_codec.CHAIN_START),
        )
        for r in map(record, EVENTS[:1])
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_segment(Path(folder), rows, "c", "n1")
        (segment,) = segments.segments_in(Path(folder))
        return (segment / segments.MANIFEST).read_bytes()


def _cluster_json(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        cluster_file.read(Path(file.name))


_CLUSTER_JSON: Final = {
    "cluster_id": "c",
    "nodes": [
        {
            "name": "n1",
            "client_address": "127.0.0.1:1",
            "peer_address": "127.0.0.1:2",
            "pid": 1,
            "directory": "n1",
        }
    ],
    "tls": None,
}


def _node_toml(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        node_config.load(Path(file.name), {}, ())


_NODE_TOML: Final = b"""[node]
name = "n1"
data_dir = "data"
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[cluster]
id = "c"
[cluster.peers.n1]
client_address = "127.0.0.1:7400"
peer_address = "127.0.0.1:7500"
[tls]
insecure_loopback = true
[group]
min_session_timeout_ms = 200
"""


_ROLE: Final = Role(5, "n1", "leader", 3)


def _history_line(data: bytes) -> None:
    happening_of(data.decode(errors="surrogateescape"))


# --- what callers send -------------------------------------------------------------------

_REQUESTS: Final[dict[type[Message], Callable[[Any], object]]] = {
    g.JoinGroupRequest: lambda r: requests.join_group(r, CALLER, "fresh"),
    g.SyncGroupRequest: lambda r: requests.sync_group(
        r, CALLER, tuple(requests.assigned(r.assignments))
    ),
    g.HeartbeatRequest: lambda r: requests.heartbeat(r, CALLER),
    g.ConsumerGroupHeartbeatRequest: lambda r: requests.consumer_heartbeat(r, CALLER, ""),
    g.HeartbeatBatch: lambda r: [
        _REQUESTS[type(one)](one) for one in (*r.requests, *r.consumer_requests)
    ],
    g.InstallAssignmentRequest: lambda r: list(assignments.targets(r)),
    g.LeaveGroupRequest: lambda r: requests.leave_group(
        r, CALLER, tuple(requests.leaving(r.members))
    ),
    o.OffsetCommitRequest: lambda r: requests.commit_offsets(r, CALLER),
    o.OffsetDeleteRequest: lambda r: requests.delete_offsets(r, CALLER),
    a.RemoveMembersRequest: lambda r: admin.remove_members(r, CALLER, tuple(admin.whom(r))),
    a.TriggerRebalanceRequest: lambda r: admin.trigger_rebalance(r, CALLER),
    a.CreateTopicsRequest: lambda r: admin.create_topics(r, CALLER),
    a.CreatePartitionsRequest: lambda r: admin.create_partitions(r, CALLER),
    a.DeleteTopicsRequest: lambda r: admin.delete_topics(r, CALLER),
    a.AlterSettingsRequest: lambda r: admin.alter_settings(r, CALLER),
    **dict.fromkeys((g.PrepareAssignmentRequest, log.ReadEventsRequest, log.WatchRequest), str),
    g.SessionRequest: lambda r: [_call(one) for one in r.calls],
}


def _call(one: g.SessionCall) -> object:
    """Read one call of a list; a kind that is not known is no error of the bytes."""
    field = one.WhichOneof("request")
    if field is None:
        return None
    request = getattr(one, field)
    return _REQUESTS[type(request)](request)


_BEAT: Final = g.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2)

# Where a message with every field set contradicts itself.
_SEEDS: Final[dict[type[Message], Message]] = {
    a.RemoveMembersRequest: a.RemoveMembersRequest(
        group_id="g", members=[a.MemberToRemove(member_id="m", group_instance_id="i")], reason="r"
    ),
    g.SessionRequest: g.SessionRequest(
        calls=[
            g.SessionCall(number=1, join=g.JoinGroupRequest(group_id="g", member_id="m")),
            g.SessionCall(number=2, sync=g.SyncGroupRequest(group_id="g", generation_id=3)),
            g.SessionCall(number=3, heartbeat=g.HeartbeatRequest(group_id="g", member_id="m")),
            g.SessionCall(number=4, leave=g.LeaveGroupRequest(group_id="g")),
            g.SessionCall(number=5, commit=o.OffsetCommitRequest(group_id="g", member_id="m")),
            g.SessionCall(number=8, consumer_heartbeat=_BEAT),
        ],
        given_up=[6, 7],
    ),
}


def _request(kind: type[Message], read: Callable[[Any], object]) -> Target:
    def run(data: bytes) -> None:
        read(kind.FromString(data))

    refusals = (DecodeError, CallFailed, NotCoordinator)
    seed = _SEEDS.get(kind) or _complete(kind.DESCRIPTOR, depth=3)
    return Target(run, refusals, [seed.SerializeToString()])


def _complete(descriptor: Any, depth: int) -> Any:  # noqa: ANN401 - a message of that type
    """Make a message with every field set, nested `depth` deep."""
    message = descriptor._concrete_class()
    for field in descriptor.fields:
        if field.message_type is None:
            of_life = "018bcfe5-6800-7000-8000-000000000001"  # another form is refused at once
            value = {"int32": 7, "string": "text", "bytes": b"bytes"}.get(_kind(field), 1)
            value = of_life if field.name == "life" else value
            _set(message, field, value)
        elif depth:
            nested = _complete(field.message_type, depth - 1)
            target = getattr(message, field.name)
            target.append(nested) if _repeated(field) else target.CopyFrom(nested)
    return message


def _kind(field: Any) -> str:  # noqa: ANN401 - a field's descriptor
    kinds = {field.TYPE_INT32: "int32", field.TYPE_STRING: "string", field.TYPE_BYTES: "bytes"}
    return kinds.get(field.type, "other")


def _repeated(field: Any) -> bool:  # noqa: ANN401 - a field's descriptor
    return bool(field.is_repeated)


def _set(message: Any, field: Any, value: object) -> None:  # noqa: ANN401 - a message, its field
    if _repeated(field):
        getattr(message, field.name).append(value)
    else:
        setattr(message, field.name, value)


# --- what the service and other members send to a client -----------------------------------


def _subscription(data: bytes) -> None:
    read_subscription(g.JoinGroupResponseMember(member_id="m", metadata=data))


def _bytes_of(kind: type[Message]) -> list[bytes]:
    return [_complete(kind.DESCRIPTOR, depth=3).SerializeToString()]


_SHARE: Final = g.ConsumerProtocolAssignment(
    assigned_partitions=[g.ConsumerProtocolTopicPartitions(topic="t", partitions=[1, 2])],
    user_data=json.dumps({"counts": {"t": 3}}).encode(),
).SerializeToString()


def targets() -> dict[str, Target]:
    """Return all targets by name."""
    broken, damaged = event_codec.CodecError, records.RecordDamaged
    found = {
        "peer-frames": Target(_frames, (BadMessage,), _framed()),
        "peer-greeting": Target(
            greeting.decode_greeting,
            (BadMessage,),
            [greeting.encode_greeting(_GREETING)],
        ),
        "peer-answer": Target(
            greeting.decode_answer,
            (BadMessage,),
            [greeting.encode_answer(_GREETING), greeting.encode_refusal("this is node 'n3'")],
        ),
        "wrong-port": Target(_wrong_port, (BadMessage,), [_HTTP2]),
        "snapshot-stream": Target(_stream, (InstallRefused,), _streamed()),
        "log-entry": Target(
            event_codec.decode_entry,
            (broken,),
            [event_codec.encode_entry(entry(e)) for e in EVENTS],
        ),
        "log-record": Target(
            event_codec.decode_record,
            (broken,),
            [event_codec.encode_record(record(e)) for e in EVENTS],
        ),
        "state-item": Target(
            event_codec.decode_state, (broken,), [event_codec.encode_state(s) for s in STATE]
        ),
        "assignment": Target(event_codec.decode_assignment, (broken,), [_SHARE]),
        "journal-entry": Target(
            _entry_record, (damaged,), [records.pack_entry(Entry(7, 2, b"payload"))]
        ),
        "journal-named": Target(
            _named_record, (damaged,), [records.pack_named(b"hard_state", {"term": 1})]
        ),
        "journal-hard-state": _body(records.hard_state_of, {"term": 3, "voted_for": "n1"}),
        "journal-pair": _body(records.pair_of, [3, 2]),
        "journal-number": _body(records.number_of, 7),
        "journal-identity": _body(records.identity_of, records.identity_body(_IDENTITY)),
        "tail-batch": Target(_tail_batch, (damaged,), _tail_bodies()),
        "tail-file": Target(_tail_file, (JournalDamaged,), _tail_contents()),
        "state-record": Target(
            _state_record, (damaged,), [b"k" * 20 + records.pack_record("groups", b"k" * 20, b"c")]
        ),
        "manifest": Target(_manifest, (ValueError,), [_written_manifest()]),
        "cluster-json": Target(_cluster_json, (ValueError,), [json.dumps(_CLUSTER_JSON).encode()]),
        "node-toml": Target(_node_toml, (node_config.ConfigError,), [_NODE_TOML]),
        "history-line": Target(_history_line, (ValueError,), [line_of(_ROLE).encode()]),
        "subscription": Target(
            _subscription, (IncompatibleServer,), _bytes_of(g.ConsumerProtocolSubscription)
        ),
        "share": Target(read_assignment, (IncompatibleServer,), [_SHARE]),
        "subscribed-topics": Target(
            requests.subscribed, (), _bytes_of(g.ConsumerProtocolSubscription)
        ),
    }
    return found | {kind.__name__: _request(kind, read) for kind, read in _REQUESTS.items()}
