"""Drives one member session on a virtual clock: the test is the service, the network and time.

Nothing here knows the rules; it answers what it is told to answer and lets time pass step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._session.session import Session
from holdfast.client._session.session_io import (
    Cancel,
    Failure,
    FailureKind,
    Note,
    Revoke,
    Send,
    Settings,
    Stopped,
    TopicPartition,
)
from holdfast.client.errors import OutcomeUnknown
from holdfast.coordinator.assignors import RangeAssignor
from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.client._session.session_io import Output, Request, Response

RequestT = TypeVar("RequestT", bound="Request")

START_MS = 1_000_000
LOG_TIME_MS = 1_700_000_000_000
STEPS_MAX = 10_000

NONE = ErrorCode.ERROR_CODE_NONE
REBALANCE_IN_PROGRESS = ErrorCode.ERROR_CODE_REBALANCE_IN_PROGRESS
UNKNOWN_MEMBER_ID = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
ILLEGAL_GENERATION = ErrorCode.ERROR_CODE_ILLEGAL_GENERATION
FENCED_INSTANCE_ID = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID


class Driver:
    """A session with everything that it sent and told."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or make_settings()
        counter = iter(range(1, 1_000_000))
        self.session = Session(self.settings, RequestIds(lambda _bits: next(counter)))
        self.now = START_MS
        self.sent: list[Send] = []
        self.open: dict[int, Send] = {}
        self.cancelled: list[int] = []
        self.told: list[Output] = []
        self.notes: list[str] = []
        self.hears_at_once = True

    # --- time and answers ----------------------------------------------------------------------

    def start(self) -> None:
        self.session.start(self.now)
        self.take()

    def take(self) -> None:
        for output in self.session.outputs():
            match output:
                case Send():
                    self.sent.append(output)
                    self.open[output.call] = output
                case Cancel(call):
                    self.cancelled.append(call)
                    self.open.pop(call)
                case Note(words):
                    self.notes.append(words)
                case Revoke(()) if self.hears_at_once:
                    self.heard()
                case _:
                    self.told.append(output)

    def heard(self) -> None:
        """The user has let go of what it was asked for, and heard all that was told before."""
        self.session.revoked(self.now)
        self.take()

    def advance(self, ms: int) -> None:
        """Let time pass, waking the session exactly when it asks for it."""
        end = self.now + ms
        for _ in range(STEPS_MAX):
            wake = self.session.wake_at_ms
            if wake is None or wake > end:
                self.now = end
                self.session.tick(end)
                self.take()
                return
            self.now = max(self.now, wake)
            self.session.tick(self.now)
            self.take()
        raise AssertionError("The session asks to be woken again and again.")

    def freeze(self, ms: int) -> None:
        """The process stands still: time passes, and nobody ticks."""
        self.now += ms

    def waiting(self, kind: type[RequestT]) -> tuple[Send, RequestT]:
        """The newest unanswered call of this kind."""
        for send in reversed(self.open.values()):
            if isinstance(send.request, kind):
                return send, send.request
        raise AssertionError(f"No {kind.__name__} is open, only {list(self.open.values())}.")

    def is_waiting(self, kind: type[Request]) -> bool:
        return any(isinstance(send.request, kind) for send in self.open.values())

    def answer(self, kind: type[Request], response: Response) -> None:
        send, _ = self.waiting(kind)
        self.answer_call(send, response)

    def answer_call(self, send: Send, response: Response) -> None:
        self.open.pop(send.call)
        self.session.answered(send.call, response, self.now)
        self.take()

    def fail(self, kind: type[Request], *, retry_in_ms: int = 0) -> None:
        send, _ = self.waiting(kind)
        self.fail_call(send, FailureKind.RETRY, retry_in_ms=retry_in_ms)

    def fail_call(self, send: Send, kind: FailureKind, *, retry_in_ms: int = 0) -> None:
        self.open.pop(send.call)
        failure = Failure(kind, OutcomeUnknown("the test says so"), retry_in_ms)
        self.session.failed(send.call, failure, self.now)
        self.take()

    # --- the usual way -------------------------------------------------------------------------

    def found(self) -> None:
        """Start, and learn the log time."""
        self.start()
        extras = extras_pb2.ResponseExtras(log_time_ms=LOG_TIME_MS)
        answer = group_pb2.FindCoordinatorResponse(holdfast=extras)
        self.answer(group_pb2.FindCoordinatorRequest, answer)

    def joined(self, **how: object) -> None:
        self.answer(group_pb2.JoinGroupRequest, join_answer(**how))  # type: ignore[arg-type]  # named there

    def synced(self, *numbers: int, token: int = 7, predecessor_ms: int = 0) -> None:
        self.answer(
            group_pb2.SyncGroupRequest,
            sync_answer(*numbers, token=token, predecessor_ms=predecessor_ms),
        )

    def stable(self, *numbers: int, generation: int = 1) -> None:
        """A follower with partitions of topic "t", its first heartbeat answered too."""
        self.found()
        self.joined(generation=generation, protocol=self.settings.assignors[0].name)
        self.synced(*numbers)
        self.advance(0)
        self.heartbeat()

    def heartbeat(self, code: ErrorCode.ValueType = NONE) -> None:
        """Answer the open heartbeat."""
        self.answer(group_pb2.HeartbeatRequest, group_pb2.HeartbeatResponse(error_code=code))

    def next_heartbeat(self, code: ErrorCode.ValueType = NONE) -> None:
        """Let one interval pass, and answer the heartbeat that falls due."""
        self.advance(self.settings.heartbeat_interval_ms)
        self.heartbeat(code)

    @property
    def told_last(self) -> Output | None:
        return self.told[-1] if self.told else None

    @property
    def stopped(self) -> Stopped:
        last = self.told_last
        assert isinstance(last, Stopped)
        return last

    def owns(self) -> bool:
        return self.session.owns(self.now)


