"""From which restore a node's disk comes, compared with what a peer tells of its own (S13).

A restore gives the cluster a new recovery number. A disk with a lower one is from before it: with
its longer log and higher term it could win an election against the restored nodes, so the two never
speak. A blank disk, which waits to be rebuilt, takes over the number of the first peer that has
one. Knows numbers; no sockets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.raft.wire.greeting import Greeting


class Lineage:
    """The recovery number of this node's disk. Any thread."""

    def __init__(
        self, number: int = 0, *, adopt: Callable[[int], None] = lambda _number: None
    ) -> None:
        """`adopt`: makes a number that was taken durable."""
        self.number = number
        self.holds_nothing: Callable[[], bool] = lambda: False
        """Tells whether the disk waits to be rebuilt and has got nothing yet. As soon as it has, it
        is of the number by which it got that, and takes no other any more."""
        self.on_later_restore: Callable[[str], None] = lambda _peer: None
        """Takes a peer that is of a later restore than this disk."""
        self._adopt = adopt
        self._lock = threading.Lock()

    @property
    def blank(self) -> bool:
        """Whether this disk may become one of any number, as it is of none yet."""
        return not self.number and self.holds_nothing()

    def problem(self, own: str, peer: str, told: Greeting) -> str:
        """Say why node `own` and `peer` are not of one cluster any more; empty if they are.

        A blank disk becomes one of the peer's number here. Raises OSError if that cannot be stored.
        """
        with self._lock:
            if told.recovery_number == self.number or told.blank:
                return ""
            if self.blank and told.recovery_number > self.number:
                self._adopt(told.recovery_number)
                self.number = told.recovery_number
                return ""
            if told.recovery_number < self.number:
                return _earlier(peer, told.recovery_number, self.number)
            self.on_later_restore(peer)
            return _earlier(own, self.number, told.recovery_number)


def _earlier(node: str, number: int, newest: int) -> str:
    return (
        f"the data of node {node!r} is from before the cluster was restored: its recovery number "
        f"is {number}, and the cluster's is {newest}. Stop that node, move its data directory "
        "away, and start it with --rebuild"
    )
