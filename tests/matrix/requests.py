"""A request of every call, about one name, that does no harm where it is allowed.

Each asks for something that the service refuses or answers in another way for another reason, so
that the next cell of the matrix finds the world as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.v1 import admin_pb2 as a
from holdfast.v1 import backup_pb2 as b
from holdfast.v1 import events_pb2 as ev
from holdfast.v1 import extras_pb2 as x
from holdfast.v1 import group_pb2 as g
from holdfast.v1 import log_pb2 as lg
from holdfast.v1 import offset_pb2 as o
from matrix.world import WANTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

OWN_GROUP, OWN_TOPIC = "own-g", "own-t"
"""Where a request names two things, the other one is always the caller's."""


def _join(name: str) -> g.JoinGroupRequest:
    """A join with a session timeout that no group takes."""
    return g.JoinGroupRequest(group_id=name, session_timeout_ms=1, rebalance_timeout_ms=1)


def _sync(name: str) -> g.SyncGroupRequest:
    return g.SyncGroupRequest(group_id=name, generation_id=1, member_id="nobody")


def _beat(name: str) -> g.HeartbeatRequest:
    return g.HeartbeatRequest(group_id=name, generation_id=1, member_id="nobody")


def _consumer_beat(name: str, topic: str = "") -> g.ConsumerGroupHeartbeatRequest:
    """A heartbeat of a member that the group does not have."""
    beat = g.ConsumerGroupHeartbeatRequest(group_id=name, member_id="nobody", member_epoch=9)
    if topic:
        beat.subscribed_topic_names.names.append(topic)
    return beat


def _prepare(name: str, member_id: str = "nobody") -> g.PrepareAssignmentRequest:
    """What an assignor needs; `m` is the chosen member of the groups that want a topic."""
    return g.PrepareAssignmentRequest(group_id=name, member_id=member_id)


def _install(name: str, topic: str = OWN_TOPIC) -> g.InstallAssignmentRequest:
    """A target of a member that the group does not have."""
    places = [g.ConsumerGroupTopicPartitions(topic=topic, partitions=[0])]
    members = [g.InstallAssignmentRequestMember(member_id="m", topic_partitions=places)]
    return g.InstallAssignmentRequest(group_id=name, member_id="nobody", members=members)


def _leave(name: str) -> g.LeaveGroupRequest:
    members = [g.LeaveGroupRequestMember(member_id="nobody")]
    return g.LeaveGroupRequest(group_id=name, members=members)


def _commit(name: str, topic: str = OWN_TOPIC) -> o.OffsetCommitRequest:
    """A commit of a member that the group does not have."""
    part = o.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [o.OffsetCommitRequestTopic(name=topic, partitions=[part])]
    return o.OffsetCommitRequest(
        group_id=name, generation_id_or_member_epoch=9, member_id="nobody", topics=topics
    )


def _delete_offsets(name: str, topic: str = OWN_TOPIC) -> o.OffsetDeleteRequest:
    part = o.OffsetDeleteRequestPartition(partition_index=9)
    topics = [o.OffsetDeleteRequestTopic(name=topic, partitions=[part])]
    return o.OffsetDeleteRequest(group_id=name, topics=topics)


def _session(field: str, request: Message) -> g.SessionRequest:
    call = g.SessionCall(number=1)
    getattr(call, field).CopyFrom(request)
    return g.SessionRequest(calls=[call])


def _setting(group: str | None) -> a.AlterSettingsRequest:
    setting = a.SettingToAlter(name="no.such.setting", value="1")
    return a.AlterSettingsRequest(settings=[setting], group_id=group)


