"""Drives one session of the heartbeat protocol on a virtual clock: the test is the service.

Nothing here knows the rules; it answers what it is told to answer and lets time pass step by step.
Callbacks of the user return when the test says so, in their order; those of nothing at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from holdfast.client._rpc.request_ids import RequestIds
from holdfast.client._session.consumer.session import ConsumerSession
from holdfast.client._session.consumer.states import State
from holdfast.client._session.session_io import (
    Assigned,
    Cancel,
    Failure,
    FailureKind,
    Lost,
    Note,
    Refused,
    Revoke,
    Send,
    Settings,
    Stopped,
    TopicPartition,
)
from holdfast.client.errors import OutcomeUnknown, Unavailable
from holdfast.v1 import extras_pb2, group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.client._session.session_io import Output

START_MS = 1_000_000
SESSION_MS, REBALANCE_MS, INTERVAL_MS = 10_000, 60_000, 1_000
STEPS_MAX = 10_000
MEMBER = "9d4b5e0a-0000-4000-8000-000000000001"

NONE = ErrorCode.ERROR_CODE_NONE
UNKNOWN_MEMBER_ID = ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID
FENCED_MEMBER_EPOCH = ErrorCode.ERROR_CODE_FENCED_MEMBER_EPOCH
FENCED_INSTANCE_ID = ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID
UNRELEASED_INSTANCE_ID = ErrorCode.ERROR_CODE_UNRELEASED_INSTANCE_ID

Beat = group_pb2.ConsumerGroupHeartbeatRequest


class Driver:
    """A session with everything that it sent and told."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or make_settings()
        self.session = ConsumerSession(self.settings, RequestIds())
        self.now = START_MS
        self.sent: list[Beat] = []
        self.open: dict[int, Send] = {}
        self.others: dict[int, Send] = {}
        """Unanswered calls that are no heartbeats."""
        self.told: list[Output] = []
        self.notes: list[str] = []
        self.states = [self.session.state]
        self.running: deque[Output] = deque()
        """Callbacks of the user that have not returned, the oldest first; () stands for none."""
        self.slow = False
        """Whether on_assigned and on_lost, too, return only when the test says so."""

    # --- time, outputs -------------------------------------------------------------------------

    def start(self) -> None:
        self.session.start(self.now)
        self.take()

    def take(self) -> None:
        for output in self.session.outputs():
            match output:
                case Send():
                    if isinstance(output.request, Beat):
                        self.sent.append(output.request)
                        self.open[output.call] = output
                    else:
                        self.others[output.call] = output
                case Cancel(call):
                    (self.open if call in self.open else self.others).pop(call)
                case Note(words):
                    self.notes.append(words)
                case Assigned() | Lost() | Revoke():
                    self.running.append(output)
                    if output != Revoke(()):
                        self.told.append(output)
                case _:
                    self.told.append(output)
        if self.session.state is not self.states[-1]:
            self.states.append(self.session.state)
        self._run_callbacks()

    def _run_callbacks(self) -> None:
        """Let callbacks return that need no word of the test's."""
        while self.running and (self.running[0] == Revoke(()) or self._is_quick(self.running[0])):
            self._return()

    def _is_quick(self, output: Output) -> bool:
        return not self.slow and not isinstance(output, Revoke)

    def _return(self) -> None:
        if isinstance(self.running.popleft(), Revoke):
            self.session.revoked(self.now)
            self.take()

    def returns(self) -> None:
        """The user's callback that runs returns, and so do those of nothing after it."""
        self._return()
        self._run_callbacks()

    def advance(self, ms: int) -> None:
        """Let time pass, waking the session exactly when it asks for it."""
        end = self.now + ms
        for _ in range(STEPS_MAX):
            wake = self.session.wake_at_ms
            if wake is None or wake > end:
                self.now = end
                self.tick()
                return
            self.now = max(self.now, wake)
            self.tick()
        raise AssertionError("The session asks to be woken again and again.")

    def tick(self) -> None:
        self.session.tick(self.now)
        self.take()

    def do(self, name: str, *given: object) -> None:
        """An input of the user's, by its name."""
        getattr(self.session, name)(*given, self.now)
        self.take()

    # --- answers -------------------------------------------------------------------------------

    @property
    def waiting(self) -> Send:
        """The one unanswered call."""
        (send,) = self.open.values()
        return send

    @property
    def beat(self) -> Beat:
        """The one unanswered heartbeat."""
        request = self.waiting.request
        assert isinstance(request, Beat)
        return request

    @property
    def quiet(self) -> bool:
        """Whether no call is open."""
        return not self.open

    def answer(self, response: group_pb2.ConsumerGroupHeartbeatResponse) -> None:
        call = self.waiting.call
        del self.open[call]
        self.session.answered(call, response, self.now)
        self.take()

    def accept(self, epoch: int, *numbers: int, **how: object) -> None:
        """NONE, and to own these of topic t."""
        given: object = {"t": dict.fromkeys(numbers, how.pop("token", 7))}
        self.answer(answer(epoch, given, **how))  # type: ignore[arg-type]  # named there

    def unchanged(self, epoch: int) -> None:
        """NONE, and to own what it owns."""
        self.answer(answer(epoch, None))

    def refuse(self, code: ErrorCode.ValueType, **extras: object) -> None:
        self.answer(
            group_pb2.ConsumerGroupHeartbeatResponse(
                error_code=code,
                holdfast=extras_pb2.ResponseExtras(**extras),  # type: ignore[arg-type]  # named there
            )
        )

    def fail(
        self,
        kind: FailureKind = FailureKind.RETRY,
        *,
        applied: bool | None = None,
        retry_in_ms: int = 100,
    ) -> None:
        """No answer; `applied` False: it certainly did nothing."""
        call = self.waiting.call
        del self.open[call]
        error = Unavailable("not applied") if applied is False else OutcomeUnknown("lost")
        self.session.failed(call, Failure(kind, error, retry_in_ms), self.now)
        self.take()

    # --- the usual way -------------------------------------------------------------------------

    def joined(self, *numbers: int, epoch: int = 2) -> None:
        """Taken, with these partitions, and acknowledged."""
        self.start()
        self.accept(epoch, *numbers)
        if numbers:
            self.unchanged(epoch)
        assert self.state is State.STABLE

    def next_beat(self) -> Beat:
        """Let an interval pass."""
        self.advance(INTERVAL_MS)
        return self.beat

    @property
    def state(self) -> State:
        return self.session.state

    def is_in(self, state: State) -> bool:
        """As `state is`, but mypy does not take it for settled."""
        return self.session.state is state

    @property
    def told_last(self) -> Output | None:
        return self.told[-1] if self.told else None

    @property
    def lost(self) -> list[Lost]:
        return [output for output in self.told if isinstance(output, Lost)]

    @property
    def stopped(self) -> Stopped:
        last = self.told_last
        assert isinstance(last, Stopped)
        return last

    @property
    def refused(self) -> Refused:
        last = self.told_last
        assert isinstance(last, Refused)
        return last

    def owns(self) -> list[int]:
        """What the user may act on at this moment under the grant that it was told, by number."""
        grants = {
            name: output.grant
            for output in self.told
            if isinstance(output, Assigned)
            for name in output.partitions
        }
        may_act = self.session.may_act
        return [name.number for name in sorted(grants) if may_act(name, grants[name], self.now)]


