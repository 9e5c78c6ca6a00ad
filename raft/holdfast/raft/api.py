"""What the rest of Holdfast may know about the replicated log, and nothing else.

Values, errors and protocols only: no engine, no PySyncObj, no threads, no network. Another
consensus core could take the place of `holdfast.raft.pysyncobj` behind this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from holdfast.raft.membership import Membership
    from holdfast.raft.messages import Message

Role = Literal["leader", "follower"]
Stage = Literal["forming", "rebuilding", "member"]

MIB = 1 << 20


class RaftError(Exception):
    """Base of all errors of the replicated log."""


class NotLeader(RaftError):
    """This node does not lead; nothing was proposed. `leader` is the node to ask, if known."""

    def __init__(self, leader: str | None) -> None:
        """`leader`: the last one that this node heard, by node id."""
        hint = f"ask {leader}" if leader else "no leader is known yet, try again"
        super().__init__(f"this node does not lead the cluster: {hint}")
        self.leader = leader


class OutcomeUnknown(RaftError):
    """The proposal was in the log when leadership was lost: it may yet be committed (S5)."""


class Overloaded(RaftError):
    """The queue of proposals is full; nothing was proposed. The caller may try again later."""


class DiskLow(RaftError):
    """The disk has only its reserve left; nothing was proposed (S20)."""

    def __init__(self) -> None:
        """Make the sentence: it says what to do."""
        super().__init__(
            "the leading node's disk is down to its reserve (node.disk_reserve_bytes): nothing "
            "more is written before space is freed on it, or the leadership is handed to another "
            "node"
        )


class EntryTooLarge(RaftError):
    """The payload is longer than an entry may be (S7); nothing was proposed."""

    def __init__(self, size: int, limit: int) -> None:
        """`size` and `limit` are in bytes."""
        super().__init__(f"an entry of {size} bytes exceeds entry_bytes_max = {limit}; split it")
        self.size, self.limit = size, limit


class EngineStopped(RaftError):
    """The engine stopped, because going on could lose data or fork the log."""

    def __init__(self, reason: str) -> None:
        """`reason` says what happened, to what, and what to do."""
        super().__init__(reason)
        self.reason = reason


class NodeRemoved(EngineStopped):
    """This node is none of the cluster any more: it stops for good (S25 e)."""


class FoundedApart(EngineStopped):
    """This node formed a cluster alone, beside one of the same name (S19, S25 f)."""


class EngineInvariantBroken(EngineStopped):
    """An invariant is broken, by a defect or damaged memory. The node stops before it acts."""

    def __init__(self, name: str, rules: str, found: str) -> None:
        """`found`: a sentence about what is wrong, with the values.

        `rules`: ids of the rules broken.
        """
        super().__init__(
            f"{found}: this must never be ({name}; {rules}). The node stops before it acts on it, "
            "and its data is kept as it is. Report this with the node's log and a copy of its data "
            "directory; the other nodes go on without it"
        )
        self.name, self.rules, self.found = name, rules, found


class SnapshotFailed(RaftError):
    """A snapshot cannot be read to its end, or the one received is unusable: begin another one."""


class BadMessage(ValueError):
    """Bytes that no node of this version sends: the connection that brought them is closed."""


@dataclass(frozen=True, slots=True)
class ProposalId:
    """Names one call of `propose`.

    Not a tuple on purpose: the engine takes a tuple for a command forwarded by another node.
    """

    term: int
    """The term in which the payload was decided."""
    number: int
    """Counts the calls of this process."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The entry at `index` is committed; the consumer applies it when it takes this item (S4)."""

    index: int
    term: int
    payload: bytes
    """Empty for an entry of the engine itself (a leader's no-op, a barrier of S19) and for a
    skipped one."""
    proposal: ProposalId | None = None
    """Set on the node that proposed the entry, also after it lost the leadership."""
    skipped: bool = False
    """Every replica skips the entry, because it was decided in another term (S1)."""


