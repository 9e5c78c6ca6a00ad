"""Operators' changes: requests are translated to commands, and replies to responses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.coordinator.model import commands as c
from holdfast.coordinator.model import replies
from holdfast.coordinator.model.events import SettingChange, TopicSize
from holdfast.coordinator.model.rejections import (
    FencedInstanceId,
    GroupAuthorizationFailed,
    TopicInUse,
    UnknownMemberId,
)
from holdfast.coordinator.model.subscriptions import UNSURVEYED, Survey
from holdfast.coordinator.model.text import readable
from holdfast.server.rpc.errors import malformed
from holdfast.server.translate import limits
from holdfast.server.translate.refusals import code_of, sentence
from holdfast.server.translate.responses import extras
from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import extras_pb2 as x

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from holdfast.coordinator.model.rejections import Rejection


def remove_members(
    request: a.RemoveMembersRequest, caller: c.Caller, members: tuple[c.LeavingMember, ...]
) -> c.LeaveGroup:
    """Translate RemoveMembers to an operator's leave (KIP-345) of members, a prefix or all."""
    reason = limits.text("reason", request.reason)
    prefix = limits.text("instance_prefix", request.instance_prefix)
    if request.HasField("instance_prefix") and not prefix:
        raise malformed("instance_prefix", "is set but empty; say `all` to remove everyone")
    if sum((bool(request.members), request.all, bool(prefix))) > 1:
        raise malformed("members", "must be alone: name members, or a prefix, or remove all")
    return c.LeaveGroup(
        caller,
        request.group_id,
        members,
        operator=True,
        everyone=request.all,
        prefix=prefix,
        reason=reason,
    )


def whom(request: a.RemoveMembersRequest) -> Iterator[c.LeavingMember]:
    """Return an iterator over the members that a removal names: there may be many."""
    reason = limits.text("reason", request.reason)
    return (_removed(member, reason) for member in request.members)


def _removed(member: a.MemberToRemove, reason: str) -> c.LeavingMember:
    instance = member.group_instance_id if member.HasField("group_instance_id") else None
    if instance is not None:
        limits.text("members.group_instance_id", instance)
    return c.LeavingMember(limits.text("members.member_id", member.member_id), instance, reason)


def nameless(request: a.RemoveMembersRequest) -> int:
    """Count the entries that name nobody: neither a member id nor an instance id."""
    return sum(not each.member_id and not each.group_instance_id for each in request.members)


def removed(
    reply: replies.LeaveReply, members: Iterable[a.RemovedMember]
) -> a.RemoveMembersResponse:
    """Make the response of RemoveMembers, members in the order of the request (K-G16)."""
    return a.RemoveMembersResponse(
        error_code=code_of(reply.error), members=members, holdfast=extras(reply.error)
    )


def removed_member(result: replies.MemberResult) -> a.RemovedMember:
    """Make the result for one member of RemoveMembers."""
    return a.RemovedMember(
        member_id=result.member_id,
        group_instance_id=result.instance_id,
        error_code=code_of(result.error),
        error_message=_removal_message(result),
    )


def _removal_message(result: replies.MemberResult) -> str | None:
    """Word a refusal for an operator; some sentences of `refusals` address the member itself."""
    if result.error is None:
        return None
    if isinstance(result.error, FencedInstanceId):
        return (
            f"the instance id is held by another member, {result.error.holder!r}. Name the "
            "instance id alone to remove whoever holds it"
        )
    if not isinstance(result.error, UnknownMemberId):
        return sentence(result.error)
    if not result.member_id and not result.instance_id:
        return "the entry names nobody: set its member id or its instance id"
    return "the group has no such member now: it has left, expired, or was removed before"


def trigger_rebalance(request: a.TriggerRebalanceRequest, caller: c.Caller) -> c.TriggerRebalance:
    """Translate TriggerRebalance to its command."""
    reason = limits.text("reason", request.reason) or "an operator asked for it"
    return c.TriggerRebalance(caller, request.group_id, reason)


def triggered(reply: replies.DoneReply) -> a.TriggerRebalanceResponse:
    """Make the response of TriggerRebalance."""
    return a.TriggerRebalanceResponse(error_code=code_of(reply.error), holdfast=extras(reply.error))


def deleted_group(
    name: str, error: Rejection | None, say: Callable[[str], str]
) -> a.DeletableGroupResult:
    """Make the result for one group of DeleteGroups; `say`: words that its caller may not."""
    made = a.DeletableGroupResult(group_id=name, error_code=code_of(error))
    if error is not None:
        made.holdfast.message = _of_deletion(name, error, say)
    return made


def of_deleted_groups(
    results: Iterable[replies.NamedResult], say: Callable[[str], str]
) -> x.ResponseExtras:
    """Make Holdfast's part of the response of DeleteGroups: the first refusal; `say` as above."""
    for each in results:
        if each.error is not None:
            return x.ResponseExtras(message=_of_deletion(each.name, each.error, say))
    return x.ResponseExtras()


def _of_deletion(name: str, error: Rejection, say: Callable[[str], str]) -> str:
    return readable(say(name)) if isinstance(error, GroupAuthorizationFailed) else sentence(error)


