"""The leader-local part of a group (S16): plain data, never on the log, gone with the leadership.

Parked calls, pending member ids, renewals and what is armed. `decide` returns a new one with each
decision; it is adopted when the decision's events are committed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from holdfast.coordinator.model.events import TopicSize
from holdfast.coordinator.model.ids import CallId, Life, MemberId, RequestId, TopicName
from holdfast.coordinator.structures.pmap import PMap

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
REBALANCE: Final = "rebalance"
"""A member of the heartbeat protocol must give partitions up in time (K-M25); key: member id."""
COMPUTE: Final = "compute"
"""The chosen member must install a target in time, else another one is chosen; key: ""."""
OVERSIZE: Final = "oversize"
"""A new leader found more members than the group may have (K-I13); fires at once; key: ""."""


class DeadlineKey(NamedTuple):
    """Names a deadline of a group; at most one of a key is armed at a time."""

    kind: str
    member_id: MemberId = ""


class ParkedJoin(NamedTuple):
    """A JoinGroup that waits for the join phase to close."""

    call: CallId
    """0: the call is broken, but the member did rejoin."""
    request_id: RequestId
    is_new: bool


class ParkedSync(NamedTuple):
    """A SyncGroup that waits for the group leader's assignment."""

    call: CallId
    request_id: RequestId


class Pending(NamedTuple):
    """A member id given out by MEMBER_ID_REQUIRED (KIP-394)."""

    request_id: RequestId
    """The request that it was given to (S14)."""


class Support(NamedTuple):
    """The support of protocols by a group's members."""

    names: PMap[str, int] = PMap()
    """How many members support each protocol."""
    size: int = 0
    """The bytes of all members' protocols (S7)."""


class InitialDelay(NamedTuple):
    """Keeps the first join phase of an empty group open (K-D1), since other members may come."""

    length_ms: int
    """The length of the delay that runs."""
    left_ms: int
    """By how much it may still be prolonged."""
    joined: bool = False
    """Whether a member joined since it was armed; only then it is prolonged (K-D2)."""

    @classmethod
    def begin(cls, delay_ms: int, timeout_ms: int) -> InitialDelay:
        """Start a delay of `delay_ms` in a join phase that may last `timeout_ms`."""
        return cls(delay_ms, max(timeout_ms - delay_ms, 0))

    def prolonged(self, delay_ms: int) -> InitialDelay | None:
        """Return the delay that follows this one; None: no member came, or the time is up."""
        if not (self.joined and self.left_ms):
            return None
        left_ms = max(self.left_ms - self.length_ms, 0)
        return InitialDelay(min(delay_ms, self.left_ms), left_ms)


class RegexLookup(NamedTuple):
    """The last search for the topics that a group's regular expressions match."""

    asked_ms: int
    """Log time of its beginning."""
    newest_index: int
    """When the newest of the topics was created that there were then."""
    under_way: bool
    """Nothing was found yet."""
    looked_index: int = 0
    """The last entry that was applied when topics were looked at for the last result."""
    in_vain: frozenset[str] = frozenset()
    """What matched more topics than can be written (S7); to search again at once would not help."""


class TargetWork(NamedTuple):
    """A target that is computed beside the group's work, or the last one that was (K-M20)."""

    epoch: int
    """The group epoch that it answers."""
    asked_ms: int
    """Log time at which it was asked for."""
    under_way: bool
    tries: int
    """How many in a row were asked for since there was a target; the last included."""


class HeardBeat(NamedTuple):
    """The last heartbeat of a member that was heard (S26)."""

    life: Life
    beat: int
    """Its number in that life: the highest one."""


class LoweredSession(NamedTuple):
    """A shorter session timeout that a member was told, and may not have heard (S11)."""

    to_ms: int
    until_ms: int
    """Log time at which what it knew before must have run out."""


class Volatile(NamedTuple):
    """All that the leader knows of a group beside the log."""

    joins: PMap[MemberId, ParkedJoin] = PMap()
    syncs: PMap[MemberId, ParkedSync] = PMap()
    pending: PMap[MemberId, Pending] = PMap()
    armed: PMap[DeadlineKey, int] = PMap()
    """The arming number of each running deadline (S9)."""
    renewals: PMap[MemberId, int] = PMap()
    """How often each member's session was renewed since it was armed."""
    awaiting_sync: PMap[MemberId, bool] = PMap()
    """Members that were answered in this generation and have not synced."""
    next_arming: int = 1
    initial_delay: InitialDelay | None = None
    """Set while it runs, so that the join phase does not close early (K-D4)."""
    calls: PMap[CallId, MemberId] = PMap()
    """The member of each parked call."""
    offered: PMap[RequestId, MemberId] = PMap()
    """The pending member id that a request was given."""
    support: Support | None = None
    """Counted when first needed, so that a join need not look at all members."""
    topics_seen: PMap[TopicName, TopicSize] | None = None
    """The topics with which the group's digest was compared last; these need no second look."""
    confirmed: PMap[MemberId, int] = PMap()
    """The epoch at which a member was heard while it waited for partitions of others: the answer
    that told it was not lost, so the epoch before it counts no more (K-M11)."""
    beats: PMap[MemberId, HeardBeat] = PMap()
    """The last heartbeat of each member that numbers them."""
    lowered: PMap[MemberId, LoweredSession] = PMap()
    """The members whose session timeout is being lowered."""
    regex_lookup: RegexLookup | None = None
    """None: this leader has not searched yet."""
    target_work: TargetWork | None = None
    """None: no target was asked for since the last one was stored."""