@dataclass(frozen=True, slots=True)
class RoleChanged:
    """This node leads from here on (its own no-op is the entry before), or no longer leads."""

    role: Role
    term: int
    leader: str | None
    unknown: tuple[ProposalId, ...] = ()
    """Own proposals that were in the log when the leadership was lost (S5)."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The proposal never reached the log, and never will: not applied."""

    proposal: ProposalId
    reason: str
    leader: str | None
    """The node to ask instead, if known."""
    by_rule: bool = False
    """A rule forbids it, a change of nodes: asking another node is no use (S25)."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A snapshot that the leader sent is durable here; the state continues after it."""

    index: int
    term: int


@dataclass(frozen=True, slots=True)
class LeaderSeen:
    """A hint for redirects: the leader that this node knows. Adjacent hints merge."""

    leader: str | None
    term: int


@dataclass(frozen=True, slots=True)
class BarrierPassed:
    """Every entry committed when the barrier was begun comes before this item (linearizable)."""

    barrier: int
    index: int


@dataclass(frozen=True, slots=True)
class ProbePassed:
    """A majority heard this leader after the probe was begun, in `term` (S9 b)."""

    probe: int
    term: int


@dataclass(frozen=True, slots=True)
class ProbeFailed:
    """The barrier or probe cannot pass: this node does not lead, or lost the lead meanwhile."""

    probe: int
    leader: str | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The last item: the engine stopped. The outcome of unanswered proposals is unknown (S5)."""

    reason: str


Item = (
    Applied
    | RoleChanged
    | Refused
    | Installed
    | LeaderSeen
    | BarrierPassed
    | ProbePassed
    | ProbeFailed
    | Stopped
)


class Fate(Enum):
    """The fate of a proposal whose outcome was unknown (S5)."""

    APPLIED = "applied"
    NEVER = "never"
    SEE_STATE = "a snapshot jumped over it: it is in the state, or never will be"


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds, sizes in bytes. All nodes must have the same, for S7 and the timing."""

    heartbeat: float = 0.05
    election_min: float = 0.35
    election_max: float = 0.7
    batch_bytes: int = 256 * 1024
    chunk_bytes: int = 256 * 1024
    entry_bytes_max: int = 8 * MIB
    inflight_bytes_max: int = 4 * MIB
    proposals_max: int = 16_384
    pending_bytes_max: int = 64 * MIB
    apply_queue_items_max: int = 4_096
    apply_queue_bytes_max: int = 32 * MIB
    trailing_bytes: int = 4 * MIB
    stream_seconds_max: float = 600.0

    def __post_init__(self) -> None:
        """Refuse combinations with which the rules cannot hold."""
        if not 0 < 3 * self.heartbeat < self.election_min < self.election_max:
            msg = "raft timing: 3 * heartbeat < election_min < election_max must hold"
            raise ValueError(msg)
        if not 0 < self.chunk_bytes <= self.entry_bytes_max:
            msg = "raft sizes: 0 < chunk_bytes <= entry_bytes_max must hold"
            raise ValueError(msg)


class Build(NamedTuple):
    """What a node runs: a version of Holdfast, and the levels at which it can run.

    What a level means is the caller's; here they are numbers that nodes compare in greetings.
    """

    release: str = ""
    """The version's name, for people; empty: it was not told."""
    oldest: int = 1
    newest: int = 1

    def can_run_at(self, level: int) -> bool:
        """Return whether a node of this build can take part at a level."""
        return self.oldest <= level <= self.newest


UNTOLD: Final = Build()
"""What a node runs that tells nothing of it."""


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """What this node, as leader, knows of a peer."""

    peer: str
    connected: bool
    acked_index: int
    next_index: int
    streaming: bool
    """The peer is being sent a snapshot."""
    counted: bool
    """The peer's acks count towards a majority."""
    caught_up: bool = False
    """The peer is a learner that is not too far behind to become a voter (S25 c)."""


@dataclass(frozen=True, slots=True)
class Status:
    """The engine at one moment, for people and metrics; nothing may be decided on it."""

    role: Role
    term: int
    leader: str | None
    stage: Stage
    commit_index: int
    handed_index: int
    evolved_index: int
    first_index: int
    last_index: int
    peers: tuple[PeerStatus, ...]
    current_at: float = float("-inf")
    current_index: int = 0
    """A follower's state was the newest at `current_at` (seconds of the engine's clock) if it
    reflects `current_index`: at that time the leader said that no more was committed."""
    catch_up_index: int | None = None
    """A follower's state reflects all that was committed before its process began if it reflects
    this entry; None: no leader has been heard yet that knows how far that was (S4)."""
    ticks: int = 0
    """How often the engine's thread has begun a tick; while it hangs, this stands still."""
    membership: Membership | None = None
    """The nodes of the cluster, as this node has them in its log (S25); it may yet change back."""
    membership_index: int = 0
    """The entry that says so; committed if `commit_index` is no lower. 0: the node's file does."""


