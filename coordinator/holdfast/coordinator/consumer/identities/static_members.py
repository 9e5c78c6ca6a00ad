"""Static members: who may take an instance, its swap, and its place kept (K-N1 to K-N23, K-H4).

A member id never changes its instance id, so an identity has one life.
"""

from __future__ import annotations

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import answers, sessions
from holdfast.coordinator.consumer.identities import identity, takeover
from holdfast.coordinator.consumer.state import ConsumerGroup, Member
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.model.commands import ConsumerGroupHeartbeat, JoinGroup
from holdfast.coordinator.model.events import InstanceReleased, StaticMemberReplaced
from holdfast.coordinator.model.ids import MemberId, RequestId
from holdfast.coordinator.model.member_profile import MemberProfile
from holdfast.coordinator.model.rejections import (
    GroupMaxSizeReached,
    InvalidRequest,
    Rejection,
    UnreleasedInstanceId,
)
from holdfast.coordinator.model.volatile import REBALANCE, SYNC, DeadlineKey


def may_join(draft: Draft, command: ConsumerGroupHeartbeat) -> Rejection | None:
    """Say why a caller may not join, or join again, with these ids."""
    group: ConsumerGroup | None = draft.found
    if group is None:
        return None
    known = group.body.members.get(command.member_id)
    holder = holder_of(group, command)
    if known is not None and command.instance_id not in {None, known.instance_id}:
        problem = f"member {command.member_id!r} is {known.instance_id!r}, and stays it"
        return InvalidRequest("instance_id", problem)  # K-H4
    if holder is not None:  # a full group takes an instance that returns: K-N20, K-N21
        principal = command.caller.principal
        stranger = identity.of_another(draft.state, group, command.instance_id, principal)
        return stranger or takeover.may_take(draft, command, holder)
    return no_room(draft, command)  # K-M8, K-N22


def kept_ms(draft: Draft, error: Rejection) -> int:
    """Return how long a process that is not heard has an instance, if that is why one is refused.

    Whoever was refused may wait for so long: who still has the place then, lives (K-N11).
    """
    if not isinstance(error, UnreleasedInstanceId):
        return 0
    return settings.of(draft.state, draft.group_id).consumer.session_timeout_ms


def no_room(
    draft: Draft, command: ConsumerGroupHeartbeat | JoinGroup
) -> GroupMaxSizeReached | None:
    """Refuse a caller that is neither member nor instance of a group that is full."""
    group: ConsumerGroup = draft.group
    if command.member_id in group.body.members or holder_of(group, command) is not None:
        return None
    most = settings.of(draft.state, draft.group_id).consumer.max_size
    if len(group.body.members) < most:
        return None
    return GroupMaxSizeReached(most, "group.consumer_max_size")


def holder_of(group: ConsumerGroup, command: ConsumerGroupHeartbeat | JoinGroup) -> Member | None:
    """Return the member that holds the instance that the caller names."""
    held = group.body.instances.get(command.instance_id or "")
    return None if held is None else group.body.members[held]


def swap(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Put a new process into the place of an older one, if the caller is one (K-N6, K-Q4).

    A process that returns with its own id (K-N7) is the member that it was.
    """
    old = holder_of(draft.group, command)
    if old is None or old.member_id == command.member_id:
        return
    timeout_ms = command.rebalance_timeout_ms
    profile = MemberProfile(
        command.caller.client_id,
        command.caller.client_host,
        0,
        old.profile.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
        (),
    )
    replace(draft, old, command.member_id, profile, command.caller.request_id, "N6")


def replace(
    draft: Draft,
    old: Member,
    new_id: MemberId,
    profile: MemberProfile,
    request_id: RequestId,
    rule: str,
) -> None:
    """Fence the old id of an instance and bind the new one, in one event."""
    gone_ms = _predecessor_ms(draft, old)
    instance_id = str(old.instance_id)
    event = StaticMemberReplaced(instance_id, old.member_id, new_id, profile, request_id, gone_ms)
    draft.emit(event, rule)
    sessions.forget(draft, old.member_id)


def _predecessor_ms(draft: Draft, old: Member) -> int:
    """Return how long an older holder may still act (S12): the last one, or those before it.

    The time of those before it runs from when they went, which the body knows.
    """
    had = old.owned or old.revoking
    own_ms = 0 if old.released or not had else sessions.timeout_ms(draft, old)
    rest_ms = draft.group.body.predecessors_until_ms - draft.state.log_time_ms
    return max(own_ms, rest_ms if old.predecessor_ms else 0, 0)


def release(draft: Draft, command: ConsumerGroupHeartbeat) -> None:
    """Keep the place of a static member whose process stops (K-N2).

    Its session is not started over: it ends when it would have ended (K-N3). If it says for how
    long it will be away, its place is kept so long from now on.
    """
    member: Member = draft.group.body.members[command.member_id]
    if not member.released:
        most_ms = settings.of(draft.state, draft.group_id).max_session_timeout_ms
        absence_ms = min(command.absence_ms, most_ms)
        event = InstanceReleased(
            str(member.instance_id), member.member_id, command.beat, absence_ms
        )
        draft.emit(event, "N2")
        wait_no_more(draft, member.member_id)
        if absence_ms:
            draft.arm_session(member.member_id)
    draft.answer(command.caller.call, answers.gone(command))


def wait_no_more(draft: Draft, member_id: MemberId) -> None:
    """Stop waiting for what a member owes, since its process has stopped (K-N23)."""
    draft.cancel(DeadlineKey(REBALANCE, member_id))
    draft.cancel(DeadlineKey(SYNC, member_id))
