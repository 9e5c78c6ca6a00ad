"""PySyncObj's transport over `Ready`, for what the stock code still sends by itself.

The engine's dicts become typed messages here, and wait for the flush as all others do (E-5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pysyncobj.transport

from holdfast.raft.messages import RequestVote, TimeoutNow, VoteGranted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pysyncobj.node import Node

    from holdfast.raft.api import Transport
    from holdfast.raft.core.ready import Ready
    from holdfast.raft.messages import Message
    from holdfast.raft.pysyncobj.engine_state import EngineState


class EngineTransport(pysyncobj.transport.Transport):
    """Appends the engine's messages to `Ready`, as its transport. Tick thread only."""

    def __init__(
        self,
        state: EngineState,
        ready: Ready,
        transport: Transport,
        transfer_of: Callable[[int], int],
    ) -> None:
        """`transfer_of`: from a candidate's term to the term that handed over, or 0 (S10 d)."""
        super().__init__(None, state.own_node, state.nodes)
        self._ready, self._transport, self._transfer_of = ready, transport, transfer_of

    def send(self, node: Node, message: dict[str, Any]) -> bool:
        """Append a message of the engine; it leaves when the state that it shows is durable."""
        self._ready.send.append((node.id, self._translate(message)))
        return True

    def _translate(self, message: dict[str, Any]) -> Message:
        term: int = message["term"]
        match message["type"]:
            case "request_vote":
                last = message["last_log_index"], message["last_log_term"]
                return RequestVote(term, *last, self._transfer_of(term))
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
