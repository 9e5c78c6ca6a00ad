"""The heartbeat protocol's line in the table of group types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.consumer import (
    answers,
    check,
    deadlines,
    evolve,
    heartbeat,
    leave,
    motion,
    offsets,
    sessions,
    transitions,
    usage,
    view,
)
from holdfast.coordinator.consumer.client_side import installing
from holdfast.coordinator.consumer.mixed import classic_calls
from holdfast.coordinator.consumer.state import (
    CONSUMER,
    FIRST_EPOCH,
    ConsumerBody,
    Member,
    restored,
)
from holdfast.coordinator.consumer.targets import computing, regexes
from holdfast.coordinator.groups.group_type import Beside, GroupType
from holdfast.coordinator.model.commands import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    InstallAssignment,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    TriggerRebalance,
)
from holdfast.coordinator.model.consumer_events import (
    GroupConverted,
    MemberTarget,
    ResolvedRegex,
)
from holdfast.coordinator.model.effects import InstallRegexes, InstallTarget
from holdfast.coordinator.model.rejections import GroupIdNotFound, Rejection

if TYPE_CHECKING:
    from holdfast.coordinator.consumer.state import ConsumerGroup
    from holdfast.coordinator.groups.draft import Draft
    from holdfast.coordinator.model.commands import CommitOffsets
    from holdfast.coordinator.model.events import Event
    from holdfast.coordinator.model.ids import CallId, InstanceId, MemberId
    from holdfast.coordinator.model.replies import Reply
    from holdfast.coordinator.model.stored_replies import StoredReply
    from holdfast.coordinator.model.volatile import Volatile
    from holdfast.coordinator.structures.pmap import PMap


def _call(
    draft: Draft, command: ConsumerGroupHeartbeat | JoinGroup | SyncGroup | Heartbeat
) -> None:
    if isinstance(command, ConsumerGroupHeartbeat):
        heartbeat.heartbeat(draft, command)
    else:
        classic_calls.answer(draft, command)


def _refused(
    command: ConsumerGroupHeartbeat | JoinGroup | SyncGroup | Heartbeat, error: Rejection
) -> Reply:
    if isinstance(command, ConsumerGroupHeartbeat):
        return answers.refused(error)
    return classic_calls.refused(command, error)


def _misplaced(group: ConsumerGroup, _command: object) -> Rejection:
    """Say that no group of the heartbeat protocol has this id (K-M30)."""
    return GroupIdNotFound(group.group_id)


def _one_shot(
    draft: Draft, command: LeaveGroup | TriggerRebalance | InstallAssignment
) -> StoredReply:
    match command:
        case InstallAssignment():
            return installing.install(draft, command)
        case LeaveGroup():
            return leave.leave(draft, command)
        case TriggerRebalance():
            return leave.trigger(draft, command)


def _install(draft: Draft, command: InstallRegexes | InstallTarget) -> None:
    if isinstance(command, InstallRegexes):
        regexes.install(draft, command)
    else:
        computing.install(draft, command)


def _call_broken(_draft: Draft, _call: CallId) -> None:
    """Do nothing: no call of this protocol is parked."""


def _follow(volatile: Volatile, _before: ConsumerGroup | None, event: Event) -> Volatile:
    """Forget what is computed for a group that goes on under the other protocol."""
    if isinstance(event, GroupConverted):
        return volatile._replace(target_work=None)
    return volatile


def _members(group: ConsumerGroup) -> PMap[MemberId, Member]:
    return group.body.members


def _targets(group: ConsumerGroup) -> PMap[MemberId, MemberTarget]:
    return group.body.targets


def _regexes(group: ConsumerGroup) -> PMap[str, ResolvedRegex]:
    return group.body.regexes


def _holder(group: ConsumerGroup, instance_id: InstanceId) -> MemberId | None:
    return group.body.instances.get(instance_id)


def _had_members(_group: ConsumerGroup) -> bool:
    """Return False, so that offsets age by their commit whatever became of members (K-J31)."""
    return False


def _heard(_draft: Draft, _command: CommitOffsets) -> None:
    """Do nothing: here only a heartbeat is a sign of life."""


def _session_ms(draft: Draft, member_id: MemberId) -> int:
    return sessions.timeout_ms(draft, draft.group.body.members[member_id])


def _is_empty(group: ConsumerGroup) -> bool:
    return not group.body.members


def _tells_topics(_group: ConsumerGroup) -> bool:
    return True


def _expiry_rule(_group: ConsumerGroup) -> str:
    return "J31"


CONSUMER_TYPE: GroupType[Draft] = GroupType(
    name=CONSUMER,
    body=ConsumerBody,
    member=Member,
    restore=restored,
    heartbeats=(Heartbeat,),
    calls=(ConsumerGroupHeartbeat, JoinGroup, SyncGroup),
    one_shots=(LeaveGroup, TriggerRebalance, InstallAssignment),
    call=_call,
    refused=_refused,
    one_shot=_one_shot,
    fired=deadlines.fired,
    call_broken=_call_broken,
    on_leading=deadlines.take_over,
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
    may_commit=offsets.may_commit,
    may_fetch=offsets.may_fetch,
    expiry_rule=_expiry_rule,
    tells_topics=_tells_topics,
    subscribed=view.subscribed,
    names=view.names,
    describe=view.describe,
    describe_member=None,
    seniority=view.seniority,
    identify=view.identify,
    held=view.held,
    first_generation=FIRST_EPOCH,
    derived=transitions.derived,
    beside=(
        Beside(MemberTarget, "y", "consumer_target", _targets),
        Beside(ResolvedRegex, "e", "consumer_regex", _regexes),
    ),
    misplaced=_misplaced,
    install=_install,
    describe_whole=view.describe_whole,
    prepare=installing.prepare,
    regex_users=view.regex_users,
    rests=view.rests,
    has_epochs=True,
    meant=view.meant,
    target_due_ms=motion.target_due_ms,
    move=motion.move,
)
