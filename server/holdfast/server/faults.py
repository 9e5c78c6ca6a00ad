"""How a call ends when it does not end with an answer of the group protocol.

A service raises one of these; `answering` turns it into a gRPC status or, where the response has a
top-level `error_code`, into that. Each says whether the change may have happened (S5). Knows
no messages and no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import grpc

from holdfast.v1 import errors_pb2

if TYPE_CHECKING:
    from holdfast.v1.errors_pb2 import ErrorCode

Outcome = Literal["not-applied", "unknown"]
OUTCOME_KEY: Final = "holdfast-outcome"
LEADER_KEY: Final = "holdfast-leader"
RETRY_KEY: Final = "holdfast-retry"
"""Trailing metadata: what became of the change (S5), who leads as `host:port`, and `no` where the
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

        `repeatable` False: the same call would end so again, whatever happens meanwhile.
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


def not_coordinator(leader: str) -> Refused:
    """This node does not lead; another try, elsewhere, is safe (S5)."""
    hint = f"ask {leader}" if leader else "no leader is known yet, try again shortly"
    return Refused(
        errors_pb2.ERROR_CODE_NOT_COORDINATOR,
        grpc.StatusCode.UNAVAILABLE,
        f"this node does not lead the cluster: {hint}",
        leader,
    )


def loading() -> Refused:
    """This node leads, but has not applied its own no-op yet (S10 d)."""
    return Refused(
        errors_pb2.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
        grpc.StatusCode.UNAVAILABLE,
        "this node was just elected and still applies what came before; try again here",
    )


def broken_rule(what: str) -> Refused:
    """A batch broke a rule on the scratch state, so it was never proposed (S6)."""
    return Refused(
        errors_pb2.ERROR_CODE_UNKNOWN_SERVER_ERROR,
        grpc.StatusCode.INTERNAL,
        f"a rule was broken inside the node, so nothing was changed: {what}. The node's log has an "
        "alarm; please report it",
    )


def malformed(field: str, problem: str) -> CallFailed:
    """A field that no command can be made of; Kafka has no error code for it."""
    return CallFailed(grpc.StatusCode.INVALID_ARGUMENT, f"{field}: {problem}", "not-applied")


def outcome_unknown() -> CallFailed:
    """The proposal was in the log when the leadership was lost (S5)."""
    sentence = (
        "this node lost the leadership while the change was on its way to the other nodes, so it "
        "may or may not have happened; repeat the call with the same request id"
    )
    return CallFailed(grpc.StatusCode.UNAVAILABLE, sentence, "unknown")


def exhausted(sentence: str) -> CallFailed:
    """Something is full (proposals, disk: S20); nothing was applied."""
    return CallFailed(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence, "not-applied")


def too_large(most: int, advice: str) -> CallFailed:
    """The answer would be larger than a client's channel takes; a repetition would be no smaller.

    Only for reads: what was changed must be answered.
    """
    sentence = f"the answer would have more than {most} bytes, so there is none: {advice}"
    return CallFailed(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence, "not-applied", repeatable=False)


def stopping() -> Refused:
    """The node shuts down: to a caller the same as one that does not lead any more (S5).

    So a join that was parked, whose member is on the log, is not told that nothing happened.
    """
    return Refused(
        errors_pb2.ERROR_CODE_NOT_COORDINATOR,
        grpc.StatusCode.UNAVAILABLE,
        "this node is shutting down; ask another one",
    )


def partly_done(what: str, cause: CallFailed | Refused) -> CallFailed:
    """Some of what one call asked for was done, the rest not, or nobody knows (S5)."""
    sentence = (
        f"{what}: {cause.sentence}. Repeat the call for the rest, with the same request id if it "
        "had one"
    )
    return CallFailed(cause.status, sentence, "unknown")


def stopping_unknown() -> CallFailed:
    """The node shuts down while the call's change is on its way to the log (S5)."""
    sentence = (
        "this node is shutting down while the change was on its way, so it may or may not have "
        "happened; repeat the call elsewhere with the same request id"
    )
    return CallFailed(grpc.StatusCode.UNAVAILABLE, sentence, "unknown")


def crashed(what: str) -> CallFailed:
    """A defect in the node: the log has the traceback, the caller cannot know what happened."""
    sentence = (
        f"this node failed inside while it served {what}; its log has the details. Repeat the call "
        "with the same request id"
    )
    return CallFailed(grpc.StatusCode.INTERNAL, sentence, "unknown")
