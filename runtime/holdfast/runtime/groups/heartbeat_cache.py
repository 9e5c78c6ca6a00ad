"""Cache of one group's heartbeat answers; cleared by every other decision for the group.

A heartbeat that was decided without events has the same answer until something else is decided for
the group; only the count of its member's renewals grows. Those counts are kept here and merged into
the volatile part before the next decision, so that `decide` never sees a stale count (S9, S16).
Pure: no loop, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.coordinator.model.effects import Answer, Renew
from holdfast.coordinator.model.rejections import RebalanceInProgress
from holdfast.coordinator.model.replies import HeartbeatReply
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey

if TYPE_CHECKING:
    from holdfast.coordinator.model.commands import Heartbeat
    from holdfast.coordinator.model.effects import Decision
    from holdfast.coordinator.model.ids import MemberId
    from holdfast.coordinator.model.volatile import Volatile

Key = tuple[int, str, str | None]
"""Generation, member id, instance id: the content of a plain heartbeat."""


@dataclass(slots=True)
class CachedAnswer:
    """The last answer to a heartbeat."""

    reply: HeartbeatReply
    session_timeout_ms: int | None  # None: the session is suspended (K-A23)
    response: object = None  # the reply as a service's message, once the service has made it


class HeartbeatCache:
    """One group's heartbeat answers, and the renewals of sessions that no decision knows yet."""

    __slots__ = ("_answers", "_during_batch", "_renewed")

    def __init__(self) -> None:
        self._answers: dict[Key, CachedAnswer] = {}
        self._renewed: dict[MemberId, int] = {}
        self._during_batch: set[MemberId] = set()

    def recall(self, key: Key) -> CachedAnswer | None:
        """Return the cached answer of the same heartbeat, if nothing was decided since."""
        return self._answers.get(key)

    def remember(self, command: Heartbeat, decision: Decision) -> None:
        """Cache the answer to a member's heartbeat, if the decision changed nothing else.

        Refusals of strangers are not cached: they could fill the cache with any number of names.
        """
        reply, timeout = None, None
        for effect in decision.effects:
            if isinstance(effect, Answer) and isinstance(effect.reply, HeartbeatReply):
                reply = effect.reply
            elif isinstance(effect, Renew) and effect.member_id == command.member_id:
                timeout = effect.session_timeout_ms
            else:
                return
        if reply is None or command.release:
            return
        if reply.error is None or isinstance(reply.error, RebalanceInProgress):
            key = (command.generation, command.member_id, command.instance_id)
            self._answers[key] = CachedAnswer(reply, timeout)

    def renewed(self, volatile: Volatile, member_id: MemberId) -> int:
        """Count one more renewal; returns the new count."""
        count = self._renewed.get(member_id)
        if count is None:
            count = volatile.renewals.get(member_id, 0)
        self._renewed[member_id] = count + 1
        return count + 1

    def folded(self, volatile: Volatile) -> Volatile:
        """Merge all counts into the volatile part."""
        if not self._renewed:
            return volatile
        self._during_batch.update(self._renewed)
        renewals = volatile.renewals.update_all(self._renewed.items())
        self._renewed.clear()
        return volatile._replace(renewals=renewals)

    def forget(self) -> None:
        """Clear the answers: something was decided."""
        self._answers.clear()

    def batch_begins(self) -> None:
        """Start to track renewals that the batch does not know."""
        self._during_batch.clear()

    def note(self, member_id: MemberId) -> None:
        """Track a heartbeat that was decided while a batch is under way."""
        self._during_batch.add(member_id)

    def merged(self, before: Volatile, after: Volatile) -> Volatile:
        """Merge renewals that came meanwhile into the volatile part that a batch has made.

        A session that the batch itself has started over or ended keeps the batch's count.
        """
        if not self._during_batch:
            return after
        renewals = after.renewals
        for member_id in self._during_batch:
            key = DeadlineKey(SESSION, member_id)
            armed = before.armed.get(key)
            if armed is not None and after.armed.get(key) == armed:
                renewals = renewals.set(member_id, before.renewals.get(member_id, 0))
        self._during_batch.clear()
        return after._replace(renewals=renewals)
