"""The table of refusals is total: every rejection has one code or status, and a whole sentence."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_type_hints

import grpc
import pytest

from holdfast.coordinator.model import rejections as r
from holdfast.coordinator.model.rejections import Rejection
from holdfast.runtime.errors import NotCoordinator
from holdfast.server.rpc.errors import CallFailed
from holdfast.server.translate.refusals import TABLE, Coded, Status, code_of, sentence
from holdfast.v1 import errors_pb2 as e

KINDS = get_args(Rejection)
SAMPLES = {str: "some-text", int: 4711, bool: True, tuple[str, ...]: ("one", "another")}


def sample(kind: type[Rejection]) -> Rejection:
    """A rejection of this kind with a value in every field."""
    hints = get_type_hints(kind)
    values: list[Any] = [SAMPLES[hints[field.name]] for field in fields(kind)]
    return kind(*values)


@pytest.mark.parametrize("kind", KINDS)
def test_every_rejection_has_its_row(kind: type[Rejection]) -> None:
    """One table, total."""
    assert isinstance(TABLE[kind], Coded | Status)


def test_the_table_has_no_row_for_anything_else() -> None:
    assert set(TABLE) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_can_be_said(kind: type[Rejection]) -> None:
    said = sentence(sample(kind))

    assert len(said) >= 20
    assert "{" not in said


def test_codes_are_those_that_kafka_has() -> None:
    """The names of our rejections are Kafka's, so the codes can be derived a second way."""
    differing = {
        r.UnknownTopic: "UNKNOWN_TOPIC_OR_PARTITION",
        r.TopicExists: "TOPIC_ALREADY_EXISTS",
        r.TopicInUse: "GROUP_SUBSCRIBED_TO_TOPIC",
        r.InvalidTopic: "INVALID_TOPIC_EXCEPTION",
        r.InstanceForbidden: "GROUP_AUTHORIZATION_FAILED",
        r.PastHeartbeat: "FENCED_MEMBER_EPOCH",
        r.NotChosen: "UNKNOWN_MEMBER_ID",
        r.OtherGroupType: "GROUP_ID_NOT_FOUND",
        r.StaleAssignment: "STALE_MEMBER_EPOCH",
    }
    for kind, row in TABLE.items():
        if isinstance(row, Coded):
            words = "".join("_" + c if c.isupper() else c.upper() for c in kind.__name__)
            name = differing.get(kind, words.removeprefix("_"))
            assert e.ErrorCode.Name(row.code) == f"ERROR_CODE_{name}"


def test_nothing_refused_is_none() -> None:
    assert code_of(None) == e.ERROR_CODE_NONE


@pytest.mark.parametrize(
    ("rejection", "status", "outcome"),
    [
        (r.Superseded(), grpc.StatusCode.ABORTED, "unknown"),
        (r.RequestIdReused("x"), grpc.StatusCode.INVALID_ARGUMENT, "not-applied"),
        (r.RequestTooOld("x", 5), grpc.StatusCode.FAILED_PRECONDITION, "unknown"),
    ],
)
def test_what_is_no_answer_of_the_protocol_is_a_status(
    rejection: Rejection, status: grpc.StatusCode, outcome: str
) -> None:
    """S5, S15, S17."""
    with pytest.raises(CallFailed) as failed:
        code_of(rejection)

    assert (failed.value.status, failed.value.outcome) == (status, outcome)


def test_a_call_that_was_parked_on_an_ex_leader_is_sent_elsewhere() -> None:
    """S5, K-L16."""
    with pytest.raises(NotCoordinator):
        code_of(r.NotCoordinator())


def test_a_fenced_instance_is_told_who_holds_it_and_for_how_long() -> None:
    """A moment of log time would be read as wall time, from which it may be far (S8)."""
    said = sentence(r.FencedInstanceId("i1", "i1-new", "worker-7", 1234), time_held="2 min 41 s")

    assert all(part in said for part in ("i1-new", "worker-7", "for 2 min 41 s", "Stop"))
    assert "1970" not in said


def test_a_name_that_nothing_can_have_is_cut_and_a_legal_one_is_told_whole() -> None:
    """Its flaw may be its last character; a log or a terminal has no room for 4,096."""
    assert repr("x" * 512) in sentence(r.GroupIdNotFound("x" * 512))
    assert f"no group '{'x' * 40}…'. " in sentence(r.GroupIdNotFound("x" * 4_096))
