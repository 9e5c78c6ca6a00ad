"""Nodes that die, freeze, and go for a planned restart: signals, and the leadership handed over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.chaos.nemesis.battle import Battle, Kind
from holdfast.client import HoldfastError

_PAUSE_S = (0.3, 4.0)


async def kill_leader(battle: Battle) -> int:
    """The others must elect one of them."""
    leader = await battle.target.leader()
    with battle.fault("kill-leader", leader) as moment:
        await battle.target.kill(leader)
        await battle.served_again(moment)
        await battle.target.bring_back(leader)
    return moment


async def kill_follower(battle: Battle) -> None:
    """The other two go on as if nothing had happened."""
    follower = await battle.follower()
    with battle.fault("kill-follower", follower) as moment:
        await battle.target.kill(follower)
        await battle.served_again(moment)
        await battle.hold(0.0, 1.0)
        await battle.target.bring_back(follower)


async def kill_all(battle: Battle) -> None:
    """At one blow, as when the power of a machine fails; the disks keep what was synced."""
    names = battle.target.names
    with battle.fault("kill-all", ",".join(names)):
        await battle.target.kill(*names)
        await battle.target.bring_back(*names)


@asynccontextmanager
async def frozen(battle: Battle, kind: str, name: str) -> AsyncIterator[int]:
    """SIGSTOP for as long as the block runs."""
    with battle.fault(kind, name) as moment:
        battle.target.signal(name, signal.SIGSTOP)
        try:
            yield moment
        finally:
            battle.target.signal(name, signal.SIGCONT)


async def pause_leader(battle: Battle) -> int | None:
    """It wakes up deposed and must know it (S10), or wakes up before anybody noticed."""
    leader = await battle.target.leader()
    lost = battle.random.random() < 0.7  # noqa: PLR2004 - most pauses are long enough
    async with frozen(battle, "pause-leader", leader) as moment:
        if lost:
            await battle.served_again(moment)
            await battle.hold(0.0, 2.0)
        else:
            await battle.hold(0.1, 0.9)
    return moment if lost else None


async def pause_follower(battle: Battle) -> None:
    """It wakes up behind, with old messages in its sockets."""
    async with frozen(battle, "pause-follower", await battle.follower()):
        await battle.hold(*_PAUSE_S)


async def pause_follower_kill_leader(battle: Battle) -> int:
    """The sequence in which stock PySyncObj loses what it acknowledged (E-2, S19)."""
    leader = await battle.target.leader()
    late = battle.random.choice(battle.target.others(leader))
    async with frozen(battle, "pause-follower", late):
        await battle.hold(0.5, 2.0)
        moment = battle.begin("kill-leader", leader)
        await battle.target.kill(leader)
    await battle.served_again(moment)
    await battle.target.bring_back(leader)
    battle.end("kill-leader", leader)
    return moment


async def restart(battle: Battle) -> None:
    """SIGTERM: a leader hands over first (S10 d), nobody should notice much."""
    name, _ = await battle.someone()
    with battle.fault("restart", name):
        await battle.target.stop(name)
        await battle.target.bring_back(name)


async def rolling_restart(battle: Battle) -> None:
    """All nodes, one after another, as an upgrade does it."""
    with battle.fault("rolling-restart", ",".join(battle.target.names)):
        for name in battle.target.names:
            await battle.target.stop(name)
            await battle.target.bring_back(name)
            await battle.target.whole()


async def transfer(battle: Battle) -> None:
    """The leadership is handed to another node, some times in a row."""
    for _ in range(battle.random.randint(1, 3)):
        leader = await battle.target.leader()
        heir = battle.random.choice(battle.target.others(leader))
        with battle.fault("transfer", heir):
            try:
                await battle.admin.transfer_leadership(heir)
            except HoldfastError:
                await asyncio.sleep(0.2)  # refused, or nobody knows: the cluster goes on either way
            await battle.target.leader()


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
    Kind("transfer", "the leadership is handed over, up to three times in a row", transfer),
)
