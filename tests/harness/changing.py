"""Random schedules in which nodes are added, promoted and removed among all other faults (S25).

Some new nodes are never there, as if their address were wrong. Removed ones run on until they are
told. A disk is replaced only while no change is under way and three voters stay, since a majority
that is lost is lost; and no voter is removed while a disk rebuilds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos import HEALING_ROUNDS, Chaos, Violation
from harness.journal import PowerCut
from holdfast.raft.api import EngineStopped, NodeRemoved, Overloaded
from holdfast.raft.core.context import ALL
from holdfast.raft.membership import (
    AddLearner,
    Change,
    ClusterNode,
    Membership,
    Promote,
    Remove,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.raft.core.context import Switch

NEW_NAMES = "FGHIJKLMNOPQRSTUVWXYZ"
NODES_MAX = 6
ABSENT = 0.15
"""How many of the new nodes are never there."""


class Changing(Chaos):
    """`counts` has the changes that were asked for, and how many were committed."""

    def __init__(self, seed: int, ids: str = "ABC", switches: Iterable[Switch] = ALL) -> None:
        super().__init__(seed, ids, switches)
        self._new = iter(NEW_NAMES)
        self._known = {0: Membership.of(tuple(ids))}
        """The committed memberships that any node has had, by their entries; 0: the files'."""
        self._actions.append((12, self._change))

    # -- actions ---------------------------------------------------------------------

    def _change(self) -> None:
        leaders = [node for node in self._alive() if self._role(node) == "leader"]
        if not leaders:
            return
        leader = self.random.choice(leaders)
        change = self._chosen(self.cluster.engine(leader).overlay.in_force.now)
        if change is None:
            return
        engine = self.cluster.engine(leader)
        try:
            self._offered[engine, engine.change(change, engine.status().term)] = ""
        except Overloaded:
            return
        self.counts[f"asked: {type(change).__name__}"] += 1

    def _chosen(self, now: Membership) -> Change | None:
        learners = [node.name for node in now.learners]
        may_remove = super()._all_disks_are_members()
        kinds = ["promote"] * bool(learners) + ["remove"] * may_remove
        name = next(self._new, None) if len(now.nodes) < NODES_MAX else None
        if name is not None and (not kinds or self.random.random() < 0.4):
            return self._new_node(name)
        if not kinds:
            return None
        if self.random.choice(kinds) == "promote":
            return Promote(self.random.choice(learners))
        return Remove(self.random.choice(now.names))

    def _new_node(self, name: str) -> Change:
        if self.random.random() > ABSENT:
            self.cluster.join(name)
            self.cluster.connect_all()
        return AddLearner(ClusterNode(name, f"{name}:1", f"{name}:2"))

    def _change_link(self) -> None:
        if len(self.cluster.ids) > 1:
            super()._change_link()

    def _transfer(self) -> None:
        try:
            super()._transfer()
        except (ValueError, IndexError):
            return  # to one that is no voter, or there is no other node

    def _all_disks_are_members(self) -> bool:
        """Whether a disk may be replaced: nodes agree on their membership, and enough stay."""
        nodes = self.cluster.nodes
        seen = {node.engine.overlay.in_force.now for node in nodes.values()}
        if (
            len(nodes) < len(self.cluster.ids)
            or len(seen) != 1
            or min(len(each.voters) for each in seen) < 3
        ):
            return False
        return super()._all_disks_are_members()

    def _tick(self, node: str) -> None:
        try:
            self.cluster.tick(node)
        except EngineStopped as error:
            if isinstance(error.__cause__, NodeRemoved):
                self._retire(node)
            elif isinstance(error.__cause__, PowerCut):
                self._crash(node)
            else:
                raise Violation(f"{node} stopped: {error}") from error

    def _retire(self, node: str) -> None:
        """It says that it was removed; nobody starts it again."""
        if not any(node in each.removed for each in self._known.values()):
            raise Violation(f"{node} says that it was removed, and no committed entry does")
        self.collect()
        self.cluster.crash(node)
        self.cluster.ids = self.cluster.ids.replace(node, "")
        del self.cluster.disks[node]
        self.counts["removed and told"] += 1

    # -- checks ------------------------------------------------------------------------

    def check(self) -> None:
        """Check that nodes never differ about a committed membership, beside all else."""
        super().check()
        for name, node in self.cluster.nodes.items():
            overlay = node.engine.overlay
            commit = overlay.state.commit_index
            noted = overlay.journal.membership_at(commit)
            if noted is None or noted.index > commit:
                continue
            told = Membership.decode(noted.text)
            if self._known.setdefault(noted.index, told) != told:
                other = self._known[noted.index]
                raise Violation(f"S25: {name} has {told} at {noted.index}, another node {other}")
        self.counts["committed"] = len(self._known) - 1

    # -- the end ------------------------------------------------------------------------

    def heal(self) -> None:
        """End all faults: the nodes of the cluster must converge, removed ones must know."""
        cluster = self.cluster
        cluster.network.deaf.clear()
        for disk in cluster.disks.values():
            disk.journal.repair()
        for node in cluster.ids:
            if node not in cluster.nodes:
                cluster.start(node)
        for round_ in range(HEALING_ROUNDS):
            cluster.connect_all()
            self._heal_for(0.03)
            self.check()
            if round_ > 100 and self._converged():
                break
        else:
            states = {n: cluster.engine(n).status() for n in cluster.nodes}
            raise Violation(f"no convergence: {states}")
        self._check_nothing_is_lost()

    def _heal_for(self, seconds: float) -> None:
        cluster = self.cluster
        cluster.clock.advance(seconds)
        for link in cluster.network.busy_links():
            cluster.network.deliver(*link)
        for node in self._alive():
            self._tick(node)
            if node in cluster.nodes:
                cluster.consumer(node).evolve()

    def _newest(self) -> Membership:
        return self._known[max(self._known)]

    def _converged(self) -> bool:
        last = self._newest()
        here = set(self.cluster.nodes)
        strangers = here - set(last.names)
        agreed = all(
            node.engine.overlay.in_force.now == last
            for name, node in self.cluster.nodes.items()
            if name not in strangers
        )
        return not strangers & set(last.removed) and agreed and self._members_converged(strangers)

    def _members_converged(self, strangers: set[str]) -> bool:
        """Strangers: nodes that were started and whose addition was never committed."""
        nodes = [node for name, node in self.cluster.nodes.items() if name not in strangers]
        return (
            all(node.engine.status().stage == "member" for node in nodes)
            and len({tuple(node.consumer.values) for node in nodes}) == 1
            and sum(bool(node.consumer.ready_term) for node in nodes) == 1
            and not any(node.consumer.unsettled for node in nodes)
        )

    def _check_nothing_is_lost(self) -> None:
        last = self._newest()
        for name in list(self.cluster.nodes):
            if name not in last.names:
                self.cluster.crash(name)
        super()._check_nothing_is_lost()