def make_settings(**changes: object) -> Settings:
    values: dict[str, object] = {
        "group": "g",
        "topics": ("t",),
        "assignors": (),
        "member_id": MEMBER,
        "rebalance_timeout_ms": REBALANCE_MS,
        "group_protocol": "consumer",
    }
    return Settings(**(values | changes))  # type: ignore[arg-type]  # named there


def partitions(*numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", number) for number in numbers)


def answer(
    epoch: int,
    given: Mapping[str, Mapping[int, int]] | None,
    *,
    predecessor_ms: int = 0,
    rebalance_ms: int = REBALANCE_MS,
    interval_ms: int = INTERVAL_MS,
) -> group_pb2.ConsumerGroupHeartbeatResponse:
    """NONE; `given`: tokens by number by topic."""
    response = group_pb2.ConsumerGroupHeartbeatResponse(
        member_id=MEMBER,
        member_epoch=epoch,
        heartbeat_interval_ms=interval_ms,
        holdfast=extras_pb2.ResponseExtras(
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=rebalance_ms,
            predecessor_ms=predecessor_ms,
        ),
    )
    if given is None:
        return response
    response.assignment.SetInParent()
    for topic, tokens in given.items():
        if tokens:
            response.assignment.topic_partitions.add(topic=topic, partitions=tokens)
            response.holdfast.partition_tokens.add(
                topic=topic, partitions=tokens, fencing_tokens=tokens.values()
            )
    return response


def owned_in(beat: Beat) -> list[int] | None:
    """What a heartbeat says is owned of topic t; None: it does not say."""
    if not beat.HasField("topic_partitions"):
        return None
    given: Iterable[group_pb2.ConsumerGroupTopicPartitions] = beat.topic_partitions.topic_partitions
    return [number for topic in given for number in topic.partitions]


def fields_in(beat: Beat) -> set[str]:
    """The fields that are said only when they have changed."""
    always = {"group_id", "member_id", "member_epoch", "instance_id", "holdfast"}
    return {field.name for field, _ in beat.ListFields()} - always
