"""Carries out the planned faults, and takes each back when its time is over.

Each kind is one function that breaks something and returns what mends it; None: there was nothing
to break (a node that is down cannot crash), and the fault did not happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from holdfast.chaos.history.happenings import Fault
from holdfast.raft.api import RaftError
from holdfast.raft.membership import AddLearner, Change
from simulation.faults import BEATS
from simulation.node_changes import VOTERS_MIN
from simulation.nodes import SimNode, is_member
from simulation.versions import BUILDS

if TYPE_CHECKING:
    from simulation.crowd import Slot
    from simulation.faults import Planned
    from simulation.process import Clock, Process
    from simulation.wire import Path
    from simulation.world import World

Mend = Callable[[], None]


def _nothing() -> None:
    """What is over at once needs no mending."""


class Nemesis:
    """Breaks a world by a list."""

    def __init__(self, world: World, faults: list[Planned]) -> None:
        self._world = world
        self.counts: Counter[str] = Counter()
        self._mending: dict[int, tuple[Planned, str, Mend]] = {}
        for fault in faults:
            world.schedule.at(fault.at_us, self._begin, fault)

    def _begin(self, fault: Planned) -> None:
        random = Random(f"{self._world.seed} fault {fault.number}")
        target, mend = _ACTS[fault.kind](self._world, fault, random)
        if mend is None:
            return
        self.counts[_counted_as(fault)] += 1
        details = {"number": fault.number, "lasts_us": fault.lasts_us, "amount": fault.amount}
        self._world.recorder.add(Fault(self._now, fault.kind, target, "begin", details))
        if mend is not _nothing:
            self._mending[fault.number] = fault, target, mend
            self._world.schedule.after(fault.lasts_us, self._end, fault.number)

    @property
    def _now(self) -> int:
        return self._world.schedule.now_us

    def _end(self, number: int) -> None:
        found = self._mending.pop(number, None)
        if found is None:
            return
        fault, target, mend = found
        mend()
        self._world.recorder.add(Fault(self._now, fault.kind, target, "end", {"number": number}))

    def stop(self) -> None:
        """Take back whatever still lasts."""
        for number in sorted(self._mending):
            self._end(number)


def _counted_as(fault: Planned) -> str:
    """A cut of every node's power is told apart: nobody is left who remembers for the others."""
    return f"{fault.kind}-of-all" if fault.target == "all" else fault.kind


# --- whom it hits ---


def _node(world: World, target: str, random: Random) -> SimNode:
    """A node by its role or name; any will do for one that is not there."""
    leader, names = world.leader, world.names
    if target == "follower":
        others = [name for name in names if leader is None or name != leader.name]
        return world.nodes[random.choice(others)]
    if target == "leader" and leader is not None:
        return leader
    return world.nodes[target if target in names else random.choice(names)]


def _several(world: World, target: str, random: Random) -> list[SimNode]:
    if target == "all":
        return [world.nodes[name] for name in world.names]
    if target == "two":
        return [world.nodes[name] for name in sorted(random.sample(world.names, 2))]
    return [_node(world, target, random)]


def _slot(world: World, target: str) -> Slot:
    slots = world.crowd.slots
    return slots[int(target.partition(":")[2]) % len(slots)]


# --- processes and machines ---

Result = tuple[str, Mend | None]


