"""Nodes come and go (S25): whoever operates the cluster asks its leader, and asks again.

A change is asked for until it is made, or its time is over: leaders change, refuse what is not safe
yet, and die with the answer. Some new nodes are never there, some begin on the wrong disk. Two
things no operator may do at once are left out: while a disk rebuilds no voter is removed, and while
a change is open no disk is replaced, since a majority that is lost is lost.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Final

from holdfast.raft.api import RaftError
from holdfast.raft.membership import AddLearner, ChangeRefused, ClusterNode, Promote, Remove
from simulation.nodes import NEW_NAMES, address_of, is_member, peer_address_of

if TYPE_CHECKING:
    from random import Random

    from holdfast.raft.membership import Change, Membership
    from holdfast.runtime.replica.replica import Replica
    from simulation.nodes import SimNode
    from simulation.world import World

AGAIN_US: Final = 300_000
"""How long after a question the next one comes, whatever was answered."""
NODES_MAX: Final = 6
VOTERS_MIN: Final = 2
STARTS_US: Final = 2_000_000
"""Within which time from the first question a new node is started."""


class Arrival(Enum):
    """How a new node comes to its cluster."""

    EMPTY = "on an empty disk, as it should"
    FLAGGED = "so, and with --bootstrap, which does no harm (S19)"
    FOUNDED = "on a disk that has founded a cluster of one (S25 f)"
    NEVER = "not at all, as if its address were wrong"


ARRIVALS: Final = {
    Arrival.EMPTY: 0.55,
    Arrival.FLAGGED: 0.15,
    Arrival.FOUNDED: 0.15,
    Arrival.NEVER: 0.15,
}
"""How often each is."""


class NodeChanges:
    """All changes of one world; `counts` has what was asked, and what was refused."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.counts: Counter[str] = Counter()
        self._names = iter(NEW_NAMES)
        self._open: list[Asking] = []

    @property
    def is_quiet(self) -> bool:
        """Whether no change is asked for or under way, so that a disk may be replaced."""
        if any(asking.is_open for asking in self._open):
            return False
        known = {self.world.recorder.membership_index}
        engines = [node.engine for node in self.world.cluster if node.engine and node.runs]
        known |= {engine.status().membership_index for engine in engines}
        return len(known) == 1

    def ask(self, change: Change) -> Asking:
        """Ask for a change from now on."""
        asking = Asking(self, change)
        self._open.append(asking)
        asking.again()
        return asking

    # --- what is to be changed ---

    def new_node(self, random: Random) -> Change | None:
        """A node that is not there yet; its machine comes up soon, or never."""
        now = self.now
        name = next(self._names, None) if len(now.nodes) < NODES_MAX else None
        if name is None:
            return None
        (how,) = random.choices(tuple(ARRIVALS), tuple(ARRIVALS.values()))
        if how is not Arrival.NEVER:
            self.world.schedule.after(random.randrange(STARTS_US), self.world.join, name, how)
        return AddLearner(ClusterNode(name, peer_address_of(name), address_of(name)))

    def promotion(self, random: Random) -> Change | None:
        """Some learner, as a voter."""
        learners = [node.name for node in self.now.learners]
        return Promote(random.choice(learners)) if learners else None

    def removal(self, target: str, random: Random) -> Change | None:
        """The leader, a learner, or any voter."""
        now, leader = self.now, self.world.leader
        if target == "leader" and leader is not None:
            return Remove(leader.name) if leader.name in now.voter_names else None
        learners = tuple(node.name for node in now.learners)
        chosen = learners if target == "learner" and learners else now.voter_names
        return Remove(random.choice(chosen))

    @property
    def now(self) -> Membership:
        """The newest committed membership."""
        return self.world.recorder.membership

    def may(self, change: Change) -> bool:
        """Whether an operator may ask for this at this moment."""
        if not isinstance(change, Remove) or change.name not in self.now.voter_names:
            return True
        disks = [node for node in self.world.cluster if node.name in self.now.voter_names]
        return len(self.now.voters) > VOTERS_MIN and all(map(is_member, disks))

    def is_settled(self, change: Change) -> bool:
        """Whether a change is made, or never will be."""
        now = self.now
        match change:
            case AddLearner(node):
                return node.name in now.names or node.name in now.removed
            case Promote(name):
                return name in now.voter_names or name in now.removed
            case Remove(name):
                return name in now.removed


class Asking:
    """One change that somebody wants."""

    def __init__(self, changes: NodeChanges, change: Change) -> None:
        self._changes, self.change = changes, change
        self.is_open = True

    def stop(self) -> None:
        """Its time is over. What was proposed may yet be committed."""
        self.is_open = False

    def again(self) -> None:
        """Ask the leader, if there is one, and look again a little later."""
        changes = self._changes
        self.is_open = self.is_open and not changes.is_settled(self.change)
        if not self.is_open:
            return
        leader = changes.world.leader
        if leader is not None and changes.may(self.change):
            self._ask_at(leader)
        changes.world.schedule.after(AGAIN_US, self.again)

    def _ask_at(self, leader: SimNode) -> None:
        process, replica = leader.process, leader.replica
        if process is not None and process.runs and replica is not None:
            process.start(self._ask(replica))

    async def _ask(self, replica: Replica) -> None:
        counts = self._changes.counts
        counts["asked"] += 1
        try:
            await replica.change_nodes(self.change)
        except ChangeRefused:
            counts["refused"] += 1
        except RaftError:  # it does not lead, is overloaded, or nobody knows what became of it
            counts["unanswered"] += 1
