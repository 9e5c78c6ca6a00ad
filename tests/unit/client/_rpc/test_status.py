"""What a status means: whether the call happened, and whether to try again (S5)."""

from __future__ import annotations

import pytest
from grpc import StatusCode

from holdfast.client._rpc.status import NOT_APPLIED, OUTCOME_KEY, RETRY_KEY, UNKNOWN, classify
from holdfast.client._session.session_io import FailureKind
from holdfast.client.errors import (
    Forbidden,
    HoldfastError,
    IncompatibleServer,
    InvalidArgument,
    OutcomeUnknown,
    Unavailable,
)


def meaning(code: StatusCode, **trailing: str) -> tuple[FailureKind, type[HoldfastError]]:
    metadata = [(key.replace("_", "-"), value) for key, value in trailing.items()]
    failed = classify(code, "details", metadata, subject="X at a:1", request_id="id-1")
    return failed.kind, type(failed.error)


def test_s5_a_failure_is_unknown_unless_the_metadata_says_not_applied() -> None:
    retry = FailureKind.RETRY
    for code in (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED):
        assert meaning(code) == (retry, OutcomeUnknown)
        assert meaning(code, holdfast_outcome="unknown") == (retry, OutcomeUnknown)
        assert meaning(code, holdfast_outcome="not-applied") == (retry, Unavailable)


@pytest.mark.parametrize("outcome", ["unknown", "not-applied"])
def test_s5_a_node_that_has_no_room_or_fails_inside_has_answered(outcome: str) -> None:
    """One that stops, does not lead or never replies has not: another one may serve the call."""
    own = (StatusCode.RESOURCE_EXHAUSTED, StatusCode.INTERNAL, StatusCode.UNKNOWN)
    unserved = (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED)
    words = [("holdfast-outcome", outcome)]
    for code in (*own, *unserved):
        error = classify(code, "details", words, subject="X", request_id="").error
        assert isinstance(error, Unavailable | OutcomeUnknown)
        assert error.answered is (code in own)


def test_an_answer_that_is_too_large_for_the_channel_is_an_answer() -> None:
    words = "CLIENT: Received message larger than max (18000165 vs. 16777216)"
    code = StatusCode.RESOURCE_EXHAUSTED
    error = classify(code, words, (), subject="X", request_id="").error
    assert isinstance(error, OutcomeUnknown)
    assert error.answered


def test_what_would_end_so_again_is_not_tried_again() -> None:
    """An answer that is too large is no smaller the next time: the caller has to ask for less."""
    code, applied = StatusCode.RESOURCE_EXHAUSTED, "not-applied"
    assert meaning(code, holdfast_outcome=applied) == (FailureKind.RETRY, Unavailable)
    told = meaning(code, holdfast_outcome=applied, holdfast_retry="no")
    assert told == (FailureKind.FATAL, InvalidArgument)


def test_s5_an_unknown_outcome_tells_the_request_id_to_repeat_it_with() -> None:
    failed = classify(StatusCode.CANCELLED, "", (), subject="X", request_id="id-1")
    assert isinstance(failed.error, OutcomeUnknown)
    assert failed.error.request_id == "id-1"


def test_s17_aborted_is_superseded() -> None:
    assert meaning(StatusCode.ABORTED)[0] is FailureKind.SUPERSEDED


def test_what_cannot_heal_is_not_retried() -> None:
    fatal = FailureKind.FATAL
    assert meaning(StatusCode.UNIMPLEMENTED) == (fatal, IncompatibleServer)
    assert meaning(StatusCode.UNAUTHENTICATED) == (fatal, Forbidden)
    assert meaning(StatusCode.INVALID_ARGUMENT) == (fatal, InvalidArgument)


def test_s5_a_node_whose_disk_cannot_be_read_is_not_asked_again_nor_another_one() -> None:
    """S5: it says that nothing was done, and what to do; until then each answer is the same."""
    words = [(OUTCOME_KEY, NOT_APPLIED)]
    failed = classify(StatusCode.DATA_LOSS, "the disk", words, subject="X", request_id="id-1")

    assert (failed.kind, type(failed.error)) == (FailureKind.FATAL, Unavailable)
    assert not failed.move
    assert isinstance(failed.error, Unavailable)
    assert (failed.error.answered, failed.error.details) == (True, "the disk")
    assert meaning(StatusCode.DATA_LOSS) == (FailureKind.RETRY, OutcomeUnknown)


