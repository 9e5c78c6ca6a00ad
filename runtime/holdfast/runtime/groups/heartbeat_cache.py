"""Cache of one group's heartbeat answers, each until something may have changed it.

A heartbeat of the classic protocol that was decided without events has the same answer until
something else is decided for the group. In the heartbeat protocol members go their ways one by one,
so there a member that is where the group wants it keeps its answer while others move. Only the
count of a member's renewals grows, and the number of its last heartbeat; these are kept here and
merged into the volatile part before the next decision, so that `decide` never sees a stale one (S9,
S16, S26). Pure: no loop, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.effects import Answer, Renew
from holdfast.coordinator.model.events import OffsetsCommitted, OffsetsDeleted, RequestRecorded
from holdfast.coordinator.model.membership import ADVANCED, line_of
from holdfast.coordinator.model.rejections import RebalanceInProgress
from holdfast.coordinator.model.replies import ConsumerHeartbeatReply, HeartbeatReply
from holdfast.coordinator.model.volatile import SESSION, DeadlineKey, HeardBeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.coordinator.model.commands import Heartbeat
    from holdfast.coordinator.model.effects import Decision
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import InstanceId, Life, MemberId
    from holdfast.coordinator.model.volatile import Volatile
    from holdfast.coordinator.structures.pmap import PMap

Key = tuple[int, str, str | None]
"""Generation, member id, instance id: the content of a plain heartbeat of the classic protocol."""
_SPARING: Final = frozenset({OffsetsCommitted, OffsetsDeleted, RequestRecorded})
"""Events that change the answer to no heartbeat of the heartbeat protocol."""


@dataclass(slots=True)
class CachedAnswer:
    """The last answer to a heartbeat."""

    reply: HeartbeatReply | ConsumerHeartbeatReply
    session_timeout_ms: int | None  # None: the session is suspended (K-A23)
    response: object = None  # the reply as a service's message, once the service has made it


@dataclass(slots=True)
class RememberedBeat:
    """The last plain heartbeat of a member of the heartbeat protocol."""

    answer: CachedAnswer
    member_id: MemberId
    epoch: int
    instance_id: InstanceId | None
    principal: str
    life: Life
    """Of the process; "": it numbers no heartbeats (S26)."""
    number: int
    """Of the last heartbeat that had this answer, in that life; 0: it has none."""
    size: int = 0
    """Bytes of its request, once the service has looked through one that says the same."""

    def is_followed_by(
        self, epoch: int, instance_id: InstanceId | None, principal: str, life: Life, number: int
    ) -> bool:
        """Return whether a heartbeat of this member is the next of the same process (S26)."""
        return (
            epoch == self.epoch
            and life == self.life
            and (number > self.number if life else not number)
            and principal == self.principal
            and instance_id == self.instance_id
        )


class HeartbeatCache:
    """One group's heartbeat answers, and what of heartbeats no decision knows yet."""

    __slots__ = ("_answers", "_beats", "_during_batch", "_heard", "_renewed")

    def __init__(self) -> None:
        self._answers: dict[Key, CachedAnswer] = {}
        self._beats: dict[MemberId, RememberedBeat] = {}
        self._renewed: dict[MemberId, int] = {}
        self._heard: dict[MemberId, RememberedBeat] = {}
        self._during_batch: set[MemberId] = set()

    def recall(self, key: Key) -> CachedAnswer | None:
        """Return the answer to the same heartbeat of the classic protocol, unless it may differ."""
        return self._answers.get(key)

    def last_beat(self, member_id: MemberId) -> RememberedBeat | None:
        """Return the last heartbeat in the heartbeat protocol, unless its answer may differ."""
        return self._beats.get(member_id)

    def hear(self, last: RememberedBeat, number: int) -> None:
        """Note the number of a plain heartbeat that is answered as the one before it."""
        last.number = number
        self._heard[last.member_id] = last

    def remember_beat(self, command: ConsumerGroupHeartbeat, decision: Decision) -> None:
        """Cache the answer to a plain heartbeat of a member that nothing is asked of.

        It must have been decided on the applied state, for what has changed topics and settings
        since then has cleared the cache.
        """
        group = decision.state.groups.get(command.group_id)
        if group is None or decision.events or not is_plain(command):
            return
        timeout = _renewed_only(command, decision)
        if timeout is None or not type_of(group).rests(group, command.member_id):
            return
        (reply,) = [each.reply for each in decision.effects if isinstance(each, Answer)]
        if not isinstance(reply, ConsumerHeartbeatReply) or reply.error is not None:
            return
        if reply.assignment is not None:
            return  # it was answered again, with all that a lost answer may have said (S14)
        if timeout == reply.grant.session_timeout_ms:  # else it is being lowered (S11)
            answer = CachedAnswer(reply, timeout)
            self._beats[command.member_id] = _remembered(command, answer)

    def forget_beats(self, events: Iterable[Event]) -> None:
        """Clear the answers of the heartbeat protocol that these events may have changed."""
        for event in events:
            line = line_of(event)
            if line.kind == ADVANCED:
                for member_id in line.named(event):
                    self._beats.pop(member_id, None)
            elif type(event) not in _SPARING:
                self._beats.clear()
                return

    def forget_all_beats(self) -> None:
        """Clear all answers of the heartbeat protocol: topics, settings or rights have changed."""
        self._beats.clear()

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
        """Merge all counts and numbers into the volatile part."""
        if not self._renewed:
            return volatile
        self._during_batch.update(self._renewed)
        renewals = volatile.renewals.update_all(self._renewed.items())
        beats = volatile.beats.update_all(
            (member_id, HeardBeat(last.life, last.number))
            for member_id, last in self._heard.items()
        )
        self._renewed.clear()
        self._heard.clear()
        return volatile._replace(renewals=renewals, beats=beats)

    def forget(self) -> None:
        """Clear the answers of the classic protocol: something was decided."""
        self._answers.clear()

    def batch_begins(self) -> None:
        """Start to track renewals that the batch does not know."""
        self._during_batch.clear()

    def note(self, member_id: MemberId) -> None:
        """Track a heartbeat that was decided while a batch is under way."""
        self._during_batch.add(member_id)

    def merged(self, before: Volatile, after: Volatile) -> Volatile:
        """Merge what came meanwhile into the volatile part that a batch has made.

        A session that the batch itself has started over or ended keeps the batch's count.
        """
        if not self._during_batch:
            return after
        renewals, beats = after.renewals, after.beats
        for member_id in self._during_batch:
            key = DeadlineKey(SESSION, member_id)
            armed = before.armed.get(key)
            if armed is not None and after.armed.get(key) == armed:
                renewals = renewals.set(member_id, before.renewals.get(member_id, 0))
                beats = _with_later(beats, member_id, before.beats.get(member_id))
        self._during_batch.clear()
        return after._replace(renewals=renewals, beats=beats)


