"""One run of a cluster as everybody saw it: calls and answers, what nodes did, what was broken.

The simulator and the runs on real processes write the same happenings, and the checkers judge them.
A history is in the order of one true clock, in microseconds: simulated time, or CLOCK_BOOTTIME of
the one host that everything runs on. The types are here, and what each field means; the form on
disk is in `jsonl`. Knows no checker, no network and no cluster.

Calls have the contract's names (`JoinGroup`, `OffsetCommit`, ...) and these keys, as far as the
request or answer has them; a value is what JSON can hold:

A heartbeat of the heartbeat protocol is one call of it (KIP-848), and has its member epoch as
`generation`: none (0) to join, -1 to leave, -2 to stop, with `release`, while its place is kept.

- arguments: `request_id`, `member_id`, `instance_id`, `generation`, `session_timeout_ms`,
  `rebalance_timeout_ms`; JoinGroup `topics` ([name]); ConsumerGroupHeartbeat `topics` and `owned`
  ([[topic, partition]]), if it says them; LeaveGroup and RemoveMembers `members`
  ([[member id, instance id]]); OffsetCommit `offsets` ([[topic, partition, offset]]); OffsetFetch
  and OffsetDelete `partitions` ([[topic, partition]]); reads `stale_ok`; Heartbeat `release`;
  `duplicate`: true for a repetition of an earlier call with the same request id.
- result: `position` ([index, ordinal]), `member_id`, `generation`, `token`, `session_timeout_ms`,
  `rebalance_timeout_ms`; JoinGroup `leader`; SyncGroup `partitions`; ConsumerGroupHeartbeat, if it
  assigns, `grants` ([[topic, partition, token]]); OffsetFetch `offsets`
  ([[topic, partition, offset]], -1: none); OffsetCommit and OffsetDelete `errors` ([[topic,
  partition, error]], only those that were refused); RemoveMembers and LeaveGroup `errors`
  ([[member id, instance id, error]]); DescribeGroups, for its one group: `state`, `generation`,
  `members` ([[member id, instance id]]), `version`; ConsumerGroupDescribe, for its one group:
  `state`, `generation` (the group epoch), `target_epoch`, `members` ([[member id, instance id,
  epoch]]); a stale read its `index`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

FORMAT: Final = 1
"""Of the files; raised when a reader of today would misread one."""

Partitions: TypeAlias = tuple[tuple[str, int], ...]
"""Topic and number, of each."""

Fields: TypeAlias = dict[str, Any]
"""Named values as JSON has them."""


class Began(NamedTuple):
    """The first line: the run that is judged."""

    at_us: int
    format: int
    source: Literal["simulation", "cluster"]
    nodes: tuple[str, ...]
    """All nodes of the cluster."""
    clock_error: float
    """How far a clock may be from the true rate (0.1: between 0.9 and 1.1); checkers of durations
    allow for it."""
    details: Fields
    """Seed, version, and the like."""


class Invoked(NamedTuple):
    """A call was sent. A retry on the wire is another call with the same `request_id`."""

    at_us: int
    call: int
    """The call's number, unique in the history."""
    who: str
    """The process that calls. A process that starts again is another `who`, and one `who` is one
    member of a group at a time."""
    op: str
    group: str
    arguments: Fields


class Returned(NamedTuple):
    """The outcome of a call, once for each call; a caller that dies has `unknown` at that moment.

    `ok`: the answer has no error, and `result` has what it says. `rejected`: answered with `error`,
    the name of Kafka's code, and it had no effect. `not-applied`: failed, surely without an effect.
    `unknown`: it may have had its effect, may yet have it, or never (S5).
    """

    at_us: int
    call: int
    outcome: Literal["ok", "rejected", "not-applied", "unknown"]
    error: str
    result: Fields


class Granted(NamedTuple):
    """A member may act on these partitions from now on, instead of those it had in this group.

    It lists all rights of the member, partition by partition, and is written whenever one begins or
    ends and another stays: a right that is named again under its token goes on, one that is not
    named has ended.
    """

    at_us: int
    who: str
    group: str
    member_id: str
    instance_id: str
    generation: int
    """Of the newest grant."""
    partitions: Partitions
    token: int
    """Of the newest grant."""
    predecessor_ms: int
    """How long an old holder may still run (S12), by the newest grant."""
    until_us: int = 0
    """When all rights end by the member's own clock if nothing renews them (S11), on the true
    clock; 0: not known."""
    tokens: tuple[int, ...] = ()
    """The token of each partition, if a cooperative member kept some from older grants (ADR 10);
    empty: `token` for all."""

    @property
    def shares(self) -> Iterable[tuple[str, int, int]]:
        """Topic, number and token of each partition."""
        tokens = self.tokens or (self.token,) * len(self.partitions)
        return ((*name, token) for name, token in zip(self.partitions, tokens, strict=True))


