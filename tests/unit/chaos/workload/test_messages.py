"""The contract's messages under the names that a history has for them."""

from __future__ import annotations

from holdfast.chaos.workload.messages import answered, arguments_of, failed, group_of, operation_of
from holdfast.client import InvalidArgument, OutcomeUnknown, Unavailable
from holdfast.client._session.protocol import Claim, subscription_bytes
from holdfast.v1 import admin_pb2, extras_pb2, group_pb2
from holdfast.v1 import errors_pb2 as e
from holdfast.v1 import offset_pb2 as o


def test_a_join_has_its_member_its_timeouts_and_its_topics() -> None:
    metadata = subscription_bytes(("t", "u"), Claim())
    request = group_pb2.JoinGroupRequest(
        group_id="g",
        member_id="m",
        group_instance_id="i",
        session_timeout_ms=5,
        rebalance_timeout_ms=6,
        protocols=[group_pb2.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        holdfast=extras_pb2.RequestExtras(request_id="r"),
    )

    assert (operation_of(request), group_of(request)) == ("JoinGroup", "g")
    assert arguments_of(request) == {
        "member_id": "m",
        "instance_id": "i",
        "session_timeout_ms": 5,
        "rebalance_timeout_ms": 6,
        "request_id": "r",
        "topics": ["t", "u"],
    }


def commit_answer(*codes: e.ErrorCode.ValueType) -> o.OffsetCommitResponse:
    partitions = [
        o.OffsetCommitResponsePartition(partition_index=n, error_code=code)
        for n, code in enumerate(codes)
    ]
    topic = o.OffsetCommitResponseTopic(name="t", partitions=partitions)
    extras = extras_pb2.ResponseExtras(position=extras_pb2.Position(index=9, ordinal=1))
    return o.OffsetCommitResponse(topics=[topic], holdfast=extras)


def test_a_commit_that_was_refused_in_part_is_done_in_part() -> None:
    unknown = e.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
    some = answered(commit_answer(e.ERROR_CODE_NONE, unknown))
    none = answered(commit_answer(unknown, unknown))

    assert some.outcome == "ok"
    assert some.result["position"] == [9, 1]
    assert some.result["errors"] == [["t", 1, "UNKNOWN_TOPIC_OR_PARTITION"]]
    assert (none.outcome, none.error) == ("rejected", "UNKNOWN_TOPIC_OR_PARTITION")


def test_s5_what_a_failure_leaves_open_is_unknown() -> None:
    assert failed(Unavailable("x")).outcome == "not-applied"
    assert failed(OutcomeUnknown("x")).outcome == "unknown"
    assert failed(InvalidArgument("x")).outcome == "rejected"
    assert failed(RuntimeError("x")).outcome == "unknown"


def test_a_described_group_has_its_members_and_its_version() -> None:
    member = admin_pb2.DescribedGroupMember(member_id="m", group_instance_id="i")
    group = admin_pb2.DescribedGroup(
        group_id="g",
        group_state="Stable",
        members=[member],
        holdfast=admin_pb2.DescribedGroupExtras(generation_id=4, version=8),
    )
    answer = answered(admin_pb2.DescribeGroupsResponse(groups=[group]))

    assert answer.result["members"] == [["m", "i"]]
    assert (answer.result["state"], answer.result["generation"]) == ("Stable", 4)
    assert answer.result["version"] == 8