def create_topics(
    request: a.CreateTopicsRequest, caller: c.Caller, forbidden: frozenset[str] = frozenset()
) -> c.CreateTopics:
    """Translate CreateTopics to its command."""
    sizes = (
        TopicSize(limits.text("topics.name", t.name), t.num_partitions) for t in request.topics
    )
    return c.CreateTopics(caller, tuple(sizes), forbidden)


def created_topics(
    reply: replies.NamedReply, request: a.CreateTopicsRequest
) -> a.CreateTopicsResponse:
    """Make the response of CreateTopics."""
    asked = {topic.name: topic.num_partitions for topic in request.topics}
    return a.CreateTopicsResponse(
        topics=[
            a.CreatableTopicResult(
                name=r.name,
                error_code=code_of(r.error),
                error_message=_message(r.error),
                num_partitions=asked.get(r.name, -1) if r.error is None else -1,
            )
            for r in reply.results
        ],
        holdfast=extras(first_error(reply.results)),
    )


def create_partitions(
    request: a.CreatePartitionsRequest, caller: c.Caller, forbidden: frozenset[str] = frozenset()
) -> c.CreatePartitions:
    """Translate CreatePartitions to its command."""
    sizes = (TopicSize(limits.text("topics.name", t.name), t.count) for t in request.topics)
    return c.CreatePartitions(caller, tuple(sizes), forbidden)


def created_partitions(reply: replies.NamedReply) -> a.CreatePartitionsResponse:
    """Make the response of CreatePartitions."""
    return a.CreatePartitionsResponse(
        results=[
            a.CreatePartitionsTopicResult(
                name=r.name, error_code=code_of(r.error), error_message=_message(r.error)
            )
            for r in reply.results
        ],
        holdfast=extras(first_error(reply.results)),
    )


def topics_to_delete(request: a.DeleteTopicsRequest) -> tuple[str, ...]:
    """Return the topics that DeleteTopics names."""
    return tuple(limits.text("topics.name", topic.name) for topic in request.topics)


def delete_topics(
    request: a.DeleteTopicsRequest,
    caller: c.Caller,
    survey: Survey = UNSURVEYED,
    forbidden: frozenset[str] = frozenset(),
) -> c.DeleteTopics:
    """Translate DeleteTopics to its command, with the subscribers that were found before."""
    force = request.holdfast.force
    return c.DeleteTopics(caller, topics_to_delete(request), force, survey, forbidden)


def deleted_topics(
    reply: replies.NamedReply, sees: Callable[[str], bool]
) -> a.DeleteTopicsResponse:
    """Make the response of DeleteTopics; `sees`: whether the caller may be told of a group."""
    reply = replies.NamedReply(tuple(_without_groups(each, sees) for each in reply.results))
    return a.DeleteTopicsResponse(
        responses=[
            a.DeletableTopicResult(
                name=r.name, error_code=code_of(r.error), error_message=_message(r.error)
            )
            for r in reply.results
        ],
        holdfast=extras(first_error(reply.results)),
    )


def _without_groups(
    result: replies.NamedResult, sees: Callable[[str], bool]
) -> replies.NamedResult:
    """Name only groups that the caller may see; the others are counted."""
    error = result.error
    if not isinstance(error, TopicInUse):
        return result
    shown = tuple(group_id for group_id in error.group_ids if sees(group_id))
    return replies.NamedResult(result.name, replace(error, group_ids=shown))


def check_scope(request: a.DescribeSettingsRequest | a.AlterSettingsRequest) -> None:
    """Raise CallFailed for a group without a name: it would be read as the cluster.

    Who may touch all groups need not be one who may touch the cluster.
    """
    if request.HasField("group_id") and not request.group_id:
        raise malformed("group_id", "is set but empty; name a group, or leave it out")


def alter_settings(request: a.AlterSettingsRequest, caller: c.Caller) -> c.AlterSettings:
    """Translate AlterSettings, of the cluster or of one group, to its command."""
    changes = (
        SettingChange(
            limits.text("settings.name", s.name), s.value if s.HasField("value") else None
        )
        for s in request.settings
    )
    check_scope(request)
    return c.AlterSettings(caller, request.group_id, tuple(changes))


def altered_settings(reply: replies.NamedReply) -> a.AlterSettingsResponse:
    """Make the response of AlterSettings: it is all or nothing, so one error is the call's, too."""
    error = first_error(reply.results)
    return a.AlterSettingsResponse(
        error_code=code_of(error),
        settings=[
            a.AlteredSetting(
                name=r.name, error_code=code_of(r.error), error_message=_message(r.error)
            )
            for r in reply.results
        ],
        holdfast=extras(error),
    )


def finished_upgrade(reply: replies.DoneReply, level: int) -> a.FinishUpgradeResponse:
    """Make the response of FinishUpgrade; `level` is in force now."""
    return a.FinishUpgradeResponse(
        error_code=code_of(reply.error), level=level, holdfast=extras(reply.error)
    )


def reported_backup(reply: replies.DoneReply, index: int) -> a.ReportBackupResponse:
    """Make the response of ReportBackup; `index` is the furthest that was reported."""
    return a.ReportBackupResponse(
        error_code=code_of(reply.error), index=index, holdfast=extras(reply.error)
    )


def first_error(results: Iterable[replies.NamedResult]) -> Rejection | None:
    """Return the first refusal of a call over several names; None if there is none."""
    return next((r.error for r in results if r.error is not None), None)


def _message(error: Rejection | None) -> str | None:
    return None if error is None else sentence(error)
