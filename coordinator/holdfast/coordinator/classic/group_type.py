"""The classic protocol's line in the table of group types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.classic import (
    answers,
    check,
    deadlines,
    evolve,
    heartbeat,
    identity,
    join,
    leave,
    parked_calls,
    protocol_votes,
    sync,
    transitions,
    usage,
    view,
)
from holdfast.coordinator.classic.state import ClassicBody, Member, restored
from holdfast.coordinator.classic.transitions import COMPLETING
from holdfast.coordinator.groups.group_type import GroupType
from holdfast.coordinator.model.commands import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TriggerRebalance,
)
from holdfast.coordinator.model.rejections import (
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import HeartbeatReply, SyncReply
from holdfast.coordinator.model.state import EMPTY, STABLE

if TYPE_CHECKING:
    from holdfast.coordinator.classic.state import ClassicGroup
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.groups.group_type import Fetcher
    from holdfast.coordinator.model.commands import CommitOffsets, DeadlineFired
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import CallId, InstanceId, MemberId
    from holdfast.coordinator.model.rejections import Rejection
    from holdfast.coordinator.model.replies import Reply
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.stored_replies import StoredReply
    from holdfast.coordinator.model.volatile import Volatile
    from holdfast.coordinator.structures.pmap import PMap


def _call(draft: Draft, command: JoinGroup | SyncGroup | Heartbeat) -> None:
    match command:
        case JoinGroup():
            join.join(draft, command)
        case SyncGroup():
            sync.sync(draft, command)
        case Heartbeat():
            heartbeat.heartbeat(draft, command)


def _refused(command: JoinGroup | SyncGroup | Heartbeat, error: Rejection) -> Reply:
    match command:
        case JoinGroup(member_id=member_id):
            return answers.refused_join(error, member_id)
        case SyncGroup():
            return SyncReply(error)
        case Heartbeat():
            return HeartbeatReply(error)


def _one_shot(draft: Draft, command: LeaveGroup | TriggerRebalance) -> StoredReply:
    match command:
        case LeaveGroup():
            return leave.leave(draft, command)
        case TriggerRebalance():
            return leave.trigger(draft, command)


def _fired(draft: Draft, command: DeadlineFired) -> None:
    deadlines.fired(draft, command)


def _call_broken(draft: Draft, call: CallId) -> None:
    parked_calls.break_call(draft, call)


def _on_leading(draft: Draft) -> None:
    deadlines.take_over(draft)


def _follow(volatile: Volatile, before: ClassicGroup | None, event: Event) -> Volatile:
    """Update the counts of protocols, instead of counting anew (K-I1)."""
    counts = protocol_votes.after(volatile.support, before, event)
    return volatile if counts is volatile.support else volatile._replace(support=counts)


def _members(group: ClassicGroup) -> PMap[MemberId, Member]:
    return group.body.members


def _holder(group: ClassicGroup, instance_id: InstanceId) -> MemberId | None:
    return group.body.instances.get(instance_id)


def _had_members(group: ClassicGroup) -> bool:
    return group.body.protocol_type is not None


def _heard(draft: Draft, command: CommitOffsets) -> None:
    draft.renew(command.member_id)


def _session_ms(draft: Draft, member_id: MemberId) -> int:
    group: ClassicGroup = draft.group
    return group.body.members[member_id].profile.session_timeout_ms


def _is_empty(group: ClassicGroup) -> bool:
    return group.state == EMPTY


def _may_commit(state: State, group: ClassicGroup, command: CommitOffsets) -> Rejection | None:
    """Say why this caller may not commit to this group now; the order of checks is Kafka's.

    A commit as a static member is of its principal alone: it would also renew its session.
    """
    if command.generation < 0 and group.state == EMPTY:
        return None  # K-C11: the ids are not looked at at all
    if command.generation < 0 and not command.member_id and command.instance_id is None:
        return UnknownMemberId(command.member_id)  # K-J5
    stranger = identity.check(group, command.member_id, command.instance_id)  # K-C8, K-C9
    meant = identity.instance_meant(group, command.member_id, command.instance_id)
    stranger = stranger or identity.of_another(state, group, meant, command.caller.principal)
    if stranger:
        return stranger
    if command.generation != group.generation:
        return IllegalGeneration(command.generation, group.generation)
    return RebalanceInProgress() if group.state == COMPLETING else None


def _may_fetch(_group: ClassicGroup, _fetcher: Fetcher) -> None:
    """Allow every caller: members of this protocol have no epochs to check."""


def _expiry_rule(group: ClassicGroup) -> str:
    """Return the rule; "" while the group rebalances or its topics are unknown (K-J29)."""
    if group.state == EMPTY:
        return "J27" if _had_members(group) else "J30"
    return "J28" if group.state == STABLE and view.tells_topics(group) else ""


CLASSIC: GroupType[Draft] = GroupType(
    name="classic",
    body=ClassicBody,
    member=Member,
    restore=restored,
    heartbeats=(Heartbeat,),
    calls=(JoinGroup, SyncGroup),
    one_shots=(LeaveGroup, TriggerRebalance),
    call=_call,
    refused=_refused,
    one_shot=_one_shot,
    fired=_fired,
    call_broken=_call_broken,
    on_leading=_on_leading,
    follow=_follow,
    target=transitions.target,
    evolve=evolve.evolve,
    own=evolve.own,
    check=check.check,
    check_touched=check.check_touched,
    members=_members,
    holder=_holder,
    had_members=_had_members,
    heard=_heard,
    session_ms=_session_ms,
    weigh_member=usage.of_member,
    growth=usage.growth,
    is_empty=_is_empty,
    may_commit=_may_commit,
    may_fetch=_may_fetch,
    expiry_rule=_expiry_rule,
    tells_topics=view.tells_topics,
    subscribed=view.subscribed,
    names=view.names,
    describe=view.describe,
    describe_member=view.describe_member,
    seniority=view.seniority,
    identify=view.identify,
    held=view.held,
)