def _with_later(
    beats: PMap[MemberId, HeardBeat], member_id: MemberId, heard: HeardBeat | None
) -> PMap[MemberId, HeardBeat]:
    """Return the beats with one that was heard meanwhile, unless another life has begun."""
    known = beats.get(member_id)
    if heard is None or known == heard:
        return beats
    if known is not None and (known.life != heard.life or known.beat > heard.beat):
        return beats
    return beats.set(member_id, heard)


def is_plain(command: ConsumerGroupHeartbeat) -> bool:
    """Return whether a member says nothing but that it lives, at its epoch (K-M13)."""
    return command.member_epoch > 0 and all(
        said is None
        for said in (
            *(command.owned, command.topics, command.regex, command.server_assignor),
            *(command.rack_id, command.rebalance_timeout_ms, command.client_assignors),
        )
    )


def _remembered(command: ConsumerGroupHeartbeat, answer: CachedAnswer) -> RememberedBeat:
    return RememberedBeat(
        answer=answer,
        member_id=command.member_id,
        epoch=command.member_epoch,
        instance_id=command.instance_id,
        principal=command.caller.principal,
        life=command.life,
        number=command.beat,
    )


def _renewed_only(command: ConsumerGroupHeartbeat, decision: Decision) -> int | None:
    """Return the session timeout, if a decision did nothing but answer and renew the session."""
    answers = renewals = 0
    timeout = None
    for effect in decision.effects:
        if isinstance(effect, Answer):
            answers += 1
        elif isinstance(effect, Renew) and effect.member_id == command.member_id:
            renewals, timeout = renewals + 1, effect.session_timeout_ms
        else:
            return None
    return timeout if (answers, renewals) == (1, 1) else None