def make_settings(**changes: object) -> Settings:
    values: dict[str, object] = {
        "group": "g",
        "topics": ("t",),
        "assignors": (RangeAssignor(),),
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "heartbeat_interval_ms": 1_000,
    }
    return Settings(**(values | changes))  # type: ignore[arg-type]  # named there


def partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def join_answer(  # noqa: PLR0913 - a message field each, all with defaults
    *,
    generation: int = 1,
    member_id: str = "m-1",
    leader: str = "other",
    skip_assignment: bool = False,
    members: Iterable[group_pb2.JoinGroupResponseMember] = (),
    session_ms: int | None = None,
    rebalance_ms: int | None = None,
    predecessor_ms: int = 0,
    protocol: str = "range",
) -> group_pb2.JoinGroupResponse:
    return group_pb2.JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
        holdfast=extras_pb2.ResponseExtras(
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            predecessor_ms=predecessor_ms,
        ),
    )


def sync_answer(
    *numbers: int, token: int = 7, predecessor_ms: int = 0, user_data: bytes | None = None
) -> group_pb2.SyncGroupResponse:
    given = group_pb2.ConsumerProtocolTopicPartitions(topic="t", partitions=numbers)
    assignment = group_pb2.ConsumerProtocolAssignment(
        assigned_partitions=[given], user_data=user_data
    )
    return group_pb2.SyncGroupResponse(
        assignment=assignment.SerializeToString(),
        holdfast=extras_pb2.ResponseExtras(fencing_token=token, predecessor_ms=predecessor_ms),
    )


def claim_of(request: group_pb2.JoinGroupRequest) -> tuple[TopicPartition, ...]:
    """What a join says that the member owns, in its first protocol."""
    said = group_pb2.ConsumerProtocolSubscription.FromString(request.protocols[0].metadata)
    return tuple(
        TopicPartition(owned.topic, number)
        for owned in said.owned_partitions
        for number in owned.partitions
    )


def subscriber(member_id: str, *topics: str) -> group_pb2.JoinGroupResponseMember:
    wanted = group_pb2.ConsumerProtocolSubscription(topics=topics)
    return group_pb2.JoinGroupResponseMember(
        member_id=member_id, metadata=wanted.SerializeToString()
    )
