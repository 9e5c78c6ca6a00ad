"""A member that computes targets, on the virtual clock: the test is service and assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.client._session.session_io import (
    AssignorFailed,
    Compute,
    Failure,
    FailureKind,
    SaidByAssignor,
    StopComputing,
    ToldByAssignor,
)
from holdfast.client.errors import AssignmentFailed, OutcomeUnknown
from holdfast.v1 import extras_pb2, group_pb2
from unit.client._session.consumer.driver import Driver, answer, make_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.message import Message

    from holdfast.v1.errors_pb2 import ErrorCode

Prepare = group_pb2.PrepareAssignmentRequest
Install = group_pb2.InstallAssignmentRequest
RequestT = TypeVar("RequestT", Prepare, Install)
ZONES = SaidByAssignor("zones", 0, 1, 1, b"here")
TARGET = (group_pb2.InstallAssignmentRequestMember(member_id="m"),)


class ComputingDriver(Driver):
    """A driver with words for the two calls, and for the computation between them."""

    def __init__(self, *said: SaidByAssignor, **settings: object) -> None:
        super().__init__(make_settings(client_assignors=said or (ZONES,), **settings))

    # --- what the service says -------------------------------------------------------------------

    def asks(self, epoch: int = 2, given: Mapping[str, Mapping[int, int]] | None = None) -> None:
        """The answer to the open heartbeat says that this member should compute."""
        response = answer(epoch, given)
        response.holdfast.should_compute = True
        self.answer(response)

    def says(self, metadata: bytes, *numbers: int, epoch: int = 2, by: str = "zones") -> None:
        """The answer has an assignment, and what an assignor says with it."""
        response = answer(epoch, {"t": dict.fromkeys(numbers, 7)})
        said = extras_pb2.AssignedMetadata(assignor=by, version=1 if by else 0, metadata=metadata)
        response.holdfast.assigned_metadata.CopyFrom(said)
        self.answer(response)

    def chosen(self) -> None:
        """It is in its group and has been asked; PrepareAssignment is on its way."""
        self.joined()
        self.next_beat()
        self.asks()

    def computes(self, group_epoch: int = 5) -> Compute:
        """It is chosen, and its assignor has begun."""
        self.chosen()
        self.prepares(group_epoch)
        return self.computing

    def prepares(self, group_epoch: int = 5) -> None:
        picture = group_pb2.PrepareAssignmentResponse(
            group_epoch=group_epoch, assignor_name="zones", assignor_version=1
        )
        self.other(picture)

    def other(self, response: Message) -> None:
        """Answer the open call that is no heartbeat."""
        (call,) = self.others
        del self.others[call]
        self.session.answered(call, response, self.now)  # type: ignore[arg-type]  # one of its own
        self.take()

    def refuses(self, code: ErrorCode.ValueType, why: str = "") -> None:
        (send,) = self.others.values()
        kind = (
            group_pb2.PrepareAssignmentResponse
            if isinstance(send.request, Prepare)
            else group_pb2.InstallAssignmentResponse
        )
        self.other(kind(error_code=code, error_message=why))

    def no_answer(self, kind: FailureKind = FailureKind.RETRY) -> None:
        """The open call that is no heartbeat ends without an answer."""
        (call,) = self.others
        del self.others[call]
        self.session.failed(call, Failure(kind, OutcomeUnknown("lost"), 100), self.now)
        self.take()

    # --- what the assignor does ------------------------------------------------------------------

    def made(self, compute: Compute) -> None:
        self.session.computed(compute.number, TARGET, self.now)
        self.take()

    def raised(self, compute: Compute) -> None:
        self.session.not_computed(compute.number, AssignmentFailed("it raised"), self.now)
        self.take()

    def fails(self, compute: Compute) -> None:
        """It raises, and the group has heard of that."""
        self.raised(compute)
        self.other(group_pb2.InstallAssignmentResponse())

    # --- looks -----------------------------------------------------------------------------------

    def call(self, kind: type[RequestT]) -> RequestT:
        """The one call that is no heartbeat."""
        (send,) = self.others.values()
        assert isinstance(send.request, kind)
        return send.request

    @property
    def computing(self) -> Compute:
        """The last computation that was asked for, which is not stopped."""
        found = [each for each in self.told if isinstance(each, Compute | StopComputing)]
        assert isinstance(found[-1], Compute)
        return found[-1]

    @property
    def failures(self) -> list[AssignorFailed]:
        return [each for each in self.told if isinstance(each, AssignorFailed)]

    @property
    def heard(self) -> list[ToldByAssignor]:
        """What assignors have been told."""
        return [each for each in self.told if isinstance(each, ToldByAssignor)]
