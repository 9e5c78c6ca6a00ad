"""Faults of the network: partitions of all shapes, delay, resets, connections cut in a message.

The proxies of `cluster.proxy` make them, so the cluster must have been started through these.
Touches no process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from holdfast.chaos.cluster.proxy import CLIENTS, Link
from holdfast.chaos.nemesis.fault_context import FaultContext, Kind

PROXY: Final = "proxy"
_NEEDS: Final = (PROXY,)
_LAST_S: Final = (1.0, 4.0)


@asynccontextmanager
async def cut(context: FaultContext, kind: str, links: Iterable[Link]) -> AsyncIterator[int]:
    """Cut these links while the body runs: silently, or with resets."""
    chosen = list(links)
    silent = context.random.random() < 0.7  # noqa: PLR2004 - most partitions say nothing
    names = ",".join(link.name for link in chosen)
    with context.fault(kind, names, silent=silent) as moment:
        for link in chosen:
            if silent:
                link.stall()
            else:
                link.refuse()
        try:
            yield moment
        finally:
            for link in chosen:
                link.clear()


def _peers_of(context: FaultContext, name: str) -> list[Link]:
    others = context.target.others(name)
    return [link for other in others for link in context.net.between(name, other)]


async def partition(context: FaultContext) -> int:
    """Cut the leader off from all: the others must elect a leader, and it must step down."""
    leader = await context.target.leader()
    links = [*_peers_of(context, leader), context.net.link(CLIENTS, leader)]
    async with cut(context, "partition", links) as moment:
        await context.served_again(moment)
        await context.hold(0.0, 2.0)
    return moment


async def partition_follower(context: FaultContext) -> None:
    """Cut a follower off; when it is back, it must not depose the leader (S10 a)."""
    async with cut(context, "partition-follower", _peers_of(context, await context.follower())):
        await context.hold(*_LAST_S)


async def leader_alone(context: FaultContext) -> int:
    """Cut the leader off from its peers, not from clients: it must not answer reads (S10 c)."""
    leader = await context.target.leader()
    async with cut(context, "leader-alone", _peers_of(context, leader)) as moment:
        await context.served_again(moment)
        await context.hold(0.5, 2.0)
    return moment


async def one_way(context: FaultContext) -> int | None:
    """Cut a node's links in one direction: it hears all and nobody hears it, or the reverse."""
    name, leads = await context.someone()
    mute = context.random.random() < 0.5  # noqa: PLR2004 - half of the time
    links = [
        context.net.link(*((name, other) if mute else (other, name)))
        for other in context.target.others(name)
    ]
    async with cut(context, "one-way", links) as moment:
        if leads:
            await context.served_again(moment)
        await context.hold(*_LAST_S)
    return moment if leads else None


async def bridge(context: FaultContext) -> None:
    """Cut two nodes off from each other; the third one hears both."""
    leader = await context.target.leader()
    other = context.random.choice(context.target.others(leader))
    async with cut(context, "bridge", context.net.between(leader, other)) as moment:
        await context.hold(*_LAST_S)
        await context.served_again(moment)


async def all_apart(context: FaultContext) -> None:
    """Cut all nodes off from each other: no change may be accepted meanwhile."""
    async with cut(context, "all-apart", context.net.of_peers()):
        await context.hold(1.0, 3.0)


async def slow_links(context: FaultContext) -> None:
    """Delay each chunk by 10 to 150 ms, on all links or on those of one node."""
    delay_s = context.random.uniform(0.01, 0.1)
    name, _ = await context.someone()
    some = context.net.of_peers() if context.random.random() < 0.5 else _peers_of(context, name)  # noqa: PLR2004 - half of the time
    with context.fault("slow-links", ",".join(link.name for link in some), delay_s=delay_s):
        for link in some:
            link.slow(delay_s, delay_s / 2)
        try:
            await context.hold(2.0, 5.0)
        finally:
            for link in some:
                link.clear()


async def resets(context: FaultContext) -> None:
    """Reset all connections of a node, several times in a row."""
    name, _ = await context.someone()
    links = [*_peers_of(context, name), context.net.link(CLIENTS, name)]
    with context.fault("resets", name):
        for _ in range(context.random.randint(1, 4)):
            for link in links:
                link.reset()
            await context.hold(0.1, 0.8)


async def cut_messages(context: FaultContext) -> None:
    """Cut connections in the middle of a message, several times."""
    name, _ = await context.someone()
    links = [*_peers_of(context, name), context.net.link(CLIENTS, name)]
    with context.fault("cut-messages", name):
        for _ in range(context.random.randint(2, 5)):
            for link in links:
                link.cut_after(context.random.randint(1, 5_000))
            await context.hold(0.2, 0.8)
        for link in links:
            link.clear()


KINDS = (
    Kind("partition", "the leader is cut off from nodes and clients", partition, _NEEDS),
    Kind("partition-follower", "a follower is cut off from the nodes", partition_follower, _NEEDS),
    Kind(
        "leader-alone", "the leader is cut off from nodes, not from clients", leader_alone, _NEEDS
    ),
    Kind("one-way", "a node is heard by nobody, or hears nobody", one_way, _NEEDS),
    Kind("bridge", "the leader and one other do not hear each other", bridge, _NEEDS),
    Kind("all-apart", "no node hears another", all_apart, _NEEDS),
    Kind("slow-links", "10 to 150 ms delay between nodes", slow_links, _NEEDS),
    Kind("resets", "all connections of a node are reset, again and again", resets, _NEEDS),
    Kind("cut-messages", "connections break in the middle of a message", cut_messages, _NEEDS),
)
