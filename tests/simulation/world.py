"""One simulated world: its nodes, their clients, the network, and two phases.

Safety: faults come by the list while everybody works. Healing: faults stop, and the cluster must
recover within a deadline (INV-15), serve, and have lost nothing. A seed decides everything; the
list of faults may be cut down, and everything else keeps its own chance (shrink.py relies on that).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.chaos.history import happenings as h
from simulation.beats import Meddler
from simulation.channel import SimChannel
from simulation.crowd import Crowd
from simulation.faults import CHANGES, changes_nodes
from simulation.members import MemberPlan
from simulation.nemesis import Nemesis
from simulation.node_changes import Arrival, NodeChanges
from simulation.nodes import MACHINES, NAMES, SimNode, address_of, settings_with
from simulation.operators import LogWatcher, OffsetReader, Operator, Pacer, Sealer, Upgrader
from simulation.peers import Peers
from simulation.populations import Population, computes_beside, drawn, has_heartbeats
from simulation.process import Clock, Process, running
from simulation.recorder import Recorder
from simulation.schedule import US, Schedule
from simulation.storage import OutsideStorage
from simulation.versions import NEWER, first_builds
from simulation.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client._session.session_io import TopicPartition
    from simulation.client_side import Line, Observer
    from simulation.faults import Planned
    from simulation.server_side import SimServer

CLOCK_ERROR: Final = 0.1
REMEDY_US: Final = 8 * US
"""How long it takes somebody to read in the log that a new node's disk is of another cluster."""
LOOK_US: Final = 100_000
"""How often it is looked whether the cluster has healed."""
HEAL_US: Final = 40 * US
"""A cluster that has not healed by then never will."""
DRAIN_US: Final = 2 * US
"""How long the nodes have, after the last request, to come to the same state."""
CALM_US: Final = 5 * US
"""How long the healed cluster goes on serving before the end."""


class Shape(NamedTuple):
    """How large a world is. `fault_s`: when faults may happen, in seconds from the beginning.

    `kinds`: of its groups (populations.py); none: as the seed draws them. `mixed`: its nodes are of
    two versions at first, and an operator wants the upgrade's end. `pause_ms`: how far two targets
    of a group are apart at first, at least; if there is such a time, an operator changes it.
    `seals`: segments are small, and somebody has the log sealed now and then.
    """

    kinds: tuple[str, ...] = ()
    slots: int = 4
    fault_s: tuple[float, float] = (4.0, 54.0)
    busy: bool = True
    mixed: bool = False
    pause_ms: int = 0
    seals: bool = False


