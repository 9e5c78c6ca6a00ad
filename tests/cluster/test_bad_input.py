"""Bad input of callers: each gets the right code and loses nothing, and nobody else notices.

Codes of the group protocol are Kafka's; what Kafka has no code for is INVALID_ARGUMENT that names
field and limit, with word of what became of the change (S5).
"""

from __future__ import annotations

import os
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from cluster.load import TOPIC, Place, commit_of
from cluster.processes import INSECURE, PATIENCE_SECONDS, RunningCluster, running
from cluster.statuses import failed
from holdfast.raft.transport.dialling import Dialler, PeerRefused
from holdfast.raft.transport.identity import Identity
from holdfast.raft.transport.tls import PeerTls
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import offset_pb2 as o
from holdfast.v1.extras_pb2 import RequestExtras
from holdfast.v1.group_pb2_grpc import GroupServiceStub
from holdfast.v1.offset_pb2_grpc import OffsetServiceStub

if TYPE_CHECKING:
    from collections.abc import Iterator

INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)
OVER_LONG = "x" * 5_000


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """A cluster of one node, without TLS."""
    with running(tmp_path_factory.mktemp("one") / "c", 1, *INSECURE) as cluster:
        cluster.create_topic(TOPIC, 4)
        yield cluster


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """A cluster of three with mutual TLS, as it runs in earnest."""
    with running(tmp_path_factory.mktemp("three") / "c", 3) as cluster:
        cluster.create_topic(TOPIC, 4)
        yield cluster


def join(**changes: Any) -> g.JoinGroupRequest:  # noqa: ANN401 - any field
    """A join that would be accepted, but for the changes."""
    fields: dict[str, Any] = {
        "group_id": "bad-input",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "t",
        "protocols": [g.JoinGroupRequestProtocol(name="p", metadata=b"m")],
    }
    return g.JoinGroupRequest(**{**fields, **changes})


def group_stub(cluster: RunningCluster) -> GroupServiceStub:
    return GroupServiceStub(cluster.channel(cluster.names[0]))


# --- calls that the protocol has a code for ---

REFUSED_JOINS = [
    ("an empty group id", {"group_id": ""}, e.ERROR_CODE_INVALID_GROUP_ID),
    ("an over-long group id", {"group_id": OVER_LONG}, e.ERROR_CODE_INVALID_GROUP_ID),
    ("a group id with a line break", {"group_id": "a\nb"}, e.ERROR_CODE_INVALID_GROUP_ID),
    ("an unknown member id", {"member_id": "nobody"}, e.ERROR_CODE_UNKNOWN_MEMBER_ID),
    ("a negative session", {"session_timeout_ms": -1}, e.ERROR_CODE_INVALID_SESSION_TIMEOUT),
    ("a session of zero", {"session_timeout_ms": 0}, e.ERROR_CODE_INVALID_SESSION_TIMEOUT),
    (
        "a huge session",
        {"session_timeout_ms": INT32_MAX},
        e.ERROR_CODE_INVALID_SESSION_TIMEOUT,
    ),
    (
        "a negative rebalance timeout",
        {"rebalance_timeout_ms": INT32_MIN},
        e.ERROR_CODE_INVALID_REQUEST,
    ),
    ("an empty instance id", {"group_instance_id": ""}, e.ERROR_CODE_INVALID_REQUEST),
    ("an over-long instance id", {"group_instance_id": "i" * 250}, e.ERROR_CODE_INVALID_REQUEST),
    ("a path as instance id", {"group_instance_id": "../x"}, e.ERROR_CODE_INVALID_REQUEST),
    ("no protocol", {"protocols": []}, e.ERROR_CODE_INCONSISTENT_GROUP_PROTOCOL),
    ("no protocol type", {"protocol_type": ""}, e.ERROR_CODE_INCONSISTENT_GROUP_PROTOCOL),
    (
        "metadata that no entry could hold (S7)",
        {
            "group_instance_id": "i",
            "protocols": [g.JoinGroupRequestProtocol(name="p", metadata=b"m" * 6_000_000)],
        },
        e.ERROR_CODE_INVALID_REQUEST,
    ),
]


