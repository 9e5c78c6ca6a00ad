"""Admin for threads: the methods of `aio.Admin`, each waited for in the thread that calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, Unpack, overload

from holdfast.client import aio
from holdfast.client.sync.threads import THREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from holdfast.client._session.session_io import TopicPartition
    from holdfast.client._translate.call_arguments import Offset
    from holdfast.client.aio.admin import OffsetResults, Results
    from holdfast.client.aio.options import AdminOptions
    from holdfast.client.errors import HoldfastError
    from holdfast.v1 import admin_pb2, events_pb2, log_pb2


class Admin:
    """`with Admin(endpoints) as admin`; arguments, results and errors as `aio.Admin`."""

    def __init__(self, endpoints: str | Sequence[str], **options: Unpack[AdminOptions]) -> None:
        self._admin = THREAD.make(lambda: aio.Admin(endpoints, **options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        THREAD.run(self._admin.close())

    @overload
    def describe_groups(
        self, group: str, /, *, rebalances: int = 1
    ) -> dict[str, admin_pb2.DescribedGroup]: ...
    @overload
    def describe_groups(
        self, *groups: str, rebalances: int = 1
    ) -> dict[str, admin_pb2.DescribedGroup | HoldfastError]: ...
    def describe_groups(
        self, *groups: str, rebalances: int = 1
    ) -> Mapping[str, admin_pb2.DescribedGroup | HoldfastError]:
        """Describe state, members, assignments, and the last rebalances."""
        return THREAD.run(self._admin.describe_groups(*groups, rebalances=rebalances))

    @overload
    def consumer_group_describe(
        self, group: str, /, *, epochs: int = 1
    ) -> dict[str, admin_pb2.ConsumerGroupDescribedGroup]: ...
    @overload
    def consumer_group_describe(
        self, *groups: str, epochs: int = 1
    ) -> dict[str, admin_pb2.ConsumerGroupDescribedGroup | HoldfastError]: ...
    def consumer_group_describe(
        self, *groups: str, epochs: int = 1
    ) -> Mapping[str, admin_pb2.ConsumerGroupDescribedGroup | HoldfastError]:
        """Describe groups of the heartbeat protocol: targets, tokens, the last epochs."""
        return THREAD.run(self._admin.consumer_group_describe(*groups, epochs=epochs))

    def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[admin_pb2.ListedGroup]:
        """List all groups, or those in these states and of these types."""
        return THREAD.run(self._admin.list_groups(states=states, types=types))

    def delete_groups(self, *groups: str) -> Results:
        """Delete groups without members, with their offsets."""
        return THREAD.run(self._admin.delete_groups(*groups))

    def remove_members(
        self,
        group: str,
        *,
        instance_ids: Iterable[str] = (),
        member_ids: Iterable[str] = (),
        instance_prefix: str = "",
        everyone: bool = False,
        reason: str | None = None,
    ) -> Results:
        """Remove members in one step: one rebalance however many they are."""
        return THREAD.run(
            self._admin.remove_members(
                group,
                instance_ids=instance_ids,
                member_ids=member_ids,
                instance_prefix=instance_prefix,
                everyone=everyone,
                reason=reason,
            )
        )

    def trigger_rebalance(self, group: str, *, reason: str | None = None) -> None:
        """Open a join phase, as if the group leader had asked; or raise the epoch (KIP-848)."""
        THREAD.run(self._admin.trigger_rebalance(group, reason=reason))

    def offsets(
        self, group: str, partitions: Iterable[tuple[str, int]] = ()
    ) -> dict[TopicPartition, Offset]:
        """Return committed offsets of the partitions (none named: all); others are left out."""
        return THREAD.run(self._admin.offsets(group, partitions))

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], Offset | int]
    ) -> OffsetResults:
        """Set offsets from outside, of a group without members."""
        return THREAD.run(self._admin.commit_offsets(group, offsets))

    def delete_offsets(self, group: str, partitions: Iterable[tuple[str, int]]) -> OffsetResults:
        """Delete offsets; refused for topics that a member subscribes to."""
        return THREAD.run(self._admin.delete_offsets(group, partitions))

    def create_topics(self, topics: Mapping[str, int]) -> Results:
        """Create topics with so many partitions each."""
        return THREAD.run(self._admin.create_topics(topics))

    def create_partitions(self, counts: Mapping[str, int]) -> Results:
        """Raise topics to so many partitions each; counts only grow."""
        return THREAD.run(self._admin.create_partitions(counts))

    def delete_topics(self, *topics: str, force: bool = False) -> Results:
        """Delete topics; `force`: also those that groups with members subscribe to."""
        return THREAD.run(self._admin.delete_topics(*topics, force=force))

    @overload
    def list_topics(self) -> dict[str, int]: ...
    @overload
    def list_topics(self, name: str, /) -> dict[str, int]: ...
    @overload
    def list_topics(self, *names: str) -> dict[str, int | HoldfastError]: ...
    def list_topics(self, *names: str) -> Mapping[str, int | HoldfastError]:
        """Return partition counts by topic; of all topics when none is named."""
        return THREAD.run(self._admin.list_topics(*names))

    def describe_settings(
        self, *names: str, group: str | None = None
    ) -> list[admin_pb2.DescribedSetting]:
        """Describe settings on the log with unit, default and meaning; of a group if named."""
        return THREAD.run(self._admin.describe_settings(*names, group=group))

    def alter_settings(
        self, settings: Mapping[str, str | int | None], *, group: str | None = None
    ) -> Results:
        """Set settings on the log; None gives one back to its default."""
        return THREAD.run(self._admin.alter_settings(settings, group=group))

    def describe_cluster(self) -> admin_pb2.DescribeClusterResponse:
        """Describe the nodes, the leader, and the log's position."""
        return THREAD.run(self._admin.describe_cluster())

    def transfer_leadership(self, node: str = "") -> str:
        """Transfer the leadership to a node (empty: to the best one); return the new leader."""
        return THREAD.run(self._admin.transfer_leadership(node))

    def add_node(self, name: str, *, client_address: str, peer_address: str) -> bool:
        """Have a new node get the log; return whether this call added it."""
        return THREAD.run(
            self._admin.add_node(name, client_address=client_address, peer_address=peer_address)
        )

    def promote_node(self, name: str) -> bool:
        """Make a learner a voter; return whether this call did."""
        return THREAD.run(self._admin.promote_node(name))

    def remove_node(self, name: str) -> bool:
        """Let a node go for good; return whether this call removed it."""
        return THREAD.run(self._admin.remove_node(name))

    def finish_upgrade(self) -> int:
        """Raise the level to the newest at which all nodes can run; return the level in force."""
        return THREAD.run(self._admin.finish_upgrade())

    def seal_log(self) -> log_pb2.SealLogResponse:
        """Have all nodes seal what is in the log now; return the boundary."""
        return THREAD.run(self._admin.seal_log())

    def describe_acls(self, principal: str | None = None) -> admin_pb2.DescribeAclsResponse:
        """Describe grants and the mode in force."""
        return THREAD.run(self._admin.describe_acls(principal))

    def alter_acls(
        self,
        *,
        granted: Iterable[events_pb2.Acl] = (),
        revoked: Iterable[events_pb2.Acl] = (),
        mode: str | None = None,
    ) -> None:
        """Grant and revoke, or set the mode: all of it or nothing."""
        THREAD.run(self._admin.alter_acls(granted=granted, revoked=revoked, mode=mode))

    def test_acl(self, principal: str, call: str, name: str = "") -> admin_pb2.TestAclResponse:
        """Tell whether a principal may make a call on a group or topic, and why."""
        return THREAD.run(self._admin.test_acl(principal, call, name))

    def describe_revocations(self) -> list[events_pb2.Revocation]:
        """List the certificates that are refused."""
        return THREAD.run(self._admin.describe_revocations())

    def alter_revocations(
        self, *, revoked: Iterable[events_pb2.Revocation] = (), lifted: Iterable[str] = ()
    ) -> None:
        """Revoke certificates, and lift revocations: all of it or nothing."""
        THREAD.run(self._admin.alter_revocations(revoked=revoked, lifted=lifted))
