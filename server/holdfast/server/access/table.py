"""The table of calls: what each needs, said once; `./dev matrix` holds it against the contract.

A call needs a role on a thing that its request names, or on the cluster. Which principals have the
role is `rights`; who asks is `gate`. A new method of the contract gets a line, or a test fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from holdfast.coordinator.model.access import (
    ADMIN,
    CLUSTER,
    GROUP,
    MEMBER,
    OPERATOR,
    RANKS,
    READER,
    TOPIC,
)
from holdfast.v1 import group_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

How = Literal["whole", "member", "each", "shown", "calls", "anyone"]

WHOLE: Final = "whole"
"""The request names one thing, or the cluster: the call is carried out or refused."""
MEMBERS: Final = "member"
"""The same of a member's call, which travels on streams as well (`rpc.calls` checks it)."""
EACH: Final = "each"
"""The request names several things: each is refused or carried out by itself."""
SHOWN: Final = "shown"
"""The answer leaves out what the caller may not read."""
CALLS: Final = "calls"
"""A stream of calls that have lines of their own: each is checked when it arrives."""
ANYONE: Final = "anyone"
"""Everybody with a certificate of a client: the answer names no group, no topic and no caller."""


class Need(NamedTuple):
    """A role on a kind of things."""

    kind: str
    role: str
    field: str = ""
    """Where the request has the thing's name; "" for the cluster."""

    @property
    def rank(self) -> int:
        """The least rank that is enough."""
        return RANKS[self.role]


class Line(NamedTuple):
    """What one call needs."""

    how: How
    need: Need | None = None
    unnamed: Need | None = None
    """In place of `need`, if the request leaves `need.field` unset."""
    topics: Need | None = None
    """What it needs of each topic beside that; one that lacks it is refused by itself, or what
    would show it is."""


_READ_GROUP: Final = Need(GROUP, READER, "group_id")
_JOIN: Final = Need(GROUP, MEMBER, "group_id")
_RUN_GROUP: Final = Need(GROUP, OPERATOR, "group_id")
_READ_TOPIC: Final = Need(TOPIC, READER)
_RUN_TOPIC: Final = Need(TOPIC, OPERATOR)
CLUSTER_READ: Final = Need(CLUSTER, READER)
_RUN_CLUSTER: Final = Need(CLUSTER, OPERATOR)
_RULE_CLUSTER: Final = Need(CLUSTER, ADMIN)
_MEMBERS_CALL: Final = Line(MEMBERS, _JOIN)

