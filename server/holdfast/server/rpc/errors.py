"""The errors that end a call without an answer of the group protocol.

A service raises one of these, or an error of the runtime; `callers` turns it into a gRPC status
or, where the response has a top-level `error_code`, into a response. Each says whether the change
may have happened (S5). Knows no messages and no rules.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

import grpc

from holdfast.runtime import errors as r
from holdfast.server.security.seen_addresses import for_caller
from holdfast.v1 import errors_pb2 as e

if TYPE_CHECKING:
    from holdfast.runtime.errors import Outcome
    from holdfast.v1.errors_pb2 import ErrorCode

OUTCOME_KEY: Final = "holdfast-outcome"
LEADER_KEY: Final = "holdfast-leader"
RETRY_KEY: Final = "holdfast-retry"
"""Trailing metadata: the outcome of the change (S5), the leader as `host:port`, and `no` where the
same call would end in the same way again."""


class CallFailed(Exception):
    """The call ends with a gRPC status other than OK."""

    def __init__(
        self,
        status: grpc.StatusCode,
        sentence: str,
        outcome: Outcome,
        *,
        repeatable: bool = True,
    ) -> None:
        """`sentence` tells people what happened, why, and what to do next.

        `repeatable` False: the same call would always end in the same way.
        """
        super().__init__(sentence)
        self.status, self.sentence, self.outcome = status, sentence, outcome
        self.repeatable = repeatable


class Refused(Exception):
    """The call ends with an error code where its response has a top-level one, else as a status.

    Nothing was applied. `leader`: `host:port` of the node that leads, empty if unknown.
    """

    def __init__(
        self, code: ErrorCode.ValueType, status: grpc.StatusCode, sentence: str, leader: str = ""
    ) -> None:
        """`sentence` tells people what happened, why, and what to do next."""
        super().__init__(sentence)
        self.code, self.status, self.sentence, self.leader = code, status, sentence, leader


Ended = CallFailed | Refused | r.CommandFailed
ENDED: Final = (CallFailed, Refused, r.CommandFailed)
"""All errors that end a call without an answer, for `except`."""


class _Row(NamedTuple):
    """How the failure of a command is reported. `code` None: by its status alone."""

    status: grpc.StatusCode
    code: ErrorCode.ValueType | None = None


_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
TABLE: Final[dict[type[r.CommandFailed], _Row]] = {
    r.NotCoordinator: _Row(_UNAVAILABLE, e.ERROR_CODE_NOT_COORDINATOR),
    r.Stopping: _Row(_UNAVAILABLE, e.ERROR_CODE_NOT_COORDINATOR),
    r.Loading: _Row(_UNAVAILABLE, e.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS),
    r.CatchingUp: _Row(_UNAVAILABLE),
    r.RuleBroken: _Row(grpc.StatusCode.INTERNAL, e.ERROR_CODE_UNKNOWN_SERVER_ERROR),
    r.Exhausted: _Row(grpc.StatusCode.RESOURCE_EXHAUSTED),
    r.LeadershipLost: _Row(_UNAVAILABLE),
    r.StoppedMeanwhile: _Row(_UNAVAILABLE),
    r.Crashed: _Row(grpc.StatusCode.INTERNAL),
}


def ending(error: Ended) -> CallFailed | Refused:
    """Convert an error of the runtime by the table; a service's own error stays as it is.

    To be called in the call that it ends: the leader's address is that for its caller.
    """
    if not isinstance(error, r.CommandFailed):
        return error
    if isinstance(error, r.NotCoordinator):
        error = r.NotCoordinator(for_caller(error.leader))
    row = TABLE[type(error)]
    if row.code is None:
        return CallFailed(row.status, error.sentence, error.outcome)
    leader = error.leader if isinstance(error, r.NotCoordinator) else ""
    return Refused(row.code, row.status, error.sentence, leader)


def status_named(error: BaseException) -> str:
    """Return the name of the status with which a call of a stream ends that raised this."""
    if isinstance(error, asyncio.CancelledError):
        return grpc.StatusCode.CANCELLED.name
    return (ending(error).status if isinstance(error, ENDED) else grpc.StatusCode.INTERNAL).name


def malformed(field: str, problem: str) -> CallFailed:
    """Make the error for a field that no command can be made of; Kafka has no code for it."""
    return CallFailed(grpc.StatusCode.INVALID_ARGUMENT, f"{field}: {problem}", "not-applied")


def exhausted(sentence: str) -> CallFailed:
    """Make the error for a caller that has all that it may have at once; nothing was applied."""
    return CallFailed(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence, "not-applied")


def too_large(most: int, advice: str) -> CallFailed:
    """Make the error for an answer that is larger than a client's channel takes.

    A repetition would be no smaller. Only for reads: a change must be answered.
    """
    sentence = f"the answer would have more than {most} bytes, so there is none: {advice}"
    return CallFailed(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence, "not-applied", repeatable=False)


def partly_done(what: str, cause: Ended) -> CallFailed:
    """Make the error for a call of which a part was done and the rest not, or is unknown (S5)."""
    sentence = (
        f"{what}: {cause.sentence}. Repeat the call for the rest, with the same request id if it "
        "had one"
    )
    return CallFailed(ending(cause).status, sentence, "unknown")
