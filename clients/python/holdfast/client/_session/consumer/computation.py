"""The target that this member computes for its group, when it was chosen to (KIP-848).

PrepareAssignment tells what an assignor needs, the assignor computes apart from everything else,
and InstallAssignment hands in what it has made, or says why there is nothing, so that another
member is asked at once. One computation at a time, whatever state the member is in that the group
knows; heartbeats go on. Each has a number: what ends under an older one is not wanted any more.
Nothing that goes wrong here ends or fences a member: heartbeats alone do (T-20). No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.consumer.requests import install, not_installed, prepare
from holdfast.client._session.session_io import (
    AssignorFailed,
    Compute,
    FailureKind,
    StopComputing,
)
from holdfast.client.errors import from_code
from holdfast.v1 import group_pb2
from holdfast.v1.errors_pb2 import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client._session.calls_in_flight import Sent
    from holdfast.client._session.requests import RequestIdSource
    from holdfast.client._session.session_io import Failure, Output, Settings
    from holdfast.client.errors import AssignmentFailed, HoldfastError

CALLS: Final = (Kind.PREPARE, Kind.INSTALL)
PAUSE_FIRST_MS: Final = 1_000
PAUSE_MAX_MS: Final = 60_000
TOLD_MAX: Final = 1_000
"""Characters of an error that the group is told; the service keeps fewer."""
_FAILED: Final = ErrorCode.ERROR_CODE_UNKNOWN_SERVER_ERROR
_NONE: Final = ErrorCode.ERROR_CODE_NONE
_OF_THE_PAST: Final = frozenset(
    {
        ErrorCode.ERROR_CODE_GROUP_ID_NOT_FOUND,
        ErrorCode.ERROR_CODE_UNKNOWN_MEMBER_ID,
        ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH,
        ErrorCode.ERROR_CODE_FENCED_INSTANCE_ID,
    }
)
"""Codes by which the member or the group has moved on: the next heartbeat's answer decides."""


class Computation:
    """What one member computes, and the two calls that it takes."""

    def __init__(
        self,
        settings: Settings,
        calls: CallsInFlight,
        ids: RequestIdSource,
        outputs: list[Output],
    ) -> None:
        self._settings, self._calls, self._ids, self._outputs = settings, calls, ids, outputs
        self._number = 0
        self._computes = False
        """Whether the assignor has the present number."""
        self._epoch = 0
        """The member's, as the last answer that asks for a target told it."""
        self._group_epoch = 0
        self._reports = False
        """Whether the InstallAssignment under way says that there is no target."""
        self._pause_ms = PAUSE_FIRST_MS
        self._not_before_ms = 0
        """When a member whose assignor has failed tries again."""

    # --- what the answers to heartbeats say ------------------------------------------------------

    def asked(self, epoch: int, now_ms: int) -> None:
        """Begin, unless it is under way: an answer says that this member should compute."""
        self._epoch = epoch
        under_way = self._computes or any(map(self._calls.pending, CALLS))
        if not under_way and now_ms >= self._not_before_ms:
            request = prepare(self._settings, epoch)
            self._calls.send(Kind.PREPARE, request, self._settings.request_timeout_ms, now_ms)

    def drop(self) -> None:
        """Give up what is under way: another member is chosen, or there is a target."""
        if self._computes:
            self._outputs.append(StopComputing(self._number))
        self._computes = False
        self._calls.forget(*CALLS)

    # --- the two calls, and the assignor between them --------------------------------------------

    def prepared(self, picture: group_pb2.PrepareAssignmentResponse, now_ms: int) -> bool:
        """Take the answer to PrepareAssignment; return whether to beat at once."""
        if picture.error_code != _NONE:
            self._group_epoch = 0  # not told
            return self._refused("PrepareAssignment", picture, now_ms)
        self._number += 1
        self._computes, self._group_epoch = True, picture.group_epoch
        self._outputs.append(Compute(self._number, picture.assignor_name, picture))
        return False

    def computed(
        self,
        number: int,
        members: Sequence[group_pb2.InstallAssignmentRequestMember],
        epoch: int,
        now_ms: int,
    ) -> None:
        """Hand in what the assignor has made, if it is still wanted."""
        if not self._ends(number):
            return
        request_id = self._ids.make(now_ms)
        request = install(self._settings, epoch, self._group_epoch, members, request_id)
        self._send(request, now_ms, reports=False)

    def not_computed(self, number: int, error: AssignmentFailed, now_ms: int) -> None:
        """Note that the assignor has failed, or made what is no target."""
        if self._ends(number):
            self._failed(error, _FAILED, now_ms)

    def _ends(self, number: int) -> bool:
        if not self._computes or number != self._number:
            return False
        self._computes = False
        return True

    def installed(self, response: group_pb2.InstallAssignmentResponse, now_ms: int) -> bool:
        """Take the answer to InstallAssignment; return whether to beat at once.

        The answer to that beat brings the target, or says that the group has changed meanwhile.
        After the word that there is none, the next heartbeat decides, whatever the answer: an older
        service refuses it, and asks another member when this one's time is over.
        """
        if self._reports:
            return False
        if response.error_code != _NONE:
            return self._refused("InstallAssignment", response, now_ms)
        self._pause_ms, self._not_before_ms = PAUSE_FIRST_MS, 0
        return True

    def call_failed(self, sent: Sent, failure: Failure, now_ms: int) -> None:
        """Take the end of an unanswered call: the same one again, under the same request id."""
        if failure.kind is FailureKind.RETRY:
            self._calls.repeat_at(sent, now_ms + failure.retry_in_ms)
        elif failure.kind is FailureKind.FATAL and not (
            sent.kind is Kind.INSTALL and self._reports
        ):
            if sent.kind is Kind.PREPARE:
                self._group_epoch = 0  # not told
            self._failed(failure.error, _FAILED, now_ms)

    def _refused(
        self,
        subject: str,
        response: group_pb2.PrepareAssignmentResponse | group_pb2.InstallAssignmentResponse,
        now_ms: int,
    ) -> bool:
        code = response.error_code
        if code in _OF_THE_PAST:
            return code == ErrorCode.ERROR_CODE_STALE_MEMBER_EPOCH
        error = from_code(code, subject=subject, message=response.error_message)
        self._failed(error, code, now_ms)
        return False

    def _failed(self, error: HoldfastError, code: ErrorCode.ValueType, now_ms: int) -> None:
        """Tell it, here and to the group, which asks another member at once.

        If the group still asks this one, it tries again after a pause that doubles.
        """
        self._outputs.append(AssignorFailed(error))
        failure = group_pb2.AssignmentFailure(
            error_code=code,
            error_message=str(error)[:TOLD_MAX],
            group_epoch=self._group_epoch,
        )
        request = not_installed(self._settings, self._epoch, failure, self._ids.make(now_ms))
        self._send(request, now_ms, reports=True)
        self._not_before_ms = now_ms + self._pause_ms
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MAX_MS)

    def _send(
        self, request: group_pb2.InstallAssignmentRequest, now_ms: int, *, reports: bool
    ) -> None:
        self._reports = reports
        self._calls.send(Kind.INSTALL, request, self._settings.request_timeout_ms, now_ms)