def test_a_refused_token_may_be_followed_by_a_better_one_unless_the_node_says_no() -> None:
    """S5: what a token's end breaks off may have happened; what was never begun has not."""
    code = StatusCode.UNAUTHENTICATED
    again = {
        key: type(classify(code, "", metadata, subject="x", request_id="").again)
        for key, metadata in {
            "refused": ((OUTCOME_KEY, NOT_APPLIED),),
            "broken off": ((OUTCOME_KEY, UNKNOWN),),
            "for others": ((OUTCOME_KEY, NOT_APPLIED), (RETRY_KEY, "no")),
            "no node": (),
        }.items()
    }
    nothing = type(None)
    assert again == {
        "refused": Unavailable,
        "broken off": OutcomeUnknown,
        "for others": nothing,
        "no node": nothing,
    }


def test_a_refused_token_is_a_nodes_own_answer() -> None:
    """A command that shows none but this one ends after a few of them, and says what was said."""
    code, said = StatusCode.UNAUTHENTICATED, "the token is over"
    again = classify(code, said, ((OUTCOME_KEY, NOT_APPLIED),), subject="x", request_id="").again

    assert isinstance(again, Unavailable)
    assert (again.answered, again.details) == (True, said)


def test_a_call_that_nobody_serves_there_may_have_gone_to_a_peer_port() -> None:
    """The node's own words say which address to use; gRPC's leave two causes, and both are told."""
    told = "this is the peer port of node 'a'; clients connect to 10.0.0.1:7400"
    words = [("holdfast-outcome", "not-applied")]
    by_node = classify(StatusCode.UNIMPLEMENTED, told, words, subject="X", request_id="")
    by_grpc = classify(
        StatusCode.UNIMPLEMENTED, "Method not found!", (), subject="X", request_id=""
    )

    assert "10.0.0.1:7400" in str(by_node.error)
    assert "upgrade" not in str(by_node.error)
    assert "peer port" in str(by_grpc.error)
    assert "client_address" in str(by_grpc.error)
    assert "upgrade" in str(by_grpc.error)


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ("CLIENT: Sent message larger than max (18000165 vs. 16777216)", InvalidArgument),
        ("SERVER: Received message larger than max (18000165 vs. 16777216)", InvalidArgument),
        ("SERVER: Sent message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("CLIENT: Received message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("Received message larger than max (18000165 vs. 16777216)", OutcomeUnknown),
        ("received metadata size exceeds hard limit (17000 vs. 16384)", OutcomeUnknown),
    ],
)
def test_s5_an_answer_that_is_too_large_does_not_mean_that_nothing_happened(
    details: str, error: type[HoldfastError]
) -> None:
    """Only a message that never arrived changed nothing. A repetition would end the same way."""
    status = StatusCode.RESOURCE_EXHAUSTED
    failed = classify(status, details, (), subject="X", request_id="id-1")
    assert (failed.kind, type(failed.error)) == (FailureKind.FATAL, error)
    assert getattr(failed.error, "request_id", "id-1") == "id-1"


def test_a_proxy_that_is_overloaded_is_asked_again() -> None:
    expected = (FailureKind.RETRY, OutcomeUnknown)
    assert meaning(StatusCode.RESOURCE_EXHAUSTED) == expected


def test_s15_a_request_id_older_than_the_window_has_an_unknown_outcome_and_no_retry() -> None:
    expected = (FailureKind.FATAL, OutcomeUnknown)
    assert meaning(StatusCode.INVALID_ARGUMENT, holdfast_outcome="unknown") == expected


def test_s20_a_full_disk_is_retried() -> None:
    expected = (FailureKind.RETRY, Unavailable)
    assert meaning(StatusCode.RESOURCE_EXHAUSTED, holdfast_outcome="not-applied") == expected


def test_every_status_is_judged_and_the_leader_is_read() -> None:
    for code in set(StatusCode) - {StatusCode.OK}:
        trailing = (("holdfast-leader", "b:2"), ("other-bin", b"\0"))
        failed = classify(code, "d", trailing, subject="X", request_id="")
        assert failed.leader == "b:2"
