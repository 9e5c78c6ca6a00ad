"""A member of `holdfast.client` that writes down when it may act, to the microsecond of its lease.

The session itself decides (S11); here its outputs are looked at on their way to the user. What ends
by the clock is written with the moment at which the lease ended, however late the process woke up.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from holdfast.chaos.clock import US_PER_MS, boot_us
from holdfast.chaos.history.happenings import Granted, Renewed, Surrendered
from holdfast.chaos.workload.callers import RecordedConnection
from holdfast.client import HoldfastError, LostReason, Member
from holdfast.client._session.loss import OVER
from holdfast.client._session.session import Session
from holdfast.client._session.session_io import Assigned, Lost, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials
    from holdfast.client._rpc.request_ids import RequestIds
    from holdfast.client._session.session_io import Settings

Reason = Literal["revoked", "lost", "fenced", "left", "stopped", "crashed"]


class RecordedSession(Session):
    """The session of one member, whose rights are written down as those of `who`."""

    def __init__(
        self, settings: Settings, request_ids: RequestIds, recorder: Recorder, who: str
    ) -> None:
        super().__init__(settings, request_ids)
        self._recorder, self._who = recorder, who
        self._holder: str | None = None
        self._until_us = 0

    def outputs(self) -> list[Output]:
        """As `Session.outputs`; grants, renewals and losses among them are written."""
        taken = super().outputs()
        for output in taken:
            if isinstance(output, Assigned):
                self._granted(output)
            elif isinstance(output, Lost):
                self._surrendered(_reason(output.reason))
        self._renewed()
        return taken

    def revoked(self, now_ms: int) -> None:
        """As `Session.revoked`: the user has let go, before the group can hear of it."""
        self._surrendered("revoked")
        super().revoked(now_ms)

    def crash(self) -> None:
        """End without a word to the group, as a process that dies."""
        self._surrendered("crashed")
        self.abort(HoldfastError("the process died, as was wished"))

    def _granted(self, output: Assigned) -> None:
        grant, settings = output.grant, self.settings
        self._holder, self._until_us = grant.member_id, self._lease_ends_us()
        self._recorder.note(
            Granted(
                boot_us(),
                self._who,
                settings.group,
                grant.member_id,
                settings.instance_id or "",
                grant.generation,
                tuple((p.topic, p.number) for p in output.partitions),
                grant.fencing_token,
                grant.predecessor_ms,
                self._until_us,
            )
        )

    def _renewed(self) -> None:
        until_us = self._lease_ends_us()
        if self._holder is None or until_us in {0, self._until_us}:
            return
        self._until_us = until_us
        group = self.settings.group
        self._recorder.note(Renewed(boot_us(), self._who, group, self._holder, until_us))

    def _surrendered(self, reason: Reason) -> None:
        if self._holder is None:
            return
        now_us = boot_us()
        ended_us = min(now_us, self._until_us) if self._until_us else now_us
        reason = "lost" if ended_us < now_us else reason
        group = self.settings.group
        self._recorder.note(Surrendered(ended_us, self._who, group, self._holder, reason))
        self._holder = None

    def _lease_ends_us(self) -> int:
        ends_at_ms = self.ownership.lease.ends_at_ms
        return 0 if ends_at_ms is None else ends_at_ms * US_PER_MS


def _reason(reason: LostReason) -> Reason:
    if reason.kind == "fenced":
        return "fenced"
    return "stopped" if reason == OVER else "lost"


class RecordedMember(Member):
    """A member whose calls and rights are written down as those of `who`. Eager assignors only.

    A cooperative member keeps partitions under the tokens of older grants, which `Granted.tokens`
    would have to name, and lets go of some while it keeps others: neither is written down here.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        credentials: Credentials,
        recorder: Recorder,
        who: str,
        **options: Any,  # noqa: ANN401 - those of Member, passed on
    ) -> None:
        self._own = RecordedConnection(endpoints, credentials, recorder, who)
        self._recorder, self._who = recorder, who
        # Under faults a cluster may be away for longer than a program would wait for it.
        super().__init__(self._own, start_timeout_ms=None, **options)

    def _make_session(self) -> RecordedSession:
        session = RecordedSession(self.settings, self._own.caller.ids, self._recorder, self._who)
        self._recorded = session
        return session

    async def crash(self) -> None:
        """Vanish without a word: the group has to find out by itself."""
        self._recorded.crash()
        with contextlib.suppress(HoldfastError):  # the end that was wished
            await self._end()

    async def _end(self) -> None:
        try:
            await super()._end()
        finally:
            await self._own.close()
