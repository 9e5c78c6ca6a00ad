"""Nothing that shows durable state leaves the node before that state is durable (E-5).

PySyncObj's transport seam over ours: the engine's own dicts become typed messages here, and all
but the leader's data are held until the flush. Several acks of one round share one sync.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pysyncobj.transport

from holdfast.raft.core.switches import ALL, Switch
from holdfast.raft.messages import (
    Append,
    EntryChunk,
    RequestVote,
    SnapshotChunk,
    TimeoutNow,
    VoteGranted,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pysyncobj.node import Node

    from holdfast.raft.api import Transport
    from holdfast.raft.messages import Message
    from holdfast.raft.pysyncobj.engine_state import EngineState

_SHOW_NOTHING = (Append, EntryChunk, SnapshotChunk)


class Outbox(pysyncobj.transport.Transport):
    """The one way out. Tick thread only."""

    def __init__(
        self, state: EngineState, transport: Transport, switches: frozenset[Switch] = ALL
    ) -> None:
        """Send by `transport`."""
        super().__init__(None, state.own_node, state.nodes)
        self._transport = transport
        self._hold = Switch.ACK_AFTER_FLUSH in switches
        self._held: list[tuple[str, Message]] = []
        self.transfer_of: Callable[[int], int] = lambda _term: 0
        self.on_shown: Callable[[str, Message], None] = lambda _peer, _message: None

    def post(self, peer: str, message: Message) -> None:
        """Send a message, after the next flush if it shows anything of this node's disk."""
        if isinstance(message, _SHOW_NOTHING):
            self._transport.send(peer, message)
            return
        self.on_shown(peer, message)
        if self._hold:
            self._held.append((peer, message))
        else:
            self._transport.send(peer, message)

    @property
    def is_holding(self) -> bool:
        """Whether anything waits for the flush."""
        return bool(self._held)

    def release(self) -> None:
        """Let go what was held; everything up to now is durable."""
        held, self._held = self._held, []
        for peer, message in held:
            self._transport.send(peer, message)

    # -- the engine's own names ----------------------------------------------

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        """Translate what the stock code still sends by itself."""
        self.post(node.id, self._translate(message))
        return True

    def _translate(self, message: dict[str, Any]) -> Message:
        term: int = message["term"]
        match message["type"]:
            case "request_vote":
                last = message["last_log_index"], message["last_log_term"]
                return RequestVote(term, *last, self.transfer_of(term))
            case "response_vote":
                return VoteGranted(term)
            case "timeout_now":
                return TimeoutNow(term)
        msg = f"the engine wants to send {message['type']!r}, which the overlay does not carry"
        raise RuntimeError(msg)

    def connected(self, node: Node) -> None:
        """Tell the engine that a peer is reachable."""
        self._onNodeConnected(node)

    def disconnected(self, node: Node) -> None:
        """Tell the engine that a peer is not reachable."""
        self._onNodeDisconnected(node)

    def destroy(self) -> None:
        """Close the connections."""
        self._transport.close()
