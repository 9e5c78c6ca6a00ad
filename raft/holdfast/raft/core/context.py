"""What every concern is given: this node's name, time, chance, the log and `Ready`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from holdfast.raft.api import Settings
    from holdfast.raft.core.log import Log
    from holdfast.raft.core.raft_state import RaftState
    from holdfast.raft.core.ready import Ready
    from holdfast.raft.core.switches import Switch


@dataclass(frozen=True, slots=True)
class Context:
    """Shared by all concerns."""

    node_id: str
    cluster_id: str
    settings: Settings
    switches: frozenset[Switch]
    now: Callable[[], float]
    """The boot clock (S10), in seconds; any thread may read it."""
    random: Random
    state: RaftState
    log: Log
    """Without its flush, which is `Completion`'s (E-5)."""
    ready: Ready

    def on(self, switch: Switch) -> bool:
        """Return whether a defence is in force; always true outside the test harness."""
        return switch in self.switches

    def election_timeout(self) -> float:
        """Draw a timeout between the election minimum and maximum, in seconds."""
        return self.random.uniform(self.settings.election_min, self.settings.election_max)
