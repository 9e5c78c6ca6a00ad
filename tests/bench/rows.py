"""The rows by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from bench import (
    assigning,
    bare,
    changes,
    expiring,
    faults,
    heartbeats,
    hostile,
    peers,
    rebalances,
    starting,
)
from bench.rig import Bench

ROWS: Final[dict[str, Callable[[Bench], Awaitable[None]]]] = {
    "bare": bare.bare,
    "replace": changes.replacement,
    "commit": changes.commits,
    "many": changes.many,
    "heartbeat": heartbeats.unary_and_streamed,
    "scale-up": rebalances.scale_up,
    "rolling": rebalances.rolling,
    "failover": faults.failover,
    "burst": faults.burst,
    "crowd": heartbeats.crowd,
    "expire": expiring.expire,
    "start": starting.start,
    "assign": assigning.assignors,
    "hostile": hostile.hostile,
    "etcd": peers.etcd,
}