class Renewed(NamedTuple):
    """A member's right to act was extended (or, in a rebalance, cut) to `until_us` (S11)."""

    at_us: int
    who: str
    group: str
    member_id: str
    until_us: int


class Surrendered(NamedTuple):
    """A member may not act on anything of the group any more. `crashed`: its process is gone."""

    at_us: int
    who: str
    group: str
    """Empty: all groups that `who` is in."""
    member_id: str
    reason: Literal["revoked", "lost", "fenced", "left", "stopped", "crashed"]


class Wrote(NamedTuple):
    """A member wrote to the storage outside, which compares tokens and answered (S13)."""

    at_us: int
    who: str
    group: str
    topic: str
    partition: int
    token: int
    accepted: bool


class Recorded(NamedTuple):
    """One record of the committed log, when the first node applied it; written once, in log order.

    `records.recorded` makes it.
    """

    at_us: int
    """A run on real processes cannot see the apply: there it is the earliest possible moment."""
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    ordinal: int
    term: int
    group: str
    group_seq: int
    kind: str
    """The event's name."""
    log_time_ms: int
    request_ids: tuple[str, ...]
    """All requests that it serves."""
    fields: Fields
    """The event's content."""
    payload: str = ""
    """The record's bytes in hexadecimal; "" if not kept."""


class Applied(NamedTuple):
    """A node's digest of state and chain (S3), when it had applied the log up to `index`."""

    at_us: int
    node: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    digest: str
    """In hexadecimal."""
    via: Literal["live", "restart", "install", "replay"] = "live"
    """How it got there: `live` at every so many indexes, the others once when it is done. `replay`:
    another reader applied the log, for example from segments."""


class Role(NamedTuple):
    """A node took a role: `leader` once it serves, after its own no-op; `down`: it stopped."""

    at_us: int
    node: str
    role: Literal["leader", "candidate", "follower", "down"]
    term: int
    earliest_us: int = 0
    """When it may have taken it already, where that is not known exactly; 0: not before."""


class NodesChanged(NamedTuple):
    """A node knows that a change of the cluster's nodes is committed (S25)."""

    at_us: int
    node: str
    entry: int
    """The index of the entry of the log that holds the membership."""
    term: int
    """Of that entry; 0: the node does not know it any more."""
    voters: tuple[str, ...]
    learners: tuple[str, ...]
    removed: tuple[str, ...]
    """Names that are never given again."""


class WatchOpened(NamedTuple):
    """A watch begins, or goes on, after a position of the log; `group` "" for all groups."""

    at_us: int
    watch: str
    group: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    ordinal: int


class Watched(NamedTuple):
    """A watch delivered a record."""

    at_us: int
    watch: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    ordinal: int
    group_seq: int
    group: str
    kind: str


class WatchGap(NamedTuple):
    """A watch was told that the records after its position are gone: it must begin anew."""

    at_us: int
    watch: str


class Fault(NamedTuple):
    """A fault was injected, or ended.

    A fault that is over at once (a kill) begins only. One that lasts ends with the same kind and
    target.
    """

    at_us: int
    kind: str
    target: str
    """A node, a link `a-b`, or `client:who`."""
    phase: Literal["begin", "end"]
    details: Fields


class Phase(NamedTuple):
    """Faults happen in `safety`; from `healing` on there are none, and the cluster must recover."""

    at_us: int
    name: Literal["safety", "healing", "end"]


Happening: TypeAlias = (
    Began
    | Invoked
    | Returned
    | Granted
    | Renewed
    | Surrendered
    | Wrote
    | Recorded
    | Applied
    | Role
    | NodesChanged
    | WatchOpened
    | Watched
    | WatchGap
    | Fault
    | Phase
)
"""Whatever can stand in a history."""


def in_order(happenings: Iterable[Happening]) -> list[Happening]:
    """Merge what several observers wrote; happenings of one moment keep each observer's order."""
    return sorted(happenings, key=lambda happening: happening.at_us)