REQUESTS: Final[dict[str, Callable[[str], Any]]] = {
    "GroupService.JoinGroup": _join,
    "GroupService.SyncGroup": _sync,
    "GroupService.Heartbeat": _beat,
    "GroupService.HeartbeatStream": lambda name: g.HeartbeatBatch(requests=[_beat(name)]),
    "GroupService.HeartbeatStream/consumer": lambda name: g.HeartbeatBatch(
        consumer_requests=[_consumer_beat(name)]
    ),
    "GroupService.HeartbeatStream/topic": lambda name: g.HeartbeatBatch(
        consumer_requests=[_consumer_beat(OWN_GROUP, name)]
    ),
    "GroupService.ConsumerGroupHeartbeat": _consumer_beat,
    "GroupService.ConsumerGroupHeartbeat/topic": lambda name: _consumer_beat(OWN_GROUP, name),
    "GroupService.PrepareAssignment": _prepare,
    "GroupService.PrepareAssignment/topic": lambda name: _prepare(f"{WANTS}{name}", "m"),
    "GroupService.InstallAssignment": _install,
    "GroupService.InstallAssignment/topic": lambda name: _install(OWN_GROUP, name),
    "GroupService.LeaveGroup": _leave,
    "GroupService.FindCoordinator": lambda name: g.FindCoordinatorRequest(coordinator_keys=[name]),
    "GroupService.Session/join": lambda name: _session("join", _join(name)),
    "GroupService.Session/sync": lambda name: _session("sync", _sync(name)),
    "GroupService.Session/heartbeat": lambda name: _session("heartbeat", _beat(name)),
    "GroupService.Session/leave": lambda name: _session("leave", _leave(name)),
    "GroupService.Session/commit": lambda name: _session("commit", _commit(name)),
    "GroupService.Session/consumer_heartbeat": lambda name: _session(
        "consumer_heartbeat", _consumer_beat(name)
    ),
    "OffsetService.OffsetCommit": _commit,
    "OffsetService.OffsetCommit/topic": lambda name: _commit(OWN_GROUP, name),
    "OffsetService.OffsetCommitStream": _commit,
    "OffsetService.OffsetFetch": lambda name: o.OffsetFetchRequest(
        groups=[o.OffsetFetchRequestGroup(group_id=name)]
    ),
    "OffsetService.OffsetDelete": _delete_offsets,
    "OffsetService.OffsetDelete/topic": lambda name: _delete_offsets(OWN_GROUP, name),
    "AdminService.DescribeGroups": lambda name: a.DescribeGroupsRequest(groups=[name]),
    "AdminService.ConsumerGroupDescribe": lambda name: a.ConsumerGroupDescribeRequest(
        group_ids=[name]
    ),
    "AdminService.ConsumerGroupDescribe/topic": lambda name: a.ConsumerGroupDescribeRequest(
        group_ids=[f"{WANTS}{name}"]
    ),
    "AdminService.ListGroups": lambda _: a.ListGroupsRequest(),
    "AdminService.DeleteGroups": lambda name: a.DeleteGroupsRequest(groups_names=[name]),
    "AdminService.RemoveMembers": lambda name: a.RemoveMembersRequest(
        group_id=name, members=[a.MemberToRemove(member_id="nobody")]
    ),
    "AdminService.TriggerRebalance": lambda name: a.TriggerRebalanceRequest(group_id=name),
    "AdminService.CreateTopics": lambda name: a.CreateTopicsRequest(
        topics=[a.CreatableTopic(name=name, num_partitions=0)]
    ),
    "AdminService.CreatePartitions": lambda name: a.CreatePartitionsRequest(
        topics=[a.CreatePartitionsTopic(name=name, count=1)]
    ),
    "AdminService.DeleteTopics": lambda name: a.DeleteTopicsRequest(
        topics=[a.DeleteTopicState(name=name), a.DeleteTopicState(name=name)]
    ),
    "AdminService.ListTopics": lambda _: a.ListTopicsRequest(),
    "AdminService.ListTopics/name": lambda name: a.ListTopicsRequest(names=[name]),
    "AdminService.DescribeCluster": lambda _: a.DescribeClusterRequest(),
    "AdminService.TransferLeadership": lambda _: a.TransferLeadershipRequest(node="no-such-node"),
    "AdminService.AddNode": lambda _: a.AddNodeRequest(
        name="node-2", client_address="127.0.0.1:1", peer_address="127.0.0.1:2"
    ),
    "AdminService.PromoteNode": lambda _: a.PromoteNodeRequest(name="no-such-node"),
    "AdminService.RemoveNode": lambda _: a.RemoveNodeRequest(name="no-such-node"),
    "AdminService.FinishUpgrade": lambda _: a.FinishUpgradeRequest(),
    "AdminService.ReportBackup": lambda _: a.ReportBackupRequest(cluster_id="no-such-cluster"),
    "AdminService.DescribeSettings": lambda _: a.DescribeSettingsRequest(),
    "AdminService.DescribeSettings/group": lambda name: a.DescribeSettingsRequest(group_id=name),
    "AdminService.AlterSettings": lambda _: _setting(None),
    "AdminService.AlterSettings/group": _setting,
    "AdminService.DescribeAcls": lambda _: a.DescribeAclsRequest(),
    "AdminService.DescribeAcls/other": lambda _: a.DescribeAclsRequest(principal="somebody"),
    "AdminService.AlterAcls": lambda _: a.AlterAclsRequest(granted=[ev.Acl(role="no-such-role")]),
    "AdminService.TestAcl": lambda name: a.TestAclRequest(
        principal="somebody", call="JoinGroup", name=name
    ),
    "AdminService.DescribeRevocations": lambda _: a.DescribeRevocationsRequest(),
    "AdminService.AlterRevocations": lambda _: a.AlterRevocationsRequest(lifted=["none"]),
    "LogService.ReadEvents": lambda _: lg.ReadEventsRequest(),
    "LogService.ReadEvents/group": lambda name: lg.ReadEventsRequest(group_id=name),
    "LogService.Watch": lambda _: lg.WatchRequest(start=x.Position(index=1)),
    "LogService.Watch/group": lambda name: lg.WatchRequest(
        start=x.Position(index=1), group_id=name
    ),
    "LogService.SealLog": lambda _: lg.SealLogRequest(),
    "BackupService.BeginBackup": lambda _: b.BeginBackupRequest(),
    "BackupService.ReadBackup": lambda _: b.ReadBackupRequest(copy_id="no-such-copy"),
    "BackupService.EndBackup": lambda _: b.EndBackupRequest(copy_id="no-such-copy"),
}
"""By the name of the cell; made of the name that the cell is about."""