@pytest.mark.parametrize(
    ("changes", "code"), [c[1:] for c in REFUSED_JOINS], ids=[c[0] for c in REFUSED_JOINS]
)
def test_a_bad_join_is_refused_with_its_code(
    one: RunningCluster, changes: dict[str, Any], code: int
) -> None:
    answer = group_stub(one).JoinGroup(join(**changes), timeout=PATIENCE_SECONDS)

    assert answer.error_code == code, e.ErrorCode.Name(answer.error_code)
    assert answer.generation_id == -1


def test_a_heartbeat_and_a_sync_of_nobody_are_refused(one: RunningCluster) -> None:
    """Kafka answers UNKNOWN_MEMBER_ID for a group or member that is not there (K-F1)."""
    stub = group_stub(one)
    beat = stub.Heartbeat(g.HeartbeatRequest(group_id="no-such-group", member_id="nobody"))
    sync = stub.SyncGroup(
        g.SyncGroupRequest(
            group_id="no-such-group", member_id="nobody", protocol_type="t", protocol_name="p"
        )
    )

    assert beat.error_code == sync.error_code == e.ERROR_CODE_UNKNOWN_MEMBER_ID


def test_offset_metadata_over_the_limit_is_refused_and_the_rest_is_kept(
    one: RunningCluster,
) -> None:
    """Kafka: OFFSET_METADATA_TOO_LARGE for that partition, NONE for its neighbour (K-J14)."""
    request = commit_of(Place("bad-offsets", 0), 7, "")
    request.topics[0].partitions.add(
        partition_index=1, committed_offset=8, committed_metadata=OVER_LONG
    )
    stub = OffsetServiceStub(one.channel(one.names[0]))
    answer = stub.OffsetCommit(request, timeout=PATIENCE_SECONDS)
    group = o.OffsetFetchRequestGroup(group_id="bad-offsets")
    kept = stub.OffsetFetch(o.OffsetFetchRequest(groups=[group]), timeout=PATIENCE_SECONDS)
    committed = {
        p.partition_index: p.committed_offset for t in kept.groups[0].topics for p in t.partitions
    }

    assert [p.error_code for p in answer.topics[0].partitions] == [
        e.ERROR_CODE_NONE,
        e.ERROR_CODE_OFFSET_METADATA_TOO_LARGE,
    ]
    assert committed == {0: 7}


# --- calls that are malformed ---

MALFORMED = [
    ("member_id", {"member_id": OVER_LONG}, "4096"),
    ("protocol_type", {"protocol_type": OVER_LONG}, "4096"),
    ("reason", {"reason": OVER_LONG}, "4096"),
    ("holdfast.request_id", {"holdfast": RequestExtras(request_id="not-a-uuid")}, "UUIDv7"),
]


@pytest.mark.parametrize(
    ("field", "changes", "limit"), MALFORMED, ids=[case[0] for case in MALFORMED]
)
def test_a_malformed_field_is_named_with_its_limit(
    one: RunningCluster, field: str, changes: dict[str, Any], limit: str
) -> None:
    """INVALID_ARGUMENT names field and limit; S5: it says that nothing happened."""
    stub = group_stub(one)
    status = failed(lambda: stub.JoinGroup(join(**changes), timeout=PATIENCE_SECONDS))

    assert status.code is grpc.StatusCode.INVALID_ARGUMENT
    assert field in status.details
    assert limit in status.details
    assert "\n" not in status.details
    assert status.trailing["holdfast-outcome"] == "not-applied"


def test_a_client_name_over_the_limit_is_told(one: RunningCluster) -> None:
    """It becomes part of member ids, so it is bounded where it comes in."""
    name = (("holdfast-client-id", "c" * 300),)
    stub = group_stub(one)
    status = failed(lambda: stub.JoinGroup(join(), timeout=PATIENCE_SECONDS, metadata=name))

    assert status.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "255" in status.details


