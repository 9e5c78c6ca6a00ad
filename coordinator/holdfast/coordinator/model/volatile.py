"""The leader-local part of a group (S16): plain data, never on the log, gone with the leadership.

Parked calls, pending member ids, renewals and what is armed. `decide` returns a new one with each
decision; it is adopted when the decision's events are committed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.model.ids import CallId, MemberId, RequestId
from holdfast.coordinator.model.pmap import PMap

SESSION: Final = "session"
"""A member's session (K-F9); key: member id."""
JOIN_GUARD: Final = "join"
"""The first join of a new member may be parked for 5 minutes at most (K-A21); key: member id."""
PENDING: Final = "pending"
"""A member id that was handed out and not used yet (K-A7); key: member id."""
JOIN_PHASE: Final = "round"
"""The open join phase: initial delay or rebalance timeout (K-D1, K-D5); key: ""."""
SYNC: Final = "sync"
"""Members answered in this generation must sync within the rebalance timeout (K-E10); key: ""."""
OVERSIZE: Final = "oversize"
"""A new leader found more members than the group may have (K-I13); fires at once; key: ""."""


class DeadlineKey(NamedTuple):
    """Which deadline of a group; at most one of a key is armed at a time."""

    kind: str
    member_id: MemberId = ""


class ParkedJoin(NamedTuple):
    """A JoinGroup that waits for the join phase to close. `call` 0: broken, but it did rejoin."""

    call: CallId
    request_id: RequestId
    is_new: bool


class ParkedSync(NamedTuple):
    """A SyncGroup that waits for the group leader's assignment."""

    call: CallId
    request_id: RequestId


class Pending(NamedTuple):
    """A member id handed out by MEMBER_ID_REQUIRED (KIP-394), and to which request (S14)."""

    request_id: RequestId


class Support(NamedTuple):
    """Members by the protocols that they support, and the bytes of all members' protocols (S7)."""

    names: PMap[str, int] = PMap()
    size: int = 0


class InitialDelay(NamedTuple):
    """Why the first join phase of an empty group does not close at once (K-D1): others may come.

    `length_ms`: of the delay that runs. `left_ms`: by how much it may still be prolonged. `joined`:
    whether somebody joined since it was armed; then, and only then, it is prolonged (K-D2).
    """

    length_ms: int
    left_ms: int
    joined: bool = False

    @classmethod
    def begin(cls, delay_ms: int, timeout_ms: int) -> InitialDelay:
        """`delay_ms`: as the setting says. `timeout_ms`: how long the join phase may last."""
        return cls(delay_ms, max(timeout_ms - delay_ms, 0))

    def prolonged(self, delay_ms: int) -> InitialDelay | None:
        """The delay that follows this one; None: nobody came, or the time is up."""
        if not (self.joined and self.left_ms):
            return None
        left_ms = max(self.left_ms - self.length_ms, 0)
        return InitialDelay(min(delay_ms, self.left_ms), left_ms)


class Volatile(NamedTuple):
    """All that the leader knows of a group beside the log.

    `armed`: the arming number of each deadline that is running (S9). `renewals`: how often each
    member's session was renewed since it was armed. `awaiting_sync`: members that were answered in
    this generation and have not synced. `initial_delay`: it runs, so the join phase does not close
    early (K-D4). `calls`: whose call is parked. `offered`: the pending id that a request was given.
    `support`: how many members support each protocol, counted when first needed, so that a join
    need not look at them all.
    """

    joins: PMap[MemberId, ParkedJoin] = PMap()
    syncs: PMap[MemberId, ParkedSync] = PMap()
    pending: PMap[MemberId, Pending] = PMap()
    armed: PMap[DeadlineKey, int] = PMap()
    renewals: PMap[MemberId, int] = PMap()
    awaiting_sync: PMap[MemberId, bool] = PMap()
    next_arming: int = 1
    initial_delay: InitialDelay | None = None
    calls: PMap[CallId, MemberId] = PMap()
    offered: PMap[RequestId, MemberId] = PMap()
    support: Support | None = None
