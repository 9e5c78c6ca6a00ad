"""Faults of processes: nodes that die, freeze and restart, clients that freeze and die.

The leadership is transferred as well. Clients freeze, also for longer than their session, or die
without leaving. Knows no file of a node and no link.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.chaos.nemesis.fault_context import FaultContext, Kind
from holdfast.client import HoldfastError

_PAUSE_S = (0.3, 4.0)


async def kill_leader(context: FaultContext) -> int:
    """Kill the leader: the others must elect a new one."""
    leader = await context.target.leader()
    with context.fault("kill-leader", leader) as moment:
        await context.target.kill(leader)
        await context.served_again(moment)
        await context.target.bring_back(leader)
    return moment


async def kill_follower(context: FaultContext) -> None:
    """Kill a follower: the others go on serving."""
    follower = await context.follower()
    with context.fault("kill-follower", follower) as moment:
        await context.target.kill(follower)
        await context.served_again(moment)
        await context.hold(0.0, 1.0)
        await context.target.bring_back(follower)


async def kill_all(context: FaultContext) -> None:
    """Kill all nodes at once, as a power cut does; the disks keep what was synced."""
    names = context.target.names
    with context.fault("kill-all", ",".join(names)):
        await context.target.kill(*names)
        await context.target.bring_back(*names)


@asynccontextmanager
async def frozen(context: FaultContext, kind: str, name: str) -> AsyncIterator[int]:
    """Freeze a node (SIGSTOP) while the body runs."""
    with context.fault(kind, name) as moment:
        context.target.signal(name, signal.SIGSTOP)
        try:
            yield moment
        finally:
            context.target.signal(name, signal.SIGCONT)


async def pause_leader(context: FaultContext) -> int | None:
    """Freeze the leader: it wakes up deposed and must notice (S10), or wakes up in time."""
    leader = await context.target.leader()
    lost = context.random.random() < 0.7  # noqa: PLR2004 - most pauses are long enough
    async with frozen(context, "pause-leader", leader) as moment:
        if lost:
            await context.served_again(moment)
            await context.hold(0.0, 2.0)
        else:
            await context.hold(0.1, 0.9)
    return moment if lost else None


async def pause_follower(context: FaultContext) -> None:
    """Freeze a follower: it wakes up behind, with old messages in its sockets."""
    async with frozen(context, "pause-follower", await context.follower()):
        await context.hold(*_PAUSE_S)


async def pause_follower_kill_leader(context: FaultContext) -> int:
    """Run the sequence in which stock PySyncObj loses acknowledged entries (E-2, S19)."""
    leader = await context.target.leader()
    late = context.random.choice(context.target.others(leader))
    async with frozen(context, "pause-follower", late):
        await context.hold(0.5, 2.0)
        moment = context.begin("kill-leader", leader)
        await context.target.kill(leader)
    await context.served_again(moment)
    await context.target.bring_back(leader)
    context.end("kill-leader", leader)
    return moment


async def restart(context: FaultContext) -> None:
    """Restart a node (SIGTERM): a leader transfers the leadership first (S10 d)."""
    name, _ = await context.someone()
    with context.fault("restart", name):
        await context.target.stop(name)
        await context.target.bring_back(name)


async def rolling_restart(context: FaultContext) -> None:
    """Restart all nodes, one after another, as an upgrade does."""
    with context.fault("rolling-restart", ",".join(context.target.names)):
        for name in context.target.names:
            await context.target.stop(name)
            await context.target.bring_back(name)
            await context.target.whole()


async def transfer(context: FaultContext) -> None:
    """Transfer the leadership to another node, several times in a row."""
    for _ in range(context.random.randint(1, 3)):
        leader = await context.target.leader()
        heir = context.random.choice(context.target.others(leader))
        with context.fault("transfer", heir):
            try:
                await context.admin.transfer_leadership(heir)
            except HoldfastError:
                await asyncio.sleep(0.2)  # refused, or unknown: the cluster goes on in both cases
            await context.target.leader()


async def seal_and_kill(context: FaultContext) -> int | None:
    """Have the log sealed by two calls at once, and kill a node, which may be sealing (S22)."""
    name, led = await context.someone()
    asked = asyncio.gather(*(_sealed(context) for _ in range(2)))
    try:
        await context.hold(0.0, 1.5)
        with context.fault("seal-and-kill", name) as moment:
            await context.target.kill(name)
            await context.served_again(moment)
            await context.target.bring_back(name)
    finally:
        await asked
    return moment if led else None


async def _sealed(context: FaultContext) -> None:
    try:
        await context.admin.seal_log()
    except HoldfastError:
        return  # unknown: whether there is a boundary, the log tells


async def client_pause(context: FaultContext) -> None:
    """Freeze a worker for less or more than its session; then it must know (S11)."""
    worker = context.random.choice(context.workers.running)
    seconds = context.random.uniform(0.3, 1.6) * context.session_s
    with context.fault("client-pause", f"client:{worker.task.number}", seconds=seconds):
        await context.workers.freeze(worker, seconds)


async def client_kill(context: FaultContext) -> None:
    """Kill a worker with all its members; another one takes its slots."""
    worker = context.random.choice(context.workers.running)
    context.begin("client-kill", f"client:{worker.task.number}")
    await context.workers.kill(worker)


KINDS = (
    Kind("kill-leader", "kill -9 of the node that leads", kill_leader),
    Kind("kill-follower", "kill -9 of a node that does not lead", kill_follower),
    Kind("kill-all", "kill -9 of all nodes at once", kill_all),
    Kind(
        "pause-leader", "SIGSTOP of the leader, shorter and longer than an election", pause_leader
    ),
    Kind("pause-follower", "SIGSTOP of a follower", pause_follower),
    Kind(
        "pause-follower-kill-leader",
        "a follower falls behind while frozen, then the leader is killed and it wakes up",
        pause_follower_kill_leader,
    ),
    Kind("restart", "SIGTERM and start again, of any node", restart),
    Kind(
        "rolling-restart", "SIGTERM and start again, all nodes in turn", rolling_restart, slow=True
    ),
    Kind(
        "seal-and-kill", "the log is sealed by two calls, and a node dies meanwhile", seal_and_kill
    ),
    Kind("transfer", "the leadership is handed over, up to three times in a row", transfer),
)
CLIENT_KINDS = (
    Kind("client-pause", "SIGSTOP of a process of members, up to 1.6 sessions", client_pause),
    Kind("client-kill", "kill -9 of a process of members; another takes over", client_kill),
)
