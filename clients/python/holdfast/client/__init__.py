"""The Holdfast client: be a member of a group, own partitions, and know when you no longer do.

    async with Member("127.0.0.1:7400", group="indexers", topics=["documents"],
                      instance_id="indexer-0") as member:
        async for partition in member.owned():
            ...

`Member`, `Members`, `Connection` and `Admin` here are those for asyncio (`holdfast.client.aio`);
`holdfast.client.sync` has the same for threads. docs/clients.md tells how to use them. Needs grpcio
and protobuf only. For calls by hand, the stubs are in `holdfast.v1`.
"""

from holdfast.client._rpc.channel import Credentials, Tls
from holdfast.client._session.health import Health
from holdfast.client._session.loss import LostReason
from holdfast.client._session.session_io import TopicPartition
from holdfast.client._translate.acknowledged import Acknowledged
from holdfast.client._translate.call_arguments import Offset
from holdfast.client._translate.client_assignor import ClientAssignor, GroupMember, Targets
from holdfast.client.aio import Admin, Connection, Member, Members, restart_on_signals
from holdfast.client.aio.partition import Partition
from holdfast.client.errors import (
    AssignmentFailed,
    ClusterFull,
    Fenced,
    Forbidden,
    GroupFull,
    GroupNotEmpty,
    GroupNotFound,
    HoldfastError,
    IllegalGeneration,
    IncompatibleServer,
    InstanceInUse,
    InvalidArgument,
    NoCommonProtocol,
    NotYet,
    OutcomeUnknown,
    OwnershipLost,
    RebalanceInProgress,
    Rejected,
    ServerDefect,
    TopicExists,
    TopicInUse,
    TopicNotFound,
    Unavailable,
    UnknownMember,
)
from holdfast.coordinator.assignors import (
    Assignor,
    ByInstanceAssignor,
    CooperativeAssignor,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    WeightedAssignor,
)

__all__ = [
    "Acknowledged",
    "Admin",
    "AssignmentFailed",
    "Assignor",
    "ByInstanceAssignor",
    "ClientAssignor",
    "ClusterFull",
    "Connection",
    "CooperativeAssignor",
    "Credentials",
    "Fenced",
    "Forbidden",
    "GroupFull",
    "GroupMember",
    "GroupNotEmpty",
    "GroupNotFound",
    "Health",
    "HoldfastError",
    "IllegalGeneration",
    "IncompatibleServer",
    "InstanceInUse",
    "InvalidArgument",
    "LostReason",
    "Member",
    "MemberSubscription",
    "Members",
    "NoCommonProtocol",
    "NotYet",
    "Offset",
    "OutcomeUnknown",
    "OwnershipLost",
    "Partition",
    "RangeAssignor",
    "RebalanceInProgress",
    "Rejected",
    "RoundRobinAssignor",
    "ServerDefect",
    "StickyAssignor",
    "Targets",
    "Tls",
    "TopicExists",
    "TopicInUse",
    "TopicNotFound",
    "TopicPartition",
    "Unavailable",
    "UnknownMember",
    "WeightedAssignor",
    "restart_on_signals",
]
