"""What the client raises, arranged by what the caller should do.

    HoldfastError
      Rejected                 the service refused; see `code`, `message`, `holder`
        Fenced                   another process holds this identity: stop, do not come back
        InstanceInUse            another process holds this identity, and has not let go of it
        UnknownMember            the group does not know this member: join anew
        IllegalGeneration        the group has moved on: rejoin
        RebalanceInProgress      rejoin, then try again
        GroupFull                the group has as many members as it may have
        ClusterFull              the whole cluster has as much as its settings allow
        GroupNotEmpty            the group has members, so it cannot be deleted
        GroupNotFound            no such group
        NoCommonProtocol         the group uses another protocol type or other assignors
        TopicExists              a topic of this name is there already
        TopicNotFound            no such topic or partition
        TopicInUse               groups with members subscribe to the topic
        Forbidden                the principal may not do this, or is not known
        InvalidArgument          the request is wrong in itself: fix it
        ServerDefect             the service has failed inside; nothing was changed
      Unavailable              nothing happened, or never connected: retry
      OutcomeUnknown           it may have happened: retry with the same request id (S5)
      IncompatibleServer       the two sides do not speak the same contract: upgrade one, or
                               correct an address that is a node's peer port
      OwnershipLost            this process may not act on the partition any more (S11)
      AssignmentFailed         the assignor of this group leader failed: nobody gets an assignment

Knows the contract's ErrorCode; knows nothing of gRPC.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from holdfast.client._text import readable
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping


class HoldfastError(Exception):
    """Root of everything that this client raises on purpose.

    `details`: of a call that ended with a gRPC status, the service's own sentence, without the call
    and the node; "" where the service said nothing.
    """

    details: str = ""


class Rejected(HoldfastError):
    """The service refused, and nothing was changed.

    `code` is the contract's code (None where only gRPC has a status), `message` the service's
    sentence for people, `holder` the member id that holds the identity, where that is the reason.
    """

    def __init__(
        self, message: str, *, code: ErrorCode.ValueType | None = None, holder: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.holder = holder


class Fenced(Rejected):
    """Another process holds this instance id: `holder`. Never rejoin by itself (KIP-345, T-5).

    `age_ms`: for how long that one had held it when it was told here; `since`: when that was, by
    this machine's wall clock (UTC). None where the service did not say. `takeovers`: how often the
    instance id was taken within the last 10 minutes from a holder that had not let go of it; above
    1, several processes may fight for it.
    """

    since: datetime | None = None
    age_ms: int | None = None
    takeovers: int = 0


class InstanceInUse(Rejected):
    """Another process (`holder`) held this instance id for as long as a session lasts: it lives.

    Of the heartbeat protocol, where whoever comes later waits (UNRELEASED_INSTANCE_ID).
    """


class UnknownMember(Rejected):
    """The group does not know this member (it expired, left, or was removed)."""


class IllegalGeneration(Rejected):
    """The group is in another generation."""


class RebalanceInProgress(Rejected):
    """A rebalance is under way; the member rejoins by itself, then the call can be repeated."""


class GroupFull(Rejected):
    """The group has as many members as its setting allows."""


class ClusterFull(Rejected):
    """All groups and topics together have as much as a setting allows; the message names it."""


class GroupNotEmpty(Rejected):
    """The group still has members."""


class GroupNotFound(Rejected):
    """There is no group of this name, or it is of another type."""


class NoCommonProtocol(Rejected):
    """The group's members share no assignor or protocol type with this one."""


class TopicExists(Rejected):
    """There is a topic of this name."""


class TopicNotFound(Rejected):
    """There is no such topic, or the topic has no such partition."""


class TopicInUse(Rejected):
    """Members subscribe to the topic, so neither it nor its offsets may go."""


class Forbidden(Rejected):
    """The principal is not known, or may not do this."""


class InvalidArgument(Rejected):
    """The request breaks a rule or a limit; repeating it unchanged cannot help."""


class NotYet(Rejected):
    """A change of nodes is refused as things stand; the same call may be carried out later."""


class ServerDefect(Rejected):
    """A defect in the service, which has written an alarm. Nothing was changed."""


class Unavailable(HoldfastError):
    """Nothing happened: refused as not applied, or no node could be reached (S5). Retry.

    `answered`: whether a node took the call up and had no room for it, or failed in it; False: no
    node served it.
    """

    answered: bool = False


class OutcomeUnknown(HoldfastError):
    """The call was sent and its answer is missing: it may have happened (S5).

    `request_id` repeats it safely: the service executes one id once (S14, S15). None: the call was
    sent without one. `answered`: whether a node ended the call so; False: its answer was lost or
    never came.
    """

    answered: bool = False

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


class IncompatibleServer(HoldfastError):
    """The service does not know this call, or answers what this client cannot read."""


class OwnershipLost(HoldfastError):
    """The partition is not this process's any more: do not write what was under way (S11)."""


class AssignmentFailed(HoldfastError):
    """The assignor raised, or the group chose one that this member does not have."""


MEMBERSHIP_CODES = frozenset(
    {
        ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID,
        ErrorCode.ERROR_CODE_ILLEGAL_GENERATION,
        ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS,
        ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID,
    }
)
"""Codes about the member and not about the call: the session acts on them (T-2 to T-6)."""