def sent(channel: grpc.Channel, method: str, request: bytes) -> object:
    """Send bytes as they are to a unary or a streaming method, and wait for the end."""
    path = f"/holdfast.v1.{method}"
    if method.endswith("Stream"):
        stream: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(path)
        return list(stream(iter([request]), timeout=PATIENCE_SECONDS))
    unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return unary(request, timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "method",
    [
        "GroupService/JoinGroup",
        "GroupService/HeartbeatStream",
        "OffsetService/OffsetCommit",
        "OffsetService/OffsetCommitStream",
        "AdminService/CreateTopics",
    ],
)
def test_bytes_that_are_no_message_end_that_call_alone(one: RunningCluster, method: str) -> None:
    """Half a message is told to its sender; the connection serves on, and the log stays clean."""
    channel = one.channel(one.names[0])
    half = join().SerializeToString()[:-3]
    status = failed(lambda: sent(channel, method, half))
    found = GroupServiceStub(channel).FindCoordinator(g.FindCoordinatorRequest())

    assert status.code is grpc.StatusCode.INVALID_ARGUMENT
    assert status.trailing["holdfast-outcome"] == "not-applied"
    assert found.holdfast.leader_hint == one.addresses[0]
    assert "Traceback" not in one.words(one.names[0])


# --- garbage on the ports ---

HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HALF_A_FRAME = HTTP2_PREFACE + b"\x00\x40\x00\x01\x04\x00\x00"
HALF_A_HELLO = bytes.fromhex("1603010200010001fc0303")
GARBAGE = [
    b"",
    b"\x00" * 64,
    os.urandom(4_096),
    b"GET / HTTP/1.0\r\n\r\n",
    HALF_A_FRAME,
    HALF_A_HELLO,
]


def test_garbage_and_half_frames_on_every_port_disturb_nobody(three: RunningCluster) -> None:
    """While such connections hang on all six ports, changes go on in the same term."""
    leader = three.leader()
    before = three.describe(leader)
    stub = OffsetServiceStub(three.channel(leader))
    ports = [three.node(name)[kind] for name in three.names for kind in _KINDS]
    hanging = [opened(address, garbage) for address in ports for garbage in GARBAGE]
    try:
        codes = [
            stub.OffsetCommit(commit_of(Place("calm", 0), n, ""), timeout=PATIENCE_SECONDS)
            .topics[0]
            .partitions[0]
            .error_code
            for n in range(50)
        ]
    finally:
        for connection in hanging:
            connection.close()
    after = three.describe(leader)

    assert codes == [e.ERROR_CODE_NONE] * 50
    assert before is not None
    assert after is not None
    assert (after.leader, after.term) == (before.leader, before.term)
    assert all("Traceback" not in three.words(name) for name in three.names)


_KINDS = ("client_address", "peer_address")


def opened(address: str, garbage: bytes) -> socket.socket:
    """A connection that has sent garbage and stays open."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
    connection.sendall(garbage)
    return connection


def test_a_client_cannot_speak_as_a_node(three: RunningCluster) -> None:
    """Who a peer is, its certificate says (ADR 18); a client's is refused on the peer port."""
    leader, pretended = three.leader(), three.follower()
    before = three.describe(leader)
    files = three.content["tls"]
    ca, certificate, key = (Path(files[n]).read_bytes() for n in ("ca", "certificate", "key"))
    at = {leader: three.node(leader)["peer_address"]}
    dialler = Dialler(
        Identity(three.content["cluster_id"], pretended, at, PeerTls(ca, certificate, key))
    )

    for method in ("", "Segments"):
        with pytest.raises(PeerRefused, match="certificate does not belong to node") as refused:
            dialler.dial(leader, method)
        assert pretended in str(refused.value)
    after = three.describe(leader)

    assert before is not None
    assert after is not None
    assert after.term == before.term


def test_a_node_without_a_certificate_lets_nobody_in(three: RunningCluster) -> None:
    """Mutual TLS on both ports: a caller without a certificate does not get as far as a call."""
    for kind in _KINDS:
        with grpc.insecure_channel(three.node(three.leader())[kind]) as channel:
            stub = GroupServiceStub(channel)
            refused = failed(partial(stub.FindCoordinator, g.FindCoordinatorRequest(), 5.0))
            assert refused.code is grpc.StatusCode.UNAVAILABLE
