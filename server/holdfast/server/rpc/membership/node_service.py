"""The methods of AdminService that change the nodes: read a request, ask for the change, answer.

Refuses what no node can be called, or where none can be reached. `node_changes` knows the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coordinator.model.text import truncate
from holdfast.raft.membership import AddLearner, ClusterNode, Promote, Remove
from holdfast.server.config.address import parse_address
from holdfast.server.config.node_config import NAME_MAX
from holdfast.server.rpc.callers import answered
from holdfast.server.rpc.errors import malformed
from holdfast.server.translate import limits
from holdfast.v1 import admin_pb2 as a

if TYPE_CHECKING:
    from holdfast.server.rpc.callers import Callers, Context
    from holdfast.server.rpc.membership.node_changes import NodeChanges


class NodeCalls:
    """What AdminService inherits; it has the parts that are declared here."""

    _changes: NodeChanges
    _callers: Callers

    @answered(a.AddNodeResponse)
    async def AddNode(self, request: a.AddNodeRequest, context: Context) -> a.AddNodeResponse:
        """Add a node as a learner."""
        change, who = AddLearner(_new_node(request)), self._callers.principal(context)
        return await self._changes.make(request, change, a.AddNodeResponse, who)

    @answered(a.PromoteNodeResponse)
    async def PromoteNode(
        self, request: a.PromoteNodeRequest, context: Context
    ) -> a.PromoteNodeResponse:
        """Make a learner that has caught up a voter."""
        change, who = Promote(_name(request.name)), self._callers.principal(context)
        return await self._changes.make(request, change, a.PromoteNodeResponse, who)

    @answered(a.RemoveNodeResponse)
    async def RemoveNode(
        self, request: a.RemoveNodeRequest, context: Context
    ) -> a.RemoveNodeResponse:
        """Remove a node for good."""
        change, who = Remove(_name(request.name)), self._callers.principal(context)
        return await self._changes.make(request, change, a.RemoveNodeResponse, who)


def _new_node(request: a.AddNodeRequest) -> ClusterNode:
    """Read a node; raises CallFailed for a name or an address that no node can have."""
    name = _name(request.name)
    if (
        not name.isprintable() or "/" in name or name in {".", ".."}
    ):  # one that is there can be removed all the same
        raise malformed(
            "name",
            f"{truncate(name)!r} is no name for a node: it names folders and stands in lines of "
            "logs, so it has characters that can be printed, no slash, and is not . or ..",
        )
    return ClusterNode(
        name,
        peer_address=_address("peer_address", request.peer_address),
        client_address=_address("client_address", request.client_address),
    )


def _name(name: str) -> str:
    if not name or len(name) > NAME_MAX:
        raise malformed("name", f"a node's name has 1 to {NAME_MAX} characters")
    return limits.text("name", name)


def _address(field: str, text: str) -> str:
    try:
        address = parse_address(limits.text(field, text))
    except ValueError as error:
        raise malformed(field, str(error)) from error
    if not address.port:
        raise malformed(field, f"{truncate(text)!r} has port 0, at which no node can be reached")
    return str(address)
