"""Who the member is to the group, what it claims, and the joins and syncs that it sends.

Builds and sends; what an answer means, session.py knows. No IO, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.client._session import requests
from holdfast.client._session.calls_in_flight import CallsInFlight, Kind
from holdfast.client._session.protocol import Assignment, Claim
from holdfast.client._session.requests import RequestIdSource
from holdfast.client._session.session_io import Identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client._session.call_timing import CallTiming
    from holdfast.client._session.session_io import Settings
    from holdfast.v1 import group_pb2


class Joining:
    """The member's identity, and how it comes by one."""

    def __init__(
        self, settings: Settings, ids: RequestIdSource, calls: CallsInFlight, timing: CallTiming
    ) -> None:
        self.identity = Identity()
        self.reason = "a new process"
        self.resend_at_ms: int | None = None
        self.is_recalled = False
        """Whether a heartbeat has asked for another join while the sync was not answered."""
        self._settings = settings
        self._ids = ids
        self._calls = calls
        self._timing = timing
        self._assignors = {assignor.name: assignor for assignor in settings.assignors}
        self._claim = Claim()

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps its partitions over a join (KIP-429).

        Only if each of its assignors allows it: which one the group will choose is not known when
        the join is sent. So a group moves over by two rolling restarts: add, then remove.
        """
        return all(assignor.cooperative for assignor in self._settings.assignors)

    def send_join(self, now_ms: int) -> None:
        """Join, or join again under the present member id."""
        request = requests.join(
            self._settings, self.identity, self._claim, self._ids.make(now_ms), self.reason
        )
        self._calls.send(Kind.JOIN, request, self._timing.join_timeout_ms, now_ms)
        again_at_ms = now_ms + self._timing.quarter_session_ms
        self.resend_at_ms = None if self.identity.can_heartbeat else again_at_ms

    def resend_if_due(self, now_ms: int) -> None:
        """Repeat a parked join each quarter of a session if no heartbeats can be sent (S17)."""
        if self.resend_at_ms is None or now_ms < self.resend_at_ms:
            return
        self.resend_at_ms = now_ms + self._timing.quarter_session_ms
        self._calls.resend(Kind.JOIN, now_ms)

    def generation_passed(self, now_ms: int) -> None:
        """T-3 while a join is parked: that join becomes the only sign of life (S17).

        The join phase may have closed and its answer be on the way: so no new join.
        """
        self._timing.heartbeat_at_ms = None
        self.resend_at_ms = now_ms + self._timing.quarter_session_ms

    def joined(self, response: group_pb2.JoinGroupResponse) -> None:
        """Take the identity of a generation that the group has us in."""
        self.identity = Identity(response.member_id, response.generation_id, response.protocol_name)
        self.is_recalled = False

    def send_sync(
        self, assignments: Sequence[group_pb2.SyncGroupRequestAssignment], now_ms: int
    ) -> None:
        """Ask for one's own assignment; the group leader hands all of them in."""
        request_id = self._ids.make(now_ms)
        request = requests.sync(self._settings, self.identity, request_id, assignments)
        self._calls.send(Kind.SYNC, request, self._settings.request_timeout_ms, now_ms)

    def take_assignment(self, assignment: Assignment) -> bool:
        """Claim with the next join what is assigned now; whether that join must be sent at once.

        Others wait for this member to join without what it has claimed: a cooperative assignor
        gives to nobody what somebody claims. The assignment says so (a process that was started
        again does not know what it claimed before), and so does the claim itself, whoever assigned.
        """
        left_out = not set(self._claim.partitions) <= set(assignment.partitions)
        self._claim = Claim(assignment.partitions, self.identity.generation)
        assignor = self._assignors.get(self.identity.protocol)
        return assignor is not None and assignor.cooperative and (left_out or assignment.join_again)
