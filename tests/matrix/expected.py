"""What every call needs, by hand: a second declaration, which the server's table must agree with.

A call without a line here fails the matrix, and so does one whose request nobody has written.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """Which role on what makes a call, and how its refusal looks."""

    kind: str
    role: str
    code: int
    """Kafka's code of a refusal; 0: nothing is refused, and the answer only leaves names out."""


GROUP_CODE, TOPIC_CODE, CLUSTER_CODE = 30, 29, 31
ANYONE: Final = Rule("", "", 0)


def _group(role: str) -> Rule:
    return Rule("group", role, GROUP_CODE)


def _topic(role: str) -> Rule:
    return Rule("topic", role, TOPIC_CODE)


def _cluster(role: str) -> Rule:
    return Rule("cluster", role, CLUSTER_CODE)


RULES: Final[dict[str, Rule]] = {
    "GroupService.JoinGroup": _group("member"),
    "GroupService.SyncGroup": _group("member"),
    "GroupService.Heartbeat": _group("member"),
    "GroupService.HeartbeatStream": _group("member"),
    "GroupService.HeartbeatStream/consumer": _group("member"),
    "GroupService.HeartbeatStream/topic": _topic("reader"),
    "GroupService.ConsumerGroupHeartbeat": _group("member"),
    "GroupService.ConsumerGroupHeartbeat/topic": _topic("reader"),
    "GroupService.PrepareAssignment": _group("member"),
    "GroupService.PrepareAssignment/topic": _topic("reader"),
    "GroupService.InstallAssignment": _group("member"),
    "GroupService.InstallAssignment/topic": _topic("reader"),
    "GroupService.LeaveGroup": _group("member"),
    "GroupService.FindCoordinator": ANYONE,
    "GroupService.Session/join": _group("member"),
    "GroupService.Session/sync": _group("member"),
    "GroupService.Session/heartbeat": _group("member"),
    "GroupService.Session/leave": _group("member"),
    "GroupService.Session/commit": _group("member"),
    "GroupService.Session/consumer_heartbeat": _group("member"),
    "OffsetService.OffsetCommit": _group("member"),
    "OffsetService.OffsetCommit/topic": _topic("reader"),
    "OffsetService.OffsetCommitStream": _group("member"),
    "OffsetService.OffsetFetch": _group("reader"),
    "OffsetService.OffsetDelete": _group("operator"),
    "OffsetService.OffsetDelete/topic": _topic("reader"),
    "AdminService.DescribeGroups": _group("reader"),
    "AdminService.ConsumerGroupDescribe": _group("reader"),
    "AdminService.ConsumerGroupDescribe/topic": _topic("reader"),
    "AdminService.ListGroups": Rule("group", "reader", 0),
    "AdminService.DeleteGroups": _group("operator"),
    "AdminService.RemoveMembers": _group("operator"),
    "AdminService.TriggerRebalance": _group("operator"),
    "AdminService.CreateTopics": _topic("operator"),
    "AdminService.CreatePartitions": _topic("operator"),
    "AdminService.DeleteTopics": _topic("operator"),
    "AdminService.ListTopics": Rule("topic", "reader", 0),
    "AdminService.ListTopics/name": _topic("reader"),
    "AdminService.DescribeCluster": ANYONE,
    "AdminService.TransferLeadership": _cluster("operator"),
    "AdminService.AddNode": _cluster("admin"),
    "AdminService.PromoteNode": _cluster("admin"),
    "AdminService.RemoveNode": _cluster("admin"),
    "AdminService.FinishUpgrade": _cluster("admin"),
    "AdminService.ReportBackup": _cluster("operator"),
    "AdminService.DescribeSettings": _cluster("reader"),
    "AdminService.DescribeSettings/group": _group("reader"),
    "AdminService.AlterSettings": _cluster("admin"),
    "AdminService.AlterSettings/group": _group("operator"),
    "AdminService.DescribeAcls": ANYONE,
    "AdminService.DescribeAcls/other": _cluster("admin"),
    "AdminService.AlterAcls": _cluster("admin"),
    "AdminService.TestAcl": _cluster("admin"),
    "AdminService.DescribeRevocations": _cluster("admin"),
    "AdminService.AlterRevocations": _cluster("admin"),
    "LogService.ReadEvents": Rule("group", "reader", 0),
    "LogService.ReadEvents/group": _group("reader"),
    "LogService.Watch": Rule("group", "reader", 0),
    "LogService.Watch/group": _group("reader"),
    "LogService.SealLog": _cluster("operator"),
    "BackupService.BeginBackup": _cluster("admin"),
    "BackupService.ReadBackup": _cluster("admin"),
    "BackupService.EndBackup": _cluster("admin"),
}
"""By service and method; what follows a slash is a variant of the request."""
