"""Cache of one group's heartbeat answers; cleared by every other decision for the group.

A heartbeat that was decided without events has the same answer until something else is decided for
the group; only the count of its member's renewals moves on. Those counts are kept here and folded
into the volatile part before the next decision, so that `decide` never sees a stale one (S9, S16).
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
"""Generation, member id, instance id: what a plain heartbeat says."""


@dataclass(slots=True)
class CachedAnswer:
    """How a heartbeat was answered last. `session_timeout_ms` None: it is suspended (K-A23).

    `response`: the reply as a message of the service that asked, once it has made one.
    """

    reply: HeartbeatReply
    session_timeout_ms: int | None
    response: object = None


class HeartbeatCache:
    """One group's heartbeat answers, and the renewals of sessions that no decision knows yet."""

    __slots__ = ("_answers", "_during_batch", "_renewed")

    def __init__(self) -> None:
        self._answers: dict[Key, CachedAnswer] = {}
        self._renewed: dict[MemberId, int] = {}
        self._during_batch: set[MemberId] = set()

    def recall(self, key: Key) -> CachedAnswer | None:
        """The answer of the same heartbeat before, if nothing was decided since."""
        return self._answers.get(key)

    def remember(self, command: Heartbeat, decision: Decision) -> None:
        """Note how a member's heartbeat was answered, if that changed nothing else.

        Only a member's: whoever is refused could have any number of names remembered.
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
        """The volatile part with all counts in it."""
        if not self._renewed:
            return volatile
        self._during_batch.update(self._renewed)
        renewals = volatile.renewals.update_all(self._renewed.items())
        self._renewed.clear()
        return volatile._replace(renewals=renewals)

    def forget(self) -> None:
        """Something was decided: answers may be others now."""
        self._answers.clear()

    def batch_begins(self) -> None:
        """From here on the batch does not know of renewals."""
        self._during_batch.clear()

    def note(self, member_id: MemberId) -> None:
        """A heartbeat was decided while a batch is under way."""
        self._during_batch.add(member_id)

    def merged(self, before: Volatile, after: Volatile) -> Volatile:
        """What a batch leaves, or has made so far, with the renewals that came meanwhile.

        Not for a session that the batch itself has started over or ended.
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
