"""Random schedules in which disks lose their last transaction, unseen, when a node dies (S21).

Only what the peers' memory promises is asked of it: no peer has started anew since the transaction,
all of them are met at once, and one disk at a time is not to be trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos import Chaos
from holdfast.raft.core.context import ALL
from holdfast.raft.messages import Recalled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.raft.core.context import Switch
    from holdfast.storage.journal.journal import JournalBatch, JournalImage

SHARE = 0.6
"""How many of the crashes that allow it take a transaction with them."""


class Forgetting(Chaos):
    """`counts` has how many were rolled back, and how many of these a peer remembered."""

    def __init__(self, seed: int, ids: str = "ABC", switches: Iterable[Switch] = ALL) -> None:
        super().__init__(seed, ids, switches)
        self._before_last: dict[str, JournalImage] = {}
        self._last_at: dict[str, float] = {}
        self._started_at: dict[str, float] = {}
        for node in self.cluster.ids:
            self._watch(node)

    def _watch(self, node: str) -> None:
        """Keep what the disk held before its newest transaction."""
        journal = self.cluster.disks[node].journal

        def keep(_batch: JournalBatch) -> None:
            self._before_last[node] = journal.load()
            self._last_at[node] = self.cluster.clock()

        self._before_last[node] = journal.load()
        self._last_at[node] = self._started_at[node] = self.cluster.clock()
        journal.before_commit = keep

    def _cut_power(self) -> None:
        """Nothing: what dies within a commit is the business of `Chaos`."""

    def _kill(self) -> None:
        node = self.random.choice(self.cluster.ids)
        if self._may_forget(node) and self.random.random() < SHARE:
            self._crash(node)
            self._restart_rolled_back(node)
            return
        super()._kill()
        for each in self.cluster.nodes:
            if self.cluster.disks[each].journal.before_commit.__name__ != "keep":
                self._watch(each)

    def _may_forget(self, node: str) -> bool:
        """Whether everybody who may remember is there."""
        up = all(each in self.cluster.nodes for each in self.cluster.ids)
        if not up or not self._all_disks_are_members():
            return False
        peers = [peer for peer in self.cluster.ids if peer != node]
        known = all(self._started_at[peer] < self._last_at[node] for peer in peers)
        before, now = self._before_last[node], self.cluster.disks[node].journal.load()
        was_member = before.identity is not None and before.identity.stage == "member"
        return known and was_member and before.anchor == now.anchor

    def _restart_rolled_back(self, node: str) -> None:
        """Lose the transaction, start, and hear every peer's word before anything else."""
        cluster, network = self.cluster, self.cluster.network
        cluster.disks[node].journal.repair()
        cluster.disks[node].journal.restore(self._before_last[node])
        cluster.start(node)
        self._watch(node)
        self.counts["rolled back"] += 1
        network.deaf.clear()
        cluster.connect_all()
        for peer in cluster.ids:
            if peer != node:
                cluster.engine(peer).overlay.completion.run()
                told = [isinstance(m, Recalled) for m in network.waiting(peer, node)]
                network.deliver(peer, node, count=told.index(True) + 1)
        self.counts["suspected"] += cluster.engine(node).status().stage == "rebuilding"