class TransportHandler(Protocol):
    """What a transport calls inside its own `poll`, so from the tick thread only."""

    def on_message(self, peer: str, message: Message) -> None:
        """Handle a message that `peer` sent on its present connection, in the order of sending."""

    def on_connected(self, peer: str) -> None:
        """Note that messages to and from `peer` pass from now on."""

    def on_disconnected(self, peer: str) -> None:
        """Note that messages sent to `peer` and not yet answered may be lost."""

    def holds_nothing(self) -> bool:
        """Return whether the disk waits to be rebuilt and has got nothing yet. Any thread."""

    def on_later_restore(self, peer: str) -> None:
        """Note that `peer` is of a later restore than this node's disk (S13). Any thread."""


class Transport(Protocol):
    """Carries messages between the nodes. It may lose messages, but never alters or invents one.

    What is sent to a node whose address the membership in force says goes there, or nowhere: so who
    answers was reached where all will look for it (S25 c).
    """

    def start(self, handler: TransportHandler, wake: Callable[[], None]) -> None:
        """Begin.

        The transport calls `wake`, from any thread, when `poll` has something to deliver.
        """

    def send(self, peer: str, message: Message) -> bool:
        """Queue a message without blocking; False if it was surely not sent. Tick thread only."""

    def poll(self) -> None:
        """Call the handler for everything received since the last call. Tick thread only."""

    def close(self) -> None:
        """End all connections."""


class Park(Protocol):
    """Where the tick thread waits for something to do."""

    def park(self, seconds: float) -> None:
        """Wait at most so long, until there is something to do or `unpark` is called.

        Tick thread only. A call of `unpark` before it ends it at once.
        """

    def unpark(self) -> None:
        """End the present wait, or the next one. Any thread."""


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """The last entry that a snapshot contains."""

    index: int
    term: int


class Notes(Protocol):
    """Bytes that outlive the process: they may be a second old or lost, but are never altered."""

    def read(self) -> bytes:
        """Return the content written last; empty if there was none, or if it is lost."""

    def write(self, content: bytes) -> None:
        """Replace the content; a failure is ignored. Never syncs."""

    def close(self) -> None:
        """Release the file; the last call."""


class SnapshotSource(Protocol):
    """The state's snapshots, as the engine sees them (S18).

    The methods are called by the tick thread and must not wait for the consumer's thread.
    """

    def latest(self) -> SnapshotMark:
        """Return the mark of the newest durable snapshot, which a start would load.

        (0, 0): none.
        """

    def open(self, index: int) -> Iterator[bytes]:
        """Open the latest snapshot, which has this index, as chunks read from a local copy.

        An empty chunk means that nothing is ready yet: ask again later. Never blocks. The iterator
        raises SnapshotFailed if the snapshot cannot be delivered whole.
        """

    def begin(self, mark: SnapshotMark, progressed: Callable[[], None]) -> SnapshotSink:
        """Begin to receive a snapshot; one begun earlier is dropped.

        `progressed` is called, from any thread, when `taken` or `ready` may have changed.
        """


class SnapshotSink(Protocol):
    """A snapshot that is being received. Nothing of it counts before `ready`."""

    def write(self, chunk: bytes) -> bool:
        """Queue the next bytes, in order; False if there is no room: they must be sent again."""

    def taken(self) -> int:
        """Return how many bytes are written; queued bytes do not count (S20).

        Raises SnapshotFailed.
        """

    def seal(self) -> None:
        """Begin to make the snapshot durable, without blocking: all its bytes were queued."""

    def ready(self) -> bool:
        """Return whether it is durable beside the present state. Raises SnapshotFailed."""

    def install(self) -> None:
        """Make it the snapshot that a start loads (S18: by a rename). Durable on return."""

    def abort(self) -> None:
        """Drop the snapshot, sealed or not; it will not be installed."""
