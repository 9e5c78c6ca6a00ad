"""The part of Admin that is about the cluster itself: its nodes, its level, who may do what.

For operators' programs. What an administrator must be for, the service decides and refuses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from holdfast.v1 import admin_pb2, log_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.message import Message

    from holdfast.v1 import events_pb2

AnswerT = TypeVar("AnswerT", bound="Message")


class ClusterAdmin(ABC):
    """What `Admin` inherits; how a call is made is the business of `Admin`."""

    @abstractmethod
    async def _read(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Make a call that has no request id."""

    @abstractmethod
    async def _change(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """Make a call with a request id, so that it is carried out once."""

    # --- nodes ---------------------------------------------------------------------------------

    async def add_node(self, name: str, *, client_address: str, peer_address: str) -> bool:
        """Have a new node get the log; it counts for nothing before it is promoted (S25).

        `client_address`, `peer_address`: `host:port` at which clients and the other nodes reach it.
        Those of a learner are corrected. Returns whether this call changed anything; False: the
        cluster had this very node. May be repeated.

        Raises NotYet while another change of nodes is not committed, and InvalidArgument if the
        name was ever used, an address is another node's, or the cluster is at level 1.
        """
        request = admin_pb2.AddNodeRequest(
            name=name, client_address=client_address, peer_address=peer_address
        )
        return not (await self._read(request, admin_pb2.AddNodeResponse)).already

    async def promote_node(self, name: str) -> bool:
        """Make a learner a voter. Returns whether this call did; False: it was one. Repeatable.

        Raises NotYet while it has not caught up (ask again; `describe_cluster` tells how far it
        is), or while the voters that there would be have no connected majority. Raises
        InvalidArgument if there is no such learner.
        """
        request = admin_pb2.PromoteNodeRequest(name=name)
        return not (await self._read(request, admin_pb2.PromoteNodeResponse)).already

    async def remove_node(self, name: str) -> bool:
        """Let a node go for good: it stops, and its name is never used again. Repeatable.

        Returns whether this call removed it; False: it was removed. A node that leads hands the
        leadership over first, and the call goes on at the next leader.

        Raises NotYet while the voters that would be left have no connected majority, or another
        change is not committed. Raises InvalidArgument if there is no such node, or no other voter.
        """
        request = admin_pb2.RemoveNodeRequest(name=name)
        return not (await self._read(request, admin_pb2.RemoveNodeResponse)).already

    # --- level ---------------------------------------------------------------------------------

    async def finish_upgrade(self) -> int:
        """Raise the level to the newest at which all nodes can run; return the level in force.

        No node can go back to an older version after it. If there is nothing to raise, nothing
        happens. `describe_cluster` tells beforehand (`upgrade_to`, `upgrade_problem`).

        Raises InvalidArgument while a node is away, or too old.
        """
        request = admin_pb2.FinishUpgradeRequest()
        return (await self._change(request, admin_pb2.FinishUpgradeResponse)).level

    # --- the log -------------------------------------------------------------------------------

    async def seal_log(self) -> log_pb2.SealLogResponse:
        """Have all nodes seal what is in the log now; return the boundary (`sealed`).

        `already`: this call has set none, since nothing that counts came after the last one (what
        tells of boundaries and cuts does not), or another call has set one meanwhile. The nodes
        seal one after another, by themselves: `describe_cluster` by an `Admin` of its own for each
        node tells how far that one has come (`facts.history.sealed`).
        """
        return await self._change(log_pb2.SealLogRequest(), log_pb2.SealLogResponse)

    # --- permissions ---------------------------------------------------------------------------

    async def describe_acls(self, principal: str | None = None) -> admin_pb2.DescribeAclsResponse:
        """Describe grants and the mode in force; of one principal, with those to all, if named.

        Raises Forbidden for others than administrators, unless they name themselves.
        """
        request = admin_pb2.DescribeAclsRequest(principal=principal)
        return await self._read(request, admin_pb2.DescribeAclsResponse)

    async def alter_acls(
        self,
        *,
        granted: Iterable[events_pb2.Acl] = (),
        revoked: Iterable[events_pb2.Acl] = (),
        mode: str | None = None,
    ) -> None:
        """Grant and revoke, or set the `mode` (open, dry-run, deny): all of it or nothing.

        A grant that is there already stays; one to revoke that is not there is passed over.

        Raises Forbidden for others than administrators, InvalidArgument for what cannot be granted,
        or would leave no administrator, or at level 1.
        """
        request = admin_pb2.AlterAclsRequest(granted=granted, revoked=revoked, mode=mode)
        await self._change(request, admin_pb2.AlterAclsResponse)

    async def test_acl(
        self, principal: str, call: str, name: str = ""
    ) -> admin_pb2.TestAclResponse:
        """Tell whether a principal may make a call ("JoinGroup") on a group or topic, and why.

        Raises InvalidArgument for a call that there is not, and Forbidden as `describe_acls`.
        """
        request = admin_pb2.TestAclRequest(principal=principal, call=call, name=name)
        return await self._read(request, admin_pb2.TestAclResponse)

    async def describe_revocations(self) -> list[events_pb2.Revocation]:
        """List the certificates that are refused. Raises Forbidden for others than admins."""
        request = admin_pb2.DescribeRevocationsRequest()
        return list((await self._read(request, admin_pb2.DescribeRevocationsResponse)).revocations)

    async def alter_revocations(
        self, *, revoked: Iterable[events_pb2.Revocation] = (), lifted: Iterable[str] = ()
    ) -> None:
        """Revoke certificates, and lift revocations by fingerprint: all of it or nothing.

        Calls and streams that were made with a revoked certificate end.

        Raises Forbidden for others than administrators, InvalidArgument for the certificate that
        this call is made with, or at level 1.
        """
        request = admin_pb2.AlterRevocationsRequest(revoked=revoked, lifted=lifted)
        await self._change(request, admin_pb2.AlterRevocationsResponse)
