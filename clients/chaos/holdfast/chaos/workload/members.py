"""A member of `holdfast.client` that records when it may act, to the microsecond of its lease.

The session itself decides (S11); here its outputs are read on their way to the user. A right that
ends by the clock is recorded with the end of the lease, however late the process woke up.
Knows a session by the interface of all of them, and no protocol.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from holdfast.chaos.clock import US_PER_MS, boot_us
from holdfast.chaos.history.happenings import Granted, Renewed, Surrendered
from holdfast.chaos.workload.callers import RecordedConnection
from holdfast.chaos.workload.echoes import Echoes
from holdfast.client import HoldfastError, LostReason, Member
from holdfast.client._session.loss import OVER
from holdfast.client._session.session_io import Lost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from holdfast.chaos.workload.recorder import Recorder
    from holdfast.client import Credentials, TopicPartition
    from holdfast.client._session.member_session import MemberSession
    from holdfast.client._session.session_io import Grant, Output

Reason = Literal["revoked", "lost", "fenced", "left", "stopped", "crashed"]


class RightsLog:
    """Records what one session may act on, partition by partition, as the rights of `who`."""

    def __init__(self, session: MemberSession, recorder: Recorder, who: str) -> None:
        self._session, self._recorder, self._who = session, recorder, who
        self._rights: Mapping[TopicPartition, Grant] = {}
        """As they were written last."""
        self._holder = ""
        self._until_us = 0

    def look(self, outputs: Iterable[Output]) -> None:
        """Record what has changed. `outputs`: what the session has decided since the last look.

        They are not performed yet, so the record is written before the group can hear of it. What
        is lost beside partitions that stay ends with the list of these.
        """
        for output in outputs:
            if isinstance(output, Lost) and self._rights.keys() <= set(output.partitions):
                self._ended(_reason(output.reason))
        held = self._session.held
        if held == self._rights:
            self._renewed()
        elif held:
            self._granted(held)
        else:
            self._ended("revoked")

    def crashed(self) -> None:
        """Record that its process has died."""
        self._ended("crashed")

    def _granted(self, held: Mapping[TopicPartition, Grant]) -> None:
        """Record everything held from now on.

        Partitions kept from an older grant keep its token.
        """
        newest = max(held.values(), key=lambda grant: grant.fencing_token)
        names = sorted(held)
        tokens = tuple(held[name].fencing_token for name in names)
        self._rights, self._holder = held, newest.member_id
        self._until_us = self._lease_ends_us()
        settings = self._session.settings
        self._recorder.note(
            Granted(
                boot_us(),
                self._who,
                settings.group,
                newest.member_id,
                settings.instance_id or "",
                newest.generation,
                tuple((name.topic, name.number) for name in names),
                newest.fencing_token,
                newest.predecessor_ms,
                self._until_us,
                () if set(tokens) == {newest.fencing_token} else tokens,
            )
        )

    def _renewed(self) -> None:
        until_us = self._lease_ends_us()
        if not self._rights or until_us in {0, self._until_us}:
            return
        self._until_us = until_us
        group = self._session.settings.group
        self._recorder.note(Renewed(boot_us(), self._who, group, self._holder, until_us))

    def _ended(self, reason: Reason) -> None:
        if not self._rights:
            return
        now_us = boot_us()
        ended_us = min(now_us, self._until_us) if self._until_us else now_us
        reason = "lost" if ended_us < now_us else reason
        group = self._session.settings.group
        self._recorder.note(Surrendered(ended_us, self._who, group, self._holder, reason))
        self._rights = {}

    def _lease_ends_us(self) -> int:
        ends_at_ms = self._session.lease_ends_at_ms
        return 0 if ends_at_ms is None else ends_at_ms * US_PER_MS


def _reason(reason: LostReason) -> Reason:
    if reason.kind == "fenced":
        return "fenced"
    return "stopped" if reason == OVER else "lost"


class RecordedMember(Member):
    """A member whose calls and rights are recorded as those of `who`."""

    def __init__(
        self,
        endpoints: Sequence[str],
        credentials: Credentials,
        recorder: Recorder,
        who: str,
        echoes: Random | None = None,
        **options: Any,  # noqa: ANN401 - those of Member, passed on
    ) -> None:
        """`echoes`: the chance by which heartbeats come late or twice; None: none does."""
        late = Echoes(endpoints, credentials, recorder, who, echoes) if echoes else None
        self._own = RecordedConnection(endpoints, credentials, recorder, who, late)
        # Under faults a cluster may be away for longer than a program would wait for it.
        super().__init__(self._own, start_timeout_ms=None, **options)
        self._rights = RightsLog(self._session, recorder, who)

    def _take_outputs(self) -> list[Output]:
        taken = super()._take_outputs()
        self._rights.look(taken)
        return taken

    async def crash(self) -> None:
        """Stop without leaving: the session must expire."""
        self._rights.crashed()
        self._session.abort(HoldfastError("the process died, as was wished"))
        with contextlib.suppress(HoldfastError):  # the end that was wished
            await self._end()

    async def _end(self) -> None:
        try:
            await super()._end()
        finally:
            await self._own.close()
