"""Whether a node lives, and whether it is ready: a few checks, each with a sentence if it fails.

A machine that restarts what does not live asks the first, one that sends clients asks the second
(Kubernetes calls them liveness and readiness). A node that waits for its disk or for a majority
lives: a restart would help neither. Knows the replica, not HTTP.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.raft.open import boot_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.raft.api import Status
    from holdfast.runtime.ports import ReplicaLike

LAG_S_MAX: Final = 5.0
"""Seconds for which a ready node may not have had the newest state."""
LOOK_S: Final = 0.25
"""How often it is looked how far the state is behind."""

_STAGES: Final = {
    "forming": "the cluster forms: its first start needs all nodes",
    "rebuilding": "this node has a new disk and fetches everything from its peers",
    "member": "",
}

_BEHIND: Final = (
    "this node was started, and has not applied all that was committed before, or has not heard a "
    "leader yet that knows how far that was: until then it answers no reads"
)

_UNRECOVERED: Final = (
    "the cluster was restored, and the entry that raises its recovery number is not applied yet: "
    "until then a fencing token could be issued twice"
)


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    problem: str
    """A sentence without its full stop; empty if all is well."""


class Freshness:
    """When a node's state was known to be the newest, in seconds of the boot clock.

    A follower hears which entry is the last committed one. Once that is applied, the state was the
    newest when it was heard; meanwhile the leader may have gone on.
    """

    def __init__(self, replica: ReplicaLike, now: Callable[[], float]) -> None:
        self._replica, self._now = replica, now
        self._newest_at = now()
        self._index, self._heard_at = 0, float("-inf")

    def look(self) -> None:
        """Compare what is applied with what was heard."""
        status, applied = self._replica.status(), self._replica.state.applied_index
        if self._replica.lease_valid() and applied >= status.commit_index:
            self._newest_at = self._now()
        elif applied >= self._index:
            self._newest_at = max(self._newest_at, self._heard_at)
            self._index, self._heard_at = status.current_index, status.current_at

    def age_s(self) -> float:
        """Return for how long the state may not have been the newest."""
        self.look()
        if self._replica.state.applied_index >= self._index:
            self._newest_at = max(self._newest_at, self._heard_at)
        return max(0.0, self._now() - self._newest_at)


class Readiness:
    """The checks of one node, from before its data is opened until its end."""

    def __init__(self, now: Callable[[], float] = boot_seconds) -> None:
        self._now = now
        self._replica: ReplicaLike | None = None
        self._freshness: Freshness | None = None
        self._must_recover: Callable[[], bool] = lambda: False
        self._caught_up: Callable[[], bool] = lambda: False
        self._stopped_because, self._stopping = "", False
        self._looking: asyncio.Task[None] | None = None

    def opened(
        self,
        replica: ReplicaLike,
        must_recover: Callable[[], bool],
        caught_up: Callable[[], bool],
    ) -> None:
        """Note that the node has opened its data.

        `must_recover`: whether what its disk says of a restore is not on the log yet (S13).
        `caught_up`: whether its state is no older than what it may have told before (S4).
        """
        self._must_recover, self._caught_up = must_recover, caught_up
        self._replica, self._freshness = replica, Freshness(replica, self._now)
        replica.subscribe(on_stopped=self._on_stopped)
        self._looking = asyncio.create_task(self._look(self._freshness))

    def stopping(self) -> None:
        """Note that the node is about to stop: nobody should be sent to it any more."""
        self._stopping = True
        if self._looking is not None:
            self._looking.cancel()

    def _on_stopped(self, reason: str) -> None:
        self._stopped_because = reason

    @staticmethod
    async def _look(freshness: Freshness) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            freshness.look()

    def lives(self) -> list[Check]:
        """Check what a restart may mend. That the loop turns is shown by the answer itself."""
        return [Check("loop", ""), Check("log", self._stopped_because)]

    def is_ready(self) -> list[Check]:
        """Check what it takes to answer clients, or to show them the leader."""
        return [*self.lives(), *self._ready()]

    def _ready(self) -> Iterator[Check]:
        yield Check("running", "this node is stopping" if self._stopping else "")
        if self._replica is None or self._freshness is None:
            yield Check("opened", "this node still reads its data directory")
            return
        status = self._replica.status()
        yield Check("opened", "")
        yield Check("stage", _STAGES[status.stage])
        yield Check("leader", _leader_problem(status))
        yield Check("caught-up", "" if self._caught_up() else _BEHIND)
        yield Check("lag", _lag_problem(self._freshness.age_s()))
        formed = self._replica.state.cluster_id
        yield Check(
            "state", "" if formed else "the log's first record, the cluster, is not applied"
        )
        yield Check("recovered", _UNRECOVERED if self._must_recover() else "")


def _leader_problem(status: Status) -> str:
    if status.leader:
        return ""
    return "no leader is known: nodes vote, or fewer than a majority of them reach each other"


def _lag_problem(age_s: float) -> str:
    if age_s <= LAG_S_MAX:
        return ""
    return (
        f"for {age_s:.0f} s this node may not have had the newest state: it applies entries more "
        "slowly than they come, or it does not hear the leader"
    )
