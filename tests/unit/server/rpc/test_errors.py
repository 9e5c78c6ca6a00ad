"""How what ends a command is told to a caller: by a code where there is one, else by a status."""

import grpc
import pytest

from holdfast.runtime import errors as r
from holdfast.server.rpc.errors import TABLE, CallFailed, Refused, ending, malformed
from holdfast.v1 import errors_pb2 as e

GROUP_CODES = [
    (r.NotCoordinator("h:1"), e.ERROR_CODE_NOT_COORDINATOR),
    (r.Stopping(), e.ERROR_CODE_NOT_COORDINATOR),
    (r.Loading(), e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS),
    (r.RuleBroken("C1"), e.ERROR_CODE_UNKNOWN_SERVER_ERROR),
]
STATUSES = [
    (r.CatchingUp(), grpc.StatusCode.UNAVAILABLE, "not-applied"),
    (r.Exhausted("full"), grpc.StatusCode.RESOURCE_EXHAUSTED, "not-applied"),
    (r.LeadershipLost(), grpc.StatusCode.UNAVAILABLE, "unknown"),
    (r.StoppedMeanwhile(), grpc.StatusCode.UNAVAILABLE, "unknown"),
    (r.Crashed("x"), grpc.StatusCode.INTERNAL, "unknown"),
]


def test_every_error_of_the_runtime_has_its_row() -> None:
    """A new one without a row would end a call as a defect."""
    assert set(TABLE) == set(r.CommandFailed.__subclasses__())
    assert len(TABLE) == len(GROUP_CODES) + len(STATUSES)


@pytest.mark.parametrize(("error", "code"), GROUP_CODES)
def test_what_was_surely_not_applied_and_kafka_has_a_code_for_is_told_by_it(
    error: r.CommandFailed, code: e.ErrorCode.ValueType
) -> None:
    """S5, K-L16: a member that is told so goes on elsewhere; the sentence is the error's."""
    told = ending(error)

    assert isinstance(told, Refused)
    assert (told.code, told.sentence, error.outcome) == (code, error.sentence, "not-applied")
    assert told.leader == ("h:1" if isinstance(error, r.NotCoordinator) else "")


@pytest.mark.parametrize(("error", "status", "outcome"), STATUSES)
def test_all_else_is_a_status_with_its_outcome(
    error: r.CommandFailed, status: grpc.StatusCode, outcome: str
) -> None:
    """S5: nobody is told that nothing happened where nobody knows."""
    told = ending(error)

    assert isinstance(told, CallFailed)
    assert (told.status, told.outcome, told.sentence) == (status, outcome, error.sentence)


def test_a_services_own_error_stays_as_it_is() -> None:
    error = malformed("field", "too long")

    assert ending(error) is error
