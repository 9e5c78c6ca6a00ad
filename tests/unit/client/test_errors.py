"""The client's errors: one class for what the caller should do, total over the contract's codes."""

from __future__ import annotations

import grpc
import pytest

from holdfast.client import _text
from holdfast.client._rpc.status import classify
from holdfast.client.errors import (
    ClusterFull,
    Fenced,
    GroupFull,
    HoldfastError,
    IllegalGeneration,
    IncompatibleServer,
    InstanceInUse,
    OutcomeUnknown,
    RebalanceInProgress,
    Rejected,
    Unavailable,
    UnknownMember,
    from_code,
)
from holdfast.coordinator.model.text import OBEYED, readable
from holdfast.v1.errors_pb2 import ErrorCode

REFUSALS = [code for code in ErrorCode.values() if code != ErrorCode.ERROR_CODE_NONE]


@pytest.mark.parametrize("code", REFUSALS, ids=ErrorCode.Name)
def test_every_code_has_an_error_that_names_it_and_its_subject(
    code: ErrorCode.ValueType,
) -> None:
    error = from_code(code, subject="Member 'm'", message="told by the service")
    assert type(error) is not HoldfastError
    assert "Member 'm'" in str(error)
    assert ErrorCode.Name(code).removeprefix("ERROR_CODE_") in str(error)
    assert "told by the service" in str(error)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FENCED_INSTANCE_ID", Fenced),
        ("UNKNOWN_MEMBER_ID", UnknownMember),
        ("ILLEGAL_GENERATION", IllegalGeneration),
        ("REBALANCE_IN_PROGRESS", RebalanceInProgress),
        ("GROUP_MAX_SIZE_REACHED", GroupFull),
        ("POLICY_VIOLATION", ClusterFull),
        ("NOT_COORDINATOR", Unavailable),
        ("COORDINATOR_LOAD_IN_PROGRESS", Unavailable),
        ("REQUEST_TIMED_OUT", OutcomeUnknown),
        ("UNRELEASED_INSTANCE_ID", InstanceInUse),
        ("GROUP_DELETION_FAILED", Rejected),
    ],
)
def test_s5_the_class_says_whether_it_may_have_happened(
    name: str, expected: type[HoldfastError]
) -> None:
    assert type(from_code(ErrorCode.Value(f"ERROR_CODE_{name}"), subject="x")) is expected


def test_a_code_of_a_later_version_is_no_silent_success() -> None:
    unknown: ErrorCode.ValueType = max(ErrorCode.values())
    error = from_code(unknown + 1, subject="x")  # type: ignore[arg-type]  # no such code
    assert isinstance(error, IncompatibleServer)


def test_a_refusal_carries_code_and_holder() -> None:
    error = from_code(ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID, subject="x", holder="m-2")
    assert isinstance(error, Rejected)
    assert (error.code, error.holder) == (ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID, "m-2")


def test_the_service_s_words_are_readable_and_escaped_as_the_service_does_it() -> None:
    """A client without a server has a copy of its own (_text.py)."""
    given = "".join(map(chr, (*OBEYED, ord("a"), 0x5D0, 0x1F600)))
    assert _text.readable(given) == readable(given)
    refused = from_code(
        ErrorCode.ERROR_CODE_INVALID_REQUEST, subject="JoinGroup", message=f"no: {given}"
    )
    failed = classify(
        grpc.StatusCode.INVALID_ARGUMENT, f"no: {given}", (), subject="JoinGroup", request_id=""
    )
    for error in (refused, failed.error):
        assert readable(str(error)) == str(error)
        assert "\\x1b" in str(error)