TABLE: Final[Mapping[str, Line]] = {
    "GroupService.JoinGroup": _MEMBERS_CALL,
    "GroupService.SyncGroup": _MEMBERS_CALL,
    "GroupService.Heartbeat": _MEMBERS_CALL,
    "GroupService.HeartbeatStream": Line(CALLS),
    "GroupService.ConsumerGroupHeartbeat": Line(MEMBERS, _JOIN, topics=_READ_TOPIC),
    "GroupService.PrepareAssignment": Line(WHOLE, _JOIN, topics=_READ_TOPIC),
    "GroupService.InstallAssignment": Line(WHOLE, _JOIN, topics=_READ_TOPIC),
    "GroupService.LeaveGroup": _MEMBERS_CALL,
    "GroupService.FindCoordinator": Line(ANYONE),
    "GroupService.Session": Line(CALLS),
    "OffsetService.OffsetCommit": Line(MEMBERS, _JOIN, topics=_READ_TOPIC),
    "OffsetService.OffsetCommitStream": Line(CALLS),
    "OffsetService.OffsetFetch": Line(EACH, _READ_GROUP),
    "OffsetService.OffsetDelete": Line(WHOLE, _RUN_GROUP, topics=_READ_TOPIC),
    "AdminService.DescribeGroups": Line(EACH, _READ_GROUP),
    "AdminService.ConsumerGroupDescribe": Line(EACH, _READ_GROUP, topics=_READ_TOPIC),
    "AdminService.ListGroups": Line(SHOWN, _READ_GROUP),
    "AdminService.DeleteGroups": Line(EACH, _RUN_GROUP),
    "AdminService.RemoveMembers": Line(WHOLE, _RUN_GROUP),
    "AdminService.TriggerRebalance": Line(WHOLE, _RUN_GROUP),
    "AdminService.CreateTopics": Line(EACH, topics=_RUN_TOPIC),
    "AdminService.CreatePartitions": Line(EACH, topics=_RUN_TOPIC),
    "AdminService.DeleteTopics": Line(EACH, topics=_RUN_TOPIC),
    "AdminService.ListTopics": Line(SHOWN, topics=_READ_TOPIC),
    "AdminService.DescribeCluster": Line(ANYONE),
    "AdminService.TransferLeadership": Line(WHOLE, _RUN_CLUSTER),
    "AdminService.AddNode": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.PromoteNode": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.RemoveNode": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.FinishUpgrade": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.ReportBackup": Line(WHOLE, _RUN_CLUSTER),
    "AdminService.DescribeSettings": Line(WHOLE, _READ_GROUP, unnamed=CLUSTER_READ),
    "AdminService.AlterSettings": Line(WHOLE, _RUN_GROUP, unnamed=_RULE_CLUSTER),
    "AdminService.DescribeAcls": Line(SHOWN, _RULE_CLUSTER),
    "AdminService.AlterAcls": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.TestAcl": Line(SHOWN, _RULE_CLUSTER),
    "AdminService.DescribeRevocations": Line(WHOLE, _RULE_CLUSTER),
    "AdminService.AlterRevocations": Line(WHOLE, _RULE_CLUSTER),
    "LogService.ReadEvents": Line(SHOWN, _READ_GROUP),
    "LogService.Watch": Line(SHOWN, _READ_GROUP),
    "LogService.SealLog": Line(WHOLE, _RUN_CLUSTER),
    "BackupService.BeginBackup": Line(WHOLE, _RULE_CLUSTER),
    "BackupService.ReadBackup": Line(WHOLE, _RULE_CLUSTER),
    "BackupService.EndBackup": Line(WHOLE, _RULE_CLUSTER),
}
"""By service and method."""


def line_of(method: str) -> Line:
    """Return the line of `Service.Method`. Raises KeyError if it has none."""
    return TABLE[method]


def need_of(method: str) -> Need:
    """Return what a method needs of the group that it names, or of the cluster."""
    need = TABLE[method].need
    if need is None:
        raise LookupError(f"{method} needs nothing but of topics")
    return need


def topics_of(method: str) -> Need:
    """Return what a method needs of each topic that it names."""
    need = TABLE[method].topics
    if need is None:
        raise LookupError(f"{method} needs nothing of topics")
    return need


def _session_lines() -> Mapping[str, Line]:
    by_method = {name.partition(".")[2]: line for name, line in TABLE.items()}
    fields = group_pb2.SessionCall.DESCRIPTOR.oneofs_by_name["request"].fields
    return {
        field.name: by_method[field.message_type.name.removesuffix("Request")]
        for field in fields
        if field.message_type is not None
    }


SESSION: Final[Mapping[str, Line]] = _session_lines()
"""The lines of a Session stream's calls, by their field: as those of the unary calls."""

READS: Final = frozenset(
    {
        *("OffsetService.OffsetFetch", "LogService.ReadEvents", "LogService.Watch"),
        *("AdminService.DescribeGroups", "AdminService.ListGroups", "AdminService.ListTopics"),
        *("AdminService.ConsumerGroupDescribe", "AdminService.DescribeSettings"),
        *("AdminService.DescribeAcls", "AdminService.TestAcl"),
        *("AdminService.DescribeRevocations", "BackupService.BeginBackup"),
    }
)
"""Calls that show what not everybody may see, and leave nothing on the log: the audit notes those
of administrators."""