class World:
    """Everything of one run."""

    def __init__(self, seed: int, faults: list[Planned], shape: Shape) -> None:
        kinds = shape.kinds or drawn(seed, mixed_versions=shape.mixed)
        self.seed, self.shape = seed, shape._replace(kinds=kinds)
        self.random = Random(f"{seed} world")
        self.schedule = Schedule()
        self.recorder = Recorder(self.schedule)
        self.observer: Observer = self.recorder
        self.wire = Wire(self.schedule, str(seed))
        self.beats = Meddler(self.schedule)
        self.lines: list[Line] = []
        self._processes: dict[str, Process] = {}
        self._peers = Peers(self.schedule, self.wire, self._chance("peers"))
        planned = any(fault.kind in CHANGES for fault in faults)
        wants_newest = planned or changes_nodes(seed) or has_heartbeats(kinds)
        self._newest = not shape.mixed and wants_newest
        self.changes = NodeChanges(self)
        self.nodes: dict[str, SimNode] = {}
        """All that there ever were, also those that were removed."""
        for name in NAMES:
            self._make(name, NAMES)
        storage = OutsideStorage(self.wire, self.recorder)
        self.crowd = Crowd(
            self.schedule, self.recorder, storage, self._chance("crowd"), lambda: self.addresses
        )
        self.healed_us: int | None = None
        self.healed_index = 0
        """The newest entry at that moment."""
        self.sick = ""
        self._begin(faults)

    def _chance(self, of: str) -> Random:
        return Random(f"{self.seed} {of}")

    # --- the nodes ---

    def _make(self, name: str, file: Sequence[str]) -> SimNode:
        node = SimNode(
            *(name, self.schedule, self._peers, self.recorder, self._chance, file),
            newest=self._newest,
            settings=settings_with(
                beside=computes_beside(self.seed, self.shape.kinds),
                pause_ms=self.shape.pause_ms,
                seals=self.shape.seals,
            ),
        )
        self.nodes[name] = node
        return node

    def join(self, name: str, how: Arrival) -> None:
        """A machine of this name is set up, and its node is started, unless it was removed before.

        Its file names the nodes that the cluster has now.
        """
        now = self.recorder.membership
        if name in now.removed:
            return
        node = self._make(name, sorted({name, *now.names}))
        if how is Arrival.FOUNDED:
            node.found_alone()
            self.schedule.after(REMEDY_US, self._give_an_empty_disk, node)
        node.start(bootstrap=how is Arrival.FLAGGED)

    def _give_an_empty_disk(self, node: SimNode) -> None:
        """Do as the node's log advises; a disk that was replaced meanwhile is left alone."""
        if node.disk.founded_alone:
            node.kill()
            node.replace_disk()
            node.start()

    @property
    def names(self) -> list[str]:
        """The nodes that may be broken: all but those that know that they were removed."""
        return [name for name, node in self.nodes.items() if not node.is_out]

    @property
    def cluster(self) -> list[SimNode]:
        """The nodes of the newest committed membership, but for those that were never there."""
        names = self.recorder.membership.names
        return [node for name, node in self.nodes.items() if name in names]

    @property
    def outlasting(self) -> list[str]:
        """Nodes that run although they were removed."""
        removed = self.recorder.membership.removed
        return [name for name in removed if name in self.nodes and self.nodes[name].runs]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the cluster's nodes listen for clients, as people who keep a list of them know."""
        return tuple(address_of(node.name) for node in self.cluster)

    # --- the population ---

    def _begin(self, faults: list[Planned]) -> None:
        details: h.Fields = {"seed": self.seed, "faults": [list(fault) for fault in faults]}
        began = h.Began(0, h.FORMAT, "simulation", NAMES, CLOCK_ERROR, details)
        self.recorder.add(began)
        self.recorder.add(h.Phase(0, "safety"))
        builds = first_builds(self.seed) if self.shape.mixed else {}
        for node in self.nodes.values():
            node.installed = builds.get(node.name)
            node.start(bootstrap=True)
        self.operator: Operator | None = None
        self.pacer: Pacer | None = None
        self.sealer: Sealer | None = None
        if self.shape.busy:
            self._populate()
        self.nemesis = Nemesis(self, faults)

    def _populate(self) -> None:
        kinds = self.shape.kinds
        groups = [f"group-{number}" for number in range(1, len(kinds) + 1)]
        topics = {f"topic-{n}": self.random.randint(3, 8) for n in range(1, len(groups) + 1)}
        for group, topic, kind in zip(groups, topics, kinds, strict=True):
            population = Population(kind, self.seed, group, self.shape.fault_s)
            for number in range(1, self.shape.slots + 1):
                name = f"{group}-{number}"
                self.crowd.add(name, self._plan_of(group, topic, name, population, number))
        self.operator = Operator(self._outsider("operator"), topics, groups, self.crowd.removable)
        if self.shape.pause_ms:
            self.pacer = Pacer(self._outsider("pacer"), groups)
        if self.shape.seals:
            self.sealer = Sealer(self._outsider("sealer"))
        OffsetReader(self._outsider("offset-reader"), self, groups, topics)
        LogWatcher(self._outsider("watcher-all"), self, self.recorder, "")
        LogWatcher(self._outsider("watcher-one"), self, self.recorder, groups[0])
        if self.shape.mixed:
            Upgrader(self._outsider("upgrader"))

    def _plan_of(
        self, group: str, topic: str, name: str, population: Population, slot: int
    ) -> MemberPlan:
        random = self.random
        static = population.is_static(random)
        session_ms = random.choice((2_000, 3_000, 5_000))
        rebalance_ms = random.choice((2_000, 4_000, 6_000))
        takeover = random.choice(("now", "now", "wait"))
        work_s = random.uniform(0.2, 0.8)
        instance = name if static else None
        times = (session_ms, rebalance_ms, takeover, work_s)
        return MemberPlan(group, (topic,), instance, *times, population, slot)

    def _outsider(self, name: str) -> Process:
        clock = Clock(self.schedule)
        process = Process(name, name, self.schedule, clock, self._chance(name))
        self._processes[name] = process
        return process

    @property
    def outsiders(self) -> list[str]:
        """Machines that are neither nodes nor members."""
        return list(self._processes)

    # --- what channels and faults ask ---

    def open_channel(self, address: str, credentials: object) -> SimChannel:
        """What the client library opens (pinned.py)."""
        del credentials
        process = running.process
        if process is None:
            raise RuntimeError("a channel is opened by nobody")
        return SimChannel(self, process, address)

    def listener(self, address: str) -> SimServer | None:
        """The process that has this port open now."""
        node = self.nodes.get(self.machine(address))
        server = node.server if node is not None and node.runs else None
        return server if server is not None and server.listening else None

    def machine(self, address: str) -> str:
        """The machine with this address."""
        return MACHINES[address]

    def has_power(self, machine: str) -> bool:
        """Whether the machine itself answers."""
        node = self.nodes.get(machine)
        return node is not None and node.has_power

    def lines_to(self, node: SimNode) -> list[Line]:
        """The connections of clients to a node."""
        return [line for line in self.lines if line.is_up and line.server is node.server]

    @property
    def leader(self) -> SimNode | None:
        """The node that leads in the highest term, if any does."""
        leaders = [node for node in self.nodes.values() if node.leads]
        return max(leaders, key=_term, default=None)

    # --- the run ---

    def run(self) -> None:
        """Both phases, to the end."""
        self.schedule.run(round(self.shape.fault_s[1] * US))
        self.nemesis.stop()
        self._mend_everything()
        self.recorder.add(h.Phase(self.schedule.now_us, "healing"))
        healing_us = self.schedule.now_us
        self._look()
        self.schedule.run(healing_us + HEAL_US, lambda: self.healed_us is not None)
        if self.healed_us is not None:
            self._serve_on()
        else:
            self.sick = self._what_is_sick()
        self._finish()

    def _serve_on(self) -> None:
        """A cluster that has healed gets things done (INV-15)."""
        reached = self.recorder.last_index
        asked = bool(self.crowd.alive)
        if self.shape.busy:  # what was told live may have been lost since: it is asked for again
            LogWatcher(self._outsider("watcher-late"), self, self.recorder, "")
        self.schedule.run(self.schedule.now_us + CALM_US)
        if asked and self.recorder.last_index == reached:
            self.sick = f"nothing was recorded in {CALM_US // US} s after index {reached}"

    def _mend_everything(self) -> None:
        for node in self.nodes.values():
            self._give_an_empty_disk(node)
            node.disk.journal.fails = False
            node.stays_down, node.has_power = False, True
            if node.process is not None:
                node.process.resume()
            node.start()
        self.crowd.calm_down()
        for asker in (self.operator, self.pacer, self.sealer):
            if asker is not None:
                asker.active = False

    def _look(self) -> None:
        if self.is_whole:
            self.healed_us, self.healed_index = self.schedule.now_us, self.recorder.last_index
        else:
            self.schedule.after(LOOK_US, self._look)

    @property
    def is_whole(self) -> bool:
        """Every node is a member and up to date, one leads, and every member has its share.

        All know the same nodes, and those that were removed have been told, and have ended.
        """
        nodes = self.cluster
        statuses = [node.engine.status() for node in nodes if node.engine and node.runs]
        leading = [node for node in nodes if node.replica and node.replica.leading_term]
        return (
            len(statuses) == len(nodes)
            and all(status.stage == "member" for status in statuses)
            and {status.membership_index for status in statuses} == {self.recorder.membership_index}
            and not self.outlasting
            and len(leading) == 1
            and max(s.evolved_index for s in statuses) - min(s.evolved_index for s in statuses) < 50
            and all(member.is_settled for member in self.crowd.alive)
            and not self._unowned(leading[0])
            and not self._upgrade_is_open
        )

    @property
    def _upgrade_is_open(self) -> bool:
        """Whether all nodes run the newer version, and the level of one is still the older one."""
        replicas = [node.replica for node in self.nodes.values() if node.build == NEWER]
        if not self.shape.busy or len(replicas) < len(self.nodes):
            return False
        return any(each is None or each.state.level < NEWER.newest for each in replicas)

    def _unowned(self, leading: SimNode) -> list[str]:
        """Partitions on which nobody acts, of topics that somebody who is alive works on.

        Whoever went without a word has them until its session runs out; nobody for ever, not even
        where a cooperative assignor takes them from one before it gives them to another (ADR 10).
        """
        topics = leading.replica.state.topics if leading.replica else {}
        owned: dict[str, set[TopicPartition]] = {}
        for member in self.crowd.alive:
            for topic in member.plan.topics:
                owned.setdefault(topic, set()).update(member.acts_on)
        return [
            f"{topic}/{number}"
            for topic, own in owned.items()
            if topic in topics
            for number in range(topics[topic].num_partitions)
            if (topic, number) not in own
        ]

    def _what_is_sick(self) -> str:
        """Why it has not healed, for people."""
        nodes = {
            name: (node.engine.status() if node.engine and node.runs else "down")
            for name, node in self.nodes.items()
            if not node.is_out
        }
        leading = [name for name, node in self.nodes.items() if node.leads]
        unsettled = {m.who: m.phase for m in self.crowd.alive if not m.is_settled}
        unowned = [what for name in leading for what in self._unowned(self.nodes[name])]
        who = f"members that are not settled: {unsettled}, partitions of nobody: {unowned}"
        who += ", the upgrade has not ended" if self._upgrade_is_open else ""
        return f"{who}, leaders: {leading}, nodes: {nodes}"

    def _finish(self) -> None:
        """Let nobody ask for anything more, and compare what the nodes hold."""
        for member in self.crowd.alive:
            member.process.kill()
        for process in self._processes.values():
            if process.alive:
                process.kill()
                self.recorder.died(process.name)
        self.schedule.run(self.schedule.now_us + DRAIN_US)
        self.schedule.run(self.schedule.now_us + DRAIN_US, lambda: self._agree)
        if not self._agree and not self.sick:
            self.sick = f"the nodes did not come to one state: {self._what_is_sick()}"
        if not self._tell_alike and not self.sick:
            self.sick = "the nodes tell differently of the groups' rebalances"
        for node in self.cluster:
            if node.runs and node.replica is not None and node.replica.state.applied_index:
                self.recorder.digest_now(node)
        self.recorder.add(h.Phase(self.schedule.now_us, "end"))

    @property
    def _agree(self) -> bool:
        """Whether all nodes have applied the same."""
        replicas = [node.replica for node in self.cluster if node.replica and node.runs]
        reached = {(each.state.applied_index, each.chain_head) for each in replicas}
        return len(replicas) == len(self.cluster) and len(reached) == 1

    @property
    def _tell_alike(self) -> bool:
        """Whether all nodes tell the same of rebalances; no digest covers that."""
        told = [node.replica.histories for node in self.cluster if node.replica and node.runs]
        return all(histories == told[0] for histories in told)

    @property
    def processes(self) -> list[Process]:
        """All processes that were ever made, dead ones included."""
        members = [member.process for slot in self.crowd.slots for member in slot.members]
        nodes = [process for node in self.nodes.values() for process in node.processes]
        return [*nodes, *self._processes.values(), *members]

    def close(self) -> None:
        """Let go of everything: what is unfinished ends here, not when memory is collected."""
        for process in self.processes:
            process.bury()
        self.schedule.clear()


def _term(node: SimNode) -> int:
    return node.engine.status().term if node.engine is not None else 0
