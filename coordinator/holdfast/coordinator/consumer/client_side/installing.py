"""What the chosen member is given, and what it hands in (KIP-848).

The checks of both calls have KIP-848's order: the group, the member, its epoch, the choice. Then a
target is looked at like one of a stranger, and ends in the command of those that the node computes.
A member that makes none says so, and is relieved (ADR 57).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.consumer import usage
from holdfast.coordinator.consumer.client_side import choice, negotiation
from holdfast.coordinator.consumer.client_side.negotiation import Shared
from holdfast.coordinator.consumer.identities import identity
from holdfast.coordinator.consumer.state import ConsumerBody, ConsumerGroup
from holdfast.coordinator.consumer.targets import computing, epochs, topics_digest
from holdfast.coordinator.consumer.targets.reconciliation import subscriptions
from holdfast.coordinator.consumer.targets.subscription import Change
from holdfast.coordinator.groups.draft import Draft
from holdfast.coordinator.groups.sizes import of_target
from holdfast.coordinator.model.commands import InstallAssignment
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.described import PreparedAssignment, PreparedMember
from holdfast.coordinator.model.effects import InstallTarget
from holdfast.coordinator.model.ids import MemberId, Principal, TopicName
from holdfast.coordinator.model.rejections import (
    GroupIdNotFound,
    InvalidRequest,
    NotChosen,
    Rejection,
    StaleAssignment,
    StaleMemberEpoch,
    UnknownMemberId,
)
from holdfast.coordinator.model.replies import DoneReply
from holdfast.coordinator.model.state import State


def refusal(
    state: State, group: ConsumerGroup, member_id: MemberId, epoch: int, principal: Principal
) -> Rejection | None:
    """Say why a caller may not compute the target of a group that there is."""
    body = group.body
    member = body.members.get(member_id)
    if member is None:
        return UnknownMemberId(member_id)
    error = identity.of_another(state, group, member.instance_id, principal)
    if error is not None:
        return error
    if member.epoch != epoch:
        return StaleMemberEpoch(epoch, member.epoch)
    if body.asked is None or body.asked.member_id != member_id or _shared(body) is None:
        return NotChosen(member_id, "" if body.asked is None else body.asked.member_id)
    return None


def _shared(body: ConsumerBody) -> Shared | None:
    """Return the assignor that was asked for, if it still is the one that all members share."""
    found = negotiation.shared(body)
    return found if found and body.asked and found.name == body.asked.assignor else None


def prepare(
    state: State, group: ConsumerGroup, member_id: MemberId, epoch: int, principal: Principal
) -> PreparedAssignment | Rejection:
    """Return what the assignor of the chosen member needs: the group as it is."""
    error = refusal(state, group, member_id, epoch, principal)
    shared = _shared(group.body)
    if error is not None or shared is None:
        return error or NotChosen(member_id, "")
    body = group.body
    sizes = topics_digest.sizes(body, state.topics)
    return PreparedAssignment(
        group.generation,
        shared.name,
        shared.version,
        tuple(_prepared(body, shared.name, sizes)),
        tuple(sorted(sizes.items())),
        frozenset(topics_digest.subscribed(body)),
    )


def _prepared(
    body: ConsumerBody, assignor: str, sizes: Mapping[TopicName, int]
) -> Iterator[PreparedMember]:
    members = sorted(body.members.values(), key=lambda member: member.joined_seq)
    listed: dict[frozenset[TopicName], tuple[TopicName, ...]] = {}  # most want the same
    for member, topics in subscriptions(body, members):
        if topics not in listed:
            listed[topics] = tuple(sorted(topics.intersection(sizes)))
        said = member.profile.client_assignor(assignor)
        target = body.targets.get(member.member_id)
        if said is not None:
            yield PreparedMember(
                *(member.member_id, member.epoch, member.instance_id, member.profile.rack_id),
                listed[topics],
                said,
                () if target is None else target.partitions,
            )


def install(draft: Draft, command: InstallAssignment) -> DoneReply:
    """Store the target of the chosen member, or ask another one; or say why not."""
    group: ConsumerGroup | None = draft.found
    if group is None:
        return DoneReply(GroupIdNotFound(command.group_id))
    draft.close()  # what members said before comes before
    principal = command.caller.principal
    error = refusal(draft.state, draft.group, command.member_id, command.member_epoch, principal)
    return DoneReply(error or _install(draft, command))


def _install(draft: Draft, command: InstallAssignment) -> Rejection | None:
    epochs.raise_for(draft, Change())  # nobody may have looked at the topics since
    group: ConsumerGroup = draft.group
    error = _of_another_epoch(group, command)
    if error is not None:
        return error
    if command.problem:
        choice.relieve(draft, command.problem)
        return None
    asked, problem = group.body.asked, _problem(draft, group.body, command.targets)
    if problem and asked is not None and asked.overtaken:
        return StaleAssignment(command.epoch, group.generation)
    if problem:
        return InvalidRequest("members", problem)
    assignor = "" if asked is None else asked.assignor
    target = InstallTarget(
        command.group_id, command.epoch, assignor, command.targets, command.member_id
    )
    computing.accept(draft, target)
    return None


def _of_another_epoch(group: ConsumerGroup, command: InstallAssignment) -> Rejection | None:
    """Say what is wrong with the group epoch; who got no picture of the group knows of none."""
    if command.problem and not command.epoch:
        return None
    if command.epoch < group.generation:
        return StaleAssignment(command.epoch, group.generation)
    if command.epoch > group.generation:
        problem = f"the group is at {group.generation}, which PrepareAssignment tells"
        return InvalidRequest("group_epoch", problem)
    return None


def _problem(draft: Draft, body: ConsumerBody, targets: Sequence[MemberTarget]) -> str:
    """Say what a member's target must not have; "": all is well."""
    sizes = topics_digest.sizes(body, draft.state.topics)
    untrue = computing.untruth(body, sizes, targets) or _unreadable(body, targets)
    if untrue:
        return untrue
    size, most = (
        sum(map(of_target, (*targets, *_emptied(body, targets)))),
        usage.target_pool(settings.of(draft.state, draft.group_id)),
    )
    if size <= most:
        return ""
    share = f"group.max_size x (group.assignment_bytes_max + {usage.MEMBER_IN_POOL})"
    return f"the target has {size} bytes with its metadata, allowed are {most} ({share})"


def _emptied(body: ConsumerBody, targets: Sequence[MemberTarget]) -> Iterator[MemberTarget]:
    """Yield what is written of members that are to own nothing any more, and are not named."""
    named = {each.member_id for each in targets}
    yield from (MemberTarget(each, ()) for each in body.targets if each not in named)


def _unreadable(body: ConsumerBody, targets: Sequence[MemberTarget]) -> str:
    """Say whose metadata is of a version that it does not understand."""
    name = "" if body.asked is None else body.asked.assignor
    for each in targets:
        known = body.members[each.member_id].profile.client_assignor(name)
        says = each.metadata or each.version
        if says and known is not None and not known.understands(each.version):
            return f"member {each.member_id!r} does not understand version {each.version}"
    return ""