def _crash(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    if not node.runs:
        return node.name, None
    node.stays_down = True
    node.kill()
    return node.name, lambda: _start(node)


def _start(node: SimNode) -> None:
    node.stays_down = False
    node.has_power = True
    node.start()


def _restart(world: World, fault: Planned, random: Random) -> Result:
    """A graceful one: SIGTERM, and a start when it has ended."""
    node = _node(world, fault.target, random)
    process = node.process
    if process is None or not process.runs or node.node is None:
        return node.name, None
    node.stays_down = True
    process.start(node.stop_gracefully())

    def mend() -> None:
        node.kill()
        _start(node)

    return node.name, mend


def _pause(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    process = node.process
    if process is None or not process.runs:
        return node.name, None
    process.pause()
    return node.name, process.resume


def _power_cut(world: World, fault: Planned, random: Random) -> Result:
    nodes = _several(world, fault.target, random)
    for node in nodes:
        node.stays_down, node.has_power = True, False
        node.kill()

    def mend() -> None:
        for node in nodes:
            _start(node)

    return ",".join(node.name for node in nodes), mend


def _exchange(world: World, fault: Planned, random: Random) -> Result:
    """A node becomes another version: a graceful restart; one that is down starts as it later."""
    node = world.nodes[fault.target]
    node.installed = BUILDS[fault.kind]
    name, mend = _restart(world, fault, random)
    if mend is None and node.runs:  # it stands still, or still opens its directory
        node.kill()
        node.start_later(fault.lasts_us)
    return name, mend or _nothing


def _pause_then_crash(world: World, fault: Planned, random: Random) -> Result:
    """The one that the stock engine loses data by: a follower stands still, the leader dies."""
    leader = world.leader
    follower = _node(world, "follower", random)
    if leader is None or follower.process is None or not follower.process.runs:
        return "", None
    follower.process.pause()
    process = follower.process

    def crash() -> None:
        leader.stays_down = True
        leader.kill()
        process.resume()

    crashing = world.schedule.after(fault.lasts_us // 3, crash)

    def mend() -> None:
        crashing.cancel()
        process.resume()
        _start(leader)

    return f"{follower.name},{leader.name}", mend


def _transfer(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    if not node.leads or node.replica is None:
        return node.name, None
    others = [name for name in node.replica.membership.voter_names if name != node.name]
    if not others:
        return node.name, None
    to = random.choice(others)
    try:
        node.replica.transfer(to)
    except RaftError:
        return node.name, None
    return f"{node.name},{to}", _nothing


def _clock_rate(world: World, fault: Planned, random: Random) -> Result:
    if fault.target.startswith("client:"):
        slot = _slot(world, fault.target)
        loops = [(member.process, member.clock_changed) for member in slot.members]
        name, clock = f"client:{slot.name}", slot.clock
    else:
        node = _node(world, fault.target, random)
        loops = [(node.process, _nothing)] if node.process is not None else []
        name, clock = node.name, node.clock
    _set_rate(clock, fault.amount, loops)
    return name, lambda: _set_rate(clock, 1.0, loops)


def _set_rate(clock: Clock, rate: float, loops: list[tuple[Process, Mend]]) -> None:
    clock.set_rate(rate)
    for process, tell in loops:
        process.loop.clock_changed()
        tell()


# --- disks ---


def _slow_disk(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    node.disk.journal.slowness_us = round(fault.amount * 1e6)

    def mend() -> None:
        node.disk.journal.slowness_us = 0

    return node.name, mend


def _failed_sync(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    if not node.runs:
        return node.name, None
    node.disk.journal.fails = True
    return node.name, _nothing


def _snapshot(world: World, fault: Planned, random: Random) -> Result:
    node = _node(world, fault.target, random)
    if not node.runs:
        return node.name, None
    node.take_snapshot()
    return node.name, _nothing


def _new_disk(world: World, fault: Planned, random: Random) -> Result:
    """A follower's disk is replaced (S19); one at a time, and only while the others are whole."""
    node = _node(world, fault.target, random)
    others = [other for other in world.cluster if other is not node]
    whole = all(is_member(other) and other.has_power for other in others)
    if not whole or not is_member(node) or node.leads or not _can_spare_a_disk(world):
        return node.name, None
    node.stays_down = True
    node.kill()
    node.replace_disk()
    return node.name, lambda: _start(node)


def _can_spare_a_disk(world: World) -> bool:
    """Of two voters both disks are needed, and nobody knows how many there will be."""
    return world.changes.is_quiet and len(world.recorder.membership.voters) > VOTERS_MIN


# --- the network ---


def _cut_all(paths: list[Path]) -> Mend:
    for path in paths:
        path.cut()

    def mend() -> None:
        for path in paths:
            path.mend()

    return mend


def _others(world: World, name: str) -> list[str]:
    """Every machine but this one."""
    clients = [slot.name for slot in world.crowd.slots]
    return [each for each in (*world.names, *clients, *world.outsiders) if each != name]


def _partition(world: World, fault: Planned, random: Random) -> Result:
    """A node cannot be reached by anybody."""
    name = _node(world, fault.target, random).name
    paths = [path for each in _others(world, name) for path in world.wire.both(name, each)]
    return name, _cut_all(paths)


def _one_way_in(world: World, fault: Planned, random: Random) -> Result:
    """A node hears none of its peers."""
    name = _node(world, fault.target, random).name
    return name, _cut_all([world.wire.path(peer, name) for peer in world.names if peer != name])


def _one_way_out(world: World, fault: Planned, random: Random) -> Result:
    """A node is heard by none of its peers."""
    name = _node(world, fault.target, random).name
    return name, _cut_all([world.wire.path(name, peer) for peer in world.names if peer != name])


def _leader_cut_off(world: World, fault: Planned, random: Random) -> Result:
    """Its peers do not reach it, its clients do: the one that serves stale reads, if any does."""
    name = _node(world, fault.target, random).name
    peers = [peer for peer in world.names if peer != name]
    return name, _cut_all([path for peer in peers for path in world.wire.both(name, peer)])


def _bridge(world: World, fault: Planned, random: Random) -> Result:
    """Only one node reaches both others, or both halves of the others."""
    middle = _node(world, fault.target, random).name
    others = [name for name in world.names if name != middle]
    here, there = others[: len(others) // 2], others[len(others) // 2 :]
    paths = [path for a in here for b in there for path in world.wire.both(a, b)]
    return f"{'+'.join(here)}-{'+'.join(there)}", _cut_all(paths)


def _client_cut(world: World, fault: Planned, random: Random) -> Result:
    del random
    slot = _slot(world, fault.target)
    paths = [path for node in world.names for path in world.wire.both(slot.name, node)]
    return f"client:{slot.name}", _cut_all(paths)


def _client_pause(world: World, fault: Planned, random: Random) -> Result:
    del random
    slot = _slot(world, fault.target)
    member = slot.current
    if member is None or not member.process.runs:
        return f"client:{slot.name}", None
    member.process.pause()
    return f"client:{slot.name}", member.process.resume


def _beats(world: World, fault: Planned, random: Random) -> Result:
    slot = _slot(world, fault.target)
    return f"client:{slot.name}", world.beats.begin(slot.name, fault.kind, fault.amount, random)


def _connections_reset(world: World, fault: Planned, random: Random) -> Result:
    """Every client's connection to a node breaks; nobody knows what its calls came to."""
    node = _node(world, fault.target, random)
    for line in world.lines_to(node):
        line.reset()
    return node.name, _nothing


def _quality(field: str) -> Callable[[World, Planned, Random], Result]:
    """A fault that makes paths worse, of the nodes only or of everybody."""

    def act(world: World, fault: Planned, random: Random) -> Result:
        del random
        names, machines = world.names, [*world.names]
        if fault.target == "everybody":
            machines += [slot.name for slot in world.crowd.slots]
        paths = [
            path
            for place, a in enumerate(machines)
            for b in machines[place + 1 :]
            if a in names
            for path in world.wire.both(a, b)
        ]
        worse = round(fault.amount * 1e6) if field == "delay_us" else fault.amount
        for path in paths:
            setattr(path, field, worse)

        def mend() -> None:
            for path in paths:
                setattr(path, field, 0)

        return fault.target, mend

    return act


# --- nodes that come and go ---


def _add_node(world: World, fault: Planned, random: Random) -> Result:
    del fault
    return _asked(world, world.changes.new_node(random))


def _promote_node(world: World, fault: Planned, random: Random) -> Result:
    del fault
    return _asked(world, world.changes.promotion(random))


def _remove_node(world: World, fault: Planned, random: Random) -> Result:
    return _asked(world, world.changes.removal(fault.target, random))


def _asked(world: World, change: Change | None) -> Result:
    """Ask for a change until it is made or the time is over."""
    if change is None:
        return "", None
    name = change.node.name if isinstance(change, AddLearner) else change.name
    return name, world.changes.ask(change).stop


_ACTS: Final[dict[str, Callable[[World, Planned, Random], Result]]] = {
    "crash": _crash,
    "restart": _restart,
    "pause": _pause,
    "power-cut": _power_cut,
    "partition": _partition,
    "one-way-in": _one_way_in,
    "one-way-out": _one_way_out,
    "leader-cut-off": _leader_cut_off,
    "bridge": _bridge,
    "loss": _quality("loss"),
    "delay": _quality("delay_us"),
    "doubling": _quality("doubling"),
    "reordering": _quality("reordering"),
    "slow-disk": _slow_disk,
    "failed-sync": _failed_sync,
    "clock-rate": _clock_rate,
    "snapshot": _snapshot,
    "transfer": _transfer,
    "new-disk": _new_disk,
    **dict.fromkeys(BUILDS, _exchange),
    "client-pause": _client_pause,
    "client-cut": _client_cut,
    "connections-reset": _connections_reset,
    **dict.fromkeys(BEATS, _beats),
    "pause-then-crash": _pause_then_crash,
    "add-node": _add_node,
    "promote-node": _promote_node,
    "remove-node": _remove_node,
}
