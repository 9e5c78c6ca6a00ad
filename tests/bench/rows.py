"""The rows by name, in the order in which they run, and running them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import grpc.aio

from bench import (
    assigning,
    backing_up,
    bare,
    changes,
    consumer,
    door,
    empty,
    expiring,
    faults,
    folding,
    heartbeats,
    hostile,
    peers,
    rebalances,
    replaying,
    sealing,
    soaking,
    starting,
    weighing,
)
from bench.figures import REST
from bench.rig import Bench

ROWS: Final[dict[str, Callable[[Bench], Awaitable[None]]]] = {
    "bare": bare.bare,
    "replace": changes.replacement,
    "commit": changes.commits,
    "many": changes.many,
    "heartbeat": heartbeats.unary_and_streamed,
    "scale-up": rebalances.scale_up,
    "rolling": rebalances.rolling,
    "consumer": consumer.consumer,
    "failover": faults.failover,
    "burst": faults.burst,
    "crowd": heartbeats.crowd,
    "expire": expiring.expire,
    "empty": empty.empty,
    "start": starting.start,
    "fold": folding.fold,
    "door": door.door,
    "assign": assigning.assignors,
    "hostile": hostile.hostile,
    "disk": weighing.disk,
    "seal": sealing.seal,
    "backup": backing_up.backup,
    "soak": soaking.soak,
    "replay": replaying.replay,
    "etcd": peers.etcd,
}


async def measure(bench: Bench, names: Sequence[str]) -> dict[str, str]:
    """Run rows one after another; what went wrong, by row. `bench.lacking` has what they lack."""
    failed: dict[str, str] = {}
    for name in names:
        bench.say(f"{name}: {(ROWS[name].__doc__ or '').splitlines()[0]}")
        try:
            async with asyncio.timeout(bench.sizes.seconds_max(name)):
                await bench.attempt(name, REST, ROWS[name](bench))
        except Exception as error:  # noqa: BLE001 - the other rows are still worth having
            failed[name] = _why(error)
            bench.say(f"{name}: FAILED: {failed[name]}")
    return failed


def _why(error: Exception) -> str:
    """In one line; gRPC's own text has many."""
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"
