"""The order of a member's heartbeats: which is of the past, and whose number has to be on the log.

A client that numbers its heartbeats says everything with the first one after one that was not
answered (S26). So a new leader, who knows only what is on the log, takes an older heartbeat for a
new one only where that changes nothing (docs/adr/0051). A heartbeat without a number is taken as it
comes, as Kafka takes it.
"""

from __future__ import annotations

from holdfast.coordinator.consumer import holdings
from holdfast.coordinator.consumer.state import JOINING, LEFT, RELEASED, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat
from holdfast.coordinator.model.consumer_events import MemberSubscribed
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import PastHeartbeat
from holdfast.coordinator.model.volatile import HeardBeat


def refusal(draft: Draft, command: ConsumerGroupHeartbeat) -> PastHeartbeat | None:
    """Refuse a heartbeat of the past: nobody waits for its answer.

    A life begins with a join, so nothing else that is said in another one is of this member.
    """
    member = _numbered(draft, command)
    if member is None or is_repeated(draft, command):
        return None
    if member.life != command.life:
        joins = command.member_epoch == JOINING
        return None if joins else PastHeartbeat(command.member_id, command.beat, 0)
    highest = _highest(draft, member)
    if command.beat > highest:
        return None
    return PastHeartbeat(command.member_id, command.beat, highest)


def is_repeated(draft: Draft, command: ConsumerGroupHeartbeat) -> bool:
    """Return whether it is the last heartbeat that was heard, once more: its answer was lost (S14).

    What its member may not say any more, it may not say again either; and who has left for good is
    no member any more.
    """
    member = _numbered(draft, command)
    if member is None or member.life != command.life or command.member_epoch == LEFT:
        return False
    same = command.beat == _highest(draft, member)
    return same and member.released == (command.member_epoch == RELEASED)


def _numbered(draft: Draft, command: ConsumerGroupHeartbeat) -> Member | None:
    """Return the member that speaks, if it has numbered its heartbeats before, and this one."""
    if not command.beat or draft.found is None:
        return None
    member: Member | None = draft.found.body.members.get(command.member_id)
    return member if member is not None and member.life else None


def _highest(draft: Draft, member: Member) -> int:
    """Return the highest number that was heard in the member's life, as far as it is known."""
    heard = draft.volatile.beats.get(member.member_id)
    of_this_life = heard is not None and heard.life == member.life
    return max(member.beat, heard.beat) if heard and of_this_life else member.beat


def hear(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Note the number of a heartbeat that is accepted, and put it on the log where it has to be.

    A join has to be there, or a late goodbye would end it. So has what says a list where numbers
    are missing: one of these may come later, with a list from before.
    """
    if not command.beat:
        return
    member: Member = draft.group.body.members[command.member_id]
    begins = member.life != command.life or command.member_epoch == JOINING
    skipped = command.beat != _highest(draft, member) + 1
    if begins or (skipped and command.owned is not None):
        _record(draft, command, member)
    heard = draft.volatile.beats.set(command.member_id, HeardBeat(command.life, command.beat))
    draft.volatile = draft.volatile._replace(beats=heard)


def advanced(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Put the number on the log of a heartbeat whose list lacks what the member owns after it.

    It did not know its last grant, whose answer was lost. Once it does, this list would free it.
    """
    if not command.beat or command.owned is None:
        return
    member: Member = draft.group.body.members[command.member_id]
    if not holdings.pairs(member.owned) <= holdings.pairs(command.owned):
        _record(draft, command, member)


def _record(draft: Draft, command: ConsumerGroupHeartbeat, member: Member) -> None:
    if (member.life, member.beat) == (command.life, command.beat):
        return  # with an event that the heartbeat has caused
    event = MemberSubscribed(
        member.member_id,
        member.instance_id,
        member.profile,
        joined=False,
        classic=member.classic,
        life=command.life,
        beat=command.beat,
    )
    draft.emit(event, "S26")


def forget(draft: Draft, member_id: MemberId) -> None:
    """Forget what was heard of a member id that is gone."""
    if member_id in draft.volatile.beats:
        beats = draft.volatile.beats.remove(member_id)
        draft.volatile = draft.volatile._replace(beats=beats)