_CLASSES: Mapping[ErrorCode.ValueType, type[Rejected]] = {
    ErrorCode.ERROR_CODE_UNKNOWN_SERVER_ERROR: ServerDefect,
    ErrorCode.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION: TopicNotFound,
    ErrorCode.ERROR_CODE_OFFSET_METADATA_TOO_LARGE: InvalidArgument,
    ErrorCode.ERROR_CODE_INVALID_TOPIC_EXCEPTION: InvalidArgument,
    ErrorCode.ERROR_CODE_ILLEGAL_GENERATION: IllegalGeneration,
    ErrorCode.ERROR_CODE_INCONSISTENT_GROUP_PROTOCOL: NoCommonProtocol,
    ErrorCode.ERROR_CODE_INVALID_GROUP_ID: InvalidArgument,
    ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID: UnknownMember,
    ErrorCode.ERROR_CODE_INVALID_SESSION_TIMEOUT: InvalidArgument,
    ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS: RebalanceInProgress,
    ErrorCode.ERROR_CODE_INVALID_COMMIT_OFFSET_SIZE: InvalidArgument,
    ErrorCode.ERROR_CODE_TOPIC_AUTHORIZATION_FAILED: Forbidden,
    ErrorCode.ERROR_CODE_GROUP_AUTHORIZATION_FAILED: Forbidden,
    ErrorCode.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED: Forbidden,
    ErrorCode.ERROR_CODE_UNSUPPORTED_VERSION: InvalidArgument,
    ErrorCode.ERROR_CODE_TOPIC_ALREADY_EXISTS: TopicExists,
    ErrorCode.ERROR_CODE_INVALID_PARTITIONS: InvalidArgument,
    ErrorCode.ERROR_CODE_INVALID_CONFIG: InvalidArgument,
    ErrorCode.ERROR_CODE_INVALID_REQUEST: InvalidArgument,
    ErrorCode.ERROR_CODE_POLICY_VIOLATION: ClusterFull,
    ErrorCode.ERROR_CODE_NON_EMPTY_GROUP: GroupNotEmpty,
    ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND: GroupNotFound,
    ErrorCode.ERROR_CODE_GROUP_MAX_SIZE_REACHED: GroupFull,
    ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID: Fenced,
    ErrorCode.ERROR_CODE_GROUP_SUBSCRIBED_TO_TOPIC: TopicInUse,
    ErrorCode.ERROR_CODE_FENCED_MEMBER_EPOCH: IllegalGeneration,
    ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH: IllegalGeneration,
    ErrorCode.ERROR_CODE_UNRELEASED_INSTANCE_ID: InstanceInUse,
    ErrorCode.ERROR_CODE_UNSUPPORTED_ASSIGNOR: InvalidArgument,
    ErrorCode.ERROR_CODE_INVALID_REGULAR_EXPRESSION: InvalidArgument,
}

_NOT_APPLIED = frozenset(
    {
        ErrorCode.ERROR_CODE_COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.ERROR_CODE_COORDINATOR_NOT_AVAILABLE,
        ErrorCode.ERROR_CODE_NOT_COORDINATOR,
    }
)


def from_code(
    code: ErrorCode.ValueType,
    *,
    subject: str,
    message: str = "",
    holder: str | None = None,
    since_ms: int | None = None,
    log_time_ms: int | None = None,
) -> HoldfastError:
    """Make the exception for a code that is not NONE: total over ErrorCode and unknown numbers.

    `subject` says what was refused, `message` is the service's own sentence. `since_ms` is the log
    time since when `holder` holds the identity, `log_time_ms` what it is now. Codes without a class
    of their own become plain `Rejected`; numbers that this client does not know become
    IncompatibleServer.
    """
    if code not in ErrorCode.values():
        return IncompatibleServer(
            f"{subject}: the service answered with code {code}, which this client does not know. "
            "Upgrade the client."
        )
    name = ErrorCode.Name(code).removeprefix("ERROR_CODE_")
    text = f"{subject}: {name}" + (f" ({readable(message)})" if message else "")
    if code in _NOT_APPLIED:
        return Unavailable(text)
    if code == ErrorCode.ERROR_CODE_REQUEST_TIMED_OUT:
        return OutcomeUnknown(text)
    if code == ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID:
        error = Fenced(text, code=code, holder=holder or None)
        return error if since_ms is None else _dated(error, since_ms, log_time_ms, said=message)
    return _CLASSES.get(code, Rejected)(text, code=code, holder=holder or None)


def _dated(error: Fenced, since_ms: int, log_time_ms: int | None, *, said: str) -> Fenced:
    """Add the time of the takeover; in words, too, if the service's sentence lacks it.

    The service sends log times, which may be far from any wall clock: only the time between two of
    them has a meaning here (S8).
    """
    if log_time_ms is None:
        return error
    age = timedelta(milliseconds=max(0, log_time_ms - since_ms))
    held = "" if said else f", held by {error.holder!r} for {age.total_seconds():.0f} s"
    dated = Fenced(f"{error.message}{held}", code=error.code, holder=error.holder)
    dated.since, dated.age_ms = datetime.now(UTC) - age, age // timedelta(milliseconds=1)
    return dated
