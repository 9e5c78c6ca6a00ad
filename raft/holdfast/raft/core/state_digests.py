"""Nodes tell each other the digest of their state at the same indexes (S3, S6).

A node that differs from a majority stops, because nothing that it says can be trusted. A majority
that disagrees with itself proves nothing about this node: it goes on and logs an alarm.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from holdfast.raft.api import EngineStopped
from holdfast.raft.core.context import Switch
from holdfast.raft.messages import StateDigest

if TYPE_CHECKING:
    from holdfast.raft.core.context import Context

logger = logging.getLogger(__name__)

INDEXES_KEPT = 64
"""For how many indexes digests are kept; a node that lags more is not compared."""


class StateDigests:
    """Tick thread, except `publish`."""

    def __init__(self, ctx: Context) -> None:
        """Start without digests."""
        self._ctx = ctx
        self._published: deque[StateDigest] = deque()
        self._seen: OrderedDict[int, dict[str, bytes]] = OrderedDict()
        self._unjudged: set[int] = set()

    def publish(self, index: int, digest: bytes) -> None:
        """Note the digest of the own state, with all entries up to `index` applied. Any thread."""
        self._published.append(StateDigest(index, digest))

    def tick(self) -> None:
        """Send new digests to the peers.

        Raises EngineStopped if they have proved this node wrong.
        """
        while self._published:
            mine = self._published.popleft()
            for peer in self._ctx.state.peers:
                self._ctx.ready.send.append((peer, mine))
            self._note(self._ctx.node_id, mine)
        while self._unjudged:
            index = self._unjudged.pop()
            self._judge(index, self._seen.get(index, {}))

    def on_digest(self, peer: str, theirs: StateDigest) -> None:
        """Note a peer's digest; the next tick compares."""
        self._note(peer, theirs)

    def _note(self, node: str, told: StateDigest) -> None:
        if self._seen and told.index < next(iter(self._seen)) and told.index not in self._seen:
            return
        self._seen.setdefault(told.index, {})[node] = told.digest
        while len(self._seen) > INDEXES_KEPT:
            self._seen.popitem(last=False)
        self._unjudged.add(told.index)

    def _judge(self, index: int, digests: dict[str, bytes]) -> None:
        mine = digests.get(self._ctx.node_id)
        if mine is None or not self._ctx.on(Switch.S3_AGREE):
            return
        others = [node for node, digest in digests.items() if digest != mine]
        if not others:
            return
        if any(self._is_majoritys(digests[node], digests) for node in others):
            raise EngineStopped(
                f"the state at index {index} differs from the majority's ({', '.join(others)}): "
                "this node stops before it tells anybody anything wrong. Keep its data directory "
                "for an examination, give the node an empty one, and let it rebuild from its peers"
            )
        logger.critical(
            "alarm: the state at index %s differs between nodes and no majority agrees yet: %s",
            index,
            {node: digest.hex()[:16] for node, digest in digests.items()},
        )

    def _is_majoritys(self, digest: bytes, digests: dict[str, bytes]) -> bool:
        """Return whether a majority of the voters has this digest."""
        same = [node for node, theirs in digests.items() if theirs == digest]
        return self._ctx.state.voters.have_majority(same)
