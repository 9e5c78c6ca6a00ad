"""What every member session can do, whatever protocol it speaks, and which one a member gets.

A session is a state machine without IO, clock or chance. A shell tells it what happened and when
(the inputs), performs the outputs that it takes with `outputs()`, and calls `tick` at `wake_at_ms`.
All times are boot-clock milliseconds (CLOCK_BOOTTIME) that come in as arguments. Code outside this
room knows sessions by this interface alone: how the group is asked, and who shares its partitions
out, is a session's own business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from holdfast.client._session.consumer.session import ConsumerSession
from holdfast.client._session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from holdfast.client._session.loss import LostReason
    from holdfast.client._session.requests import RequestIdSource
    from holdfast.client._session.session_io import (
        Failure,
        Grant,
        Identity,
        Output,
        Response,
        SaidByAssignor,
        Settings,
        Stage,
        Subscription,
        TopicPartition,
    )
    from holdfast.client.errors import AssignmentFailed, HoldfastError
    from holdfast.v1 import extras_pb2, group_pb2
    from holdfast.v1.errors_pb2 import ErrorCode


class MemberSession(Protocol):
    """One member of one group, from start to stop."""

    # --- inputs --------------------------------------------------------------------------------

    def start(self, now_ms: int) -> None:
        """Begin to join."""

    def answered(self, call: int, response: Response, now_ms: int) -> None:
        """Take an answer of the protocol to a call. Late answers change nothing."""

    def delivered(self, call: int, now_ms: int) -> None:
        """Note that the call has gone out to a node, which may keep it waiting."""

    def failed(self, call: int, failure: Failure, now_ms: int) -> None:
        """Take the end of a call that was not answered."""

    def tick(self, now_ms: int) -> None:
        """Note that time has passed."""

    def revoked(self, now_ms: int) -> None:
        """Note that the user has let go of the partitions of the last Revoke."""

    def pushed(self, push: group_pb2.HeartbeatPush, now_ms: int) -> None:
        """Take a hint that the service sent unasked: it proves nothing and renews nothing."""

    def refused(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        extras: extras_pb2.ResponseExtras,
        now_ms: int,
    ) -> None:
        """Note that a commit of this member, sent under `identity`, was refused with `code`."""

    def leave(self, now_ms: int) -> None:
        """Leave the group for good: the partitions go to others at once."""

    def restart(self, now_ms: int) -> None:
        """Go for a planned restart: a static member keeps its place, a dynamic one leaves (S12)."""

    def fail(self, error: HoldfastError, now_ms: int) -> None:
        """End as `restart` does, and with this error: the shell or the user's code has failed."""

    def abort(self, error: HoldfastError) -> None:
        """Stop at once without a word to the group: code of the user may still run."""

    # --- outputs -------------------------------------------------------------------------------

    def outputs(self) -> list[Output]:
        """Take what is to be done, in this order."""

    @property
    def wake_at_ms(self) -> int | None:
        """When to call `tick` next; None: only an input can change anything."""

    # --- who it is, and how far it has come ----------------------------------------------------

    @property
    def settings(self) -> Settings:
        """What the member wants."""

    @property
    def identity(self) -> Identity:
        """Who the member is to the group at the moment."""

    @property
    def stage(self) -> Stage:
        """How far it has come, for programs."""

    @property
    def phase_name(self) -> str:
        """Where it stands in its protocol, for people: `Health.phase`."""

    @property
    def error(self) -> HoldfastError | None:
        """What stopped it for good; None: nothing, or it was asked to stop."""

    @property
    def unconfirmed(self) -> HoldfastError | None:
        """Set when the group has not confirmed the leave: the session timeout ends it, too."""

    @property
    def pausing(self) -> bool:
        """Whether all is over, and only the program is not told yet (fatal_error.pause_ms)."""

    # --- what it owns: safe to ask from any thread ---------------------------------------------

    @property
    def held(self) -> Mapping[TopicPartition, Grant]:
        """What the user was told to own, each under its grant; the lease may have ended."""

    def may_act(self, partition: TopicPartition, grant: Grant, now_ms: int) -> bool:
        """Whether the user holds it under this very grant and may act on it at `now_ms` (S11)."""

    def lets_go_of(self, partition: TopicPartition) -> bool:
        """Return whether the user has been asked to let go of it, and has not done so yet."""

    def owns(self, now_ms: int) -> bool:
        """Return whether the member may act on anything: by the clock, not by the last tick."""

    def ready(self, now_ms: int) -> bool:
        """Return whether it is in its group and may act on all that it was given there."""

    @property
    def lease_ends_at_ms(self) -> int | None:
        """From when on nothing may be acted on if nothing is heard any more; None: no lease."""

    @property
    def loss(self) -> LostReason | None:
        """Why something was lost last; None: nothing ever was."""


@runtime_checkable
class SubscribingSession(MemberSession, Protocol):
    """What the session of the heartbeat protocol can do besides.

    A subscription may change, and the member may compute the target of its group.
    """

    def subscribe(self, subscription: Subscription, now_ms: int) -> None:
        """Want these topics from now on; it is told at once, and leads out of Stage.FAILED."""

    def unsubscribe(self, now_ms: int) -> None:
        """Go out of the group until `subscribe`."""

    def working(self, now_ms: int) -> None:
        """Note that the program works (`Settings.work_timeout_ms`)."""

    def say_of_assignors(self, said: tuple[SaidByAssignor, ...], now_ms: int) -> None:
        """Say this of the client assignors from now on; what is new is told at once."""

    def computed(
        self,
        number: int,
        members: Sequence[group_pb2.InstallAssignmentRequestMember],
        now_ms: int,
    ) -> None:
        """Take the target that was made for the Compute of this number. Late ones do nothing."""

    def not_computed(self, number: int, error: AssignmentFailed, now_ms: int) -> None:
        """Take the failure of the assignor at it."""

    def commit_again(
        self,
        code: ErrorCode.ValueType,
        identity: Identity,
        partitions: Collection[TopicPartition],
    ) -> Identity | None:
        """Return as whom a commit that was refused may be sent again; None: the refusal stands."""


SESSIONS: Final[dict[str, Callable[[Settings, RequestIdSource], MemberSession]]] = {
    "classic": Session,
    "consumer": ConsumerSession,
}
"""The session of each `Settings.group_protocol`."""


def make_session(settings: Settings, request_ids: RequestIdSource) -> MemberSession:
    """Make the session of a member, by the protocol that its settings ask for."""
    return SESSIONS[settings.group_protocol](settings, request_ids)
