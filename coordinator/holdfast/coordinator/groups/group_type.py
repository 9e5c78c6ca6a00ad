"""The functions of a type of group: the table by which all other code asks, naming no type.

A type is one package beside `classic` and one line in `kernel.group_types`. Its functions get the
draft of a decision, or plain values; they say what is particular to the type, and the kernel, the
offsets and the cluster's own rules do the rest. Knows no type.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from holdfast.coordinator.model.described import (
    DescribedBody,
    DescribedConsumerGroup,
    DescribedMember,
    Identity,
    PreparedAssignment,
)
from holdfast.coordinator.model.events import Event, GroupEvent, Record
from holdfast.coordinator.model.ids import (
    CallId,
    InstanceId,
    MemberId,
    Principal,
    TopicName,
    TopicPartition,
    TopicPartitions,
)
from holdfast.coordinator.model.rejections import InconsistentGroupProtocol, Rejection
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.stored_replies import StoredReply
from holdfast.coordinator.model.subscriptions import Subscribed
from holdfast.coordinator.model.usage import Growth
from holdfast.coordinator.model.volatile import Volatile
from holdfast.coordinator.structures.pmap import PMap

if TYPE_CHECKING:
    from holdfast.coordinator.model.commands import CommitOffsets, DeadlineFired
    from holdfast.coordinator.model.effects import InstallRegexes, InstallTarget


D = TypeVar("D")


class Fetcher(NamedTuple):
    """Reads a group's offsets: a member of the heartbeat protocol, or an onlooker (KIP-848)."""

    member_id: MemberId | None = None
    """None: an onlooker."""
    member_epoch: int = -1
    """Below 0: not to be checked."""


class Move(NamedTuple):
    """What a member has to do, by its own heartbeats, until it owns what it is to own."""

    gives: bool
    """It owns something that it was not asked to give up yet."""
    lets_go: bool
    """It was asked to give something up; when it has, it says so by itself."""
    blocked: frozenset[TopicPartition]
    """What it is to own and others still own. If there is nothing of either, it can take now."""


class Beside(NamedTuple):
    """What a type stores in records of their own, beside its members."""

    kind: type[Any]
    """The class of the values."""
    letter: str
    """What their keys in a store begin with; no other kind of record has it."""
    field: str
    """Their field in StateRecord."""
    of: Callable[[Group[Any]], PMap[str, Any]]
    """Those of a group; their keys follow its id."""


def _other_type(group: Group[Any], _command: object) -> Rejection:
    return InconsistentGroupProtocol(f"the group is of type {group.group_type!r}")


def _nothing_to_install(_draft: object, _command: object) -> None:
    """Do nothing: the type asks for no work of the node."""


def _never_rests(_group: object, _member_id: object) -> bool:
    return False


def _never_awaits(_state: State, _group: Group[Any]) -> int | None:
    return None


def _means_nothing(_group: Group[Any], _member_id: MemberId) -> tuple[TopicPartitions, ...]:
    """Return nothing, for a type without targets."""
    return ()


def _never_moves(_group: object, _member_id: object) -> None:
    return None


def _nobody_uses(_group: object) -> tuple[tuple[str, Principal], ...]:
    return ()


@dataclass(frozen=True, slots=True)
class GroupType(Generic[D]):
    """One type of group. `D`: the draft of a decision (`groups.draft`)."""

    name: str

    # Storing.
    body: type[Any]
    """The class of what its groups have beside the head (`model.state.Group`); made without
    arguments for a new group. `state.proto` has a message for it, and for the members'."""
    member: type[Any]
    """The class of its members."""
    restore: Callable[[Any, Iterable[Any]], Any]
    """Makes the maps of a body, which are not stored, from the rest of the body and all members,
    and what is beside them, which are stored one by one, in any order."""

    # Commands, by their classes.
    heartbeats: tuple[type, ...]
    """Signs of life, which never enlarge the state."""
    calls: tuple[type, ...]
    """All others that the type answers, or parks, by itself."""
    one_shots: tuple[type, ...]
    """Commands whose answer is kept for a repetition (S15)."""

    # Deciding.
    call: Callable[[D, Any], None]
    """Decides one of `heartbeats` or `calls`."""
    refused: Callable[[Any, Rejection], Reply]
    """Their answer if they are refused whole."""
    one_shot: Callable[[D, Any], StoredReply]
    """Decides one of `one_shots`; returns its reply."""
    fired: Callable[[D, DeadlineFired], None]
    """Judges a deadline that fired (S9)."""
    call_broken: Callable[[D, CallId], None]
    """No caller waits for a parked call any more (S17)."""
    on_leading: Callable[[D], None]
    """Arms what a new leader needs before it serves the group (S16)."""
    follow: Callable[[Volatile, Group[Any] | None, Event], Volatile]
    """What the leader keeps beside the log, after an event; it gets the group before."""

    # Folding.
    target: Callable[[str, GroupEvent], str]
    """The state that an event leads to from a state; raises InvariantBroken."""
    evolve: Callable[[Group[Any], GroupEvent, Record], Group[Any]]
    """The group after an event of the type's own."""
    own: Callable[[Group[Any], MemberId, Principal], Group[Any]]
    """The group after it is noted to whom a member belongs: the principal that joined."""
    check: Callable[[Group[Any]], Iterable[str]]
    """Sentences on what does not hold of a group and its members (S6)."""
    check_touched: Callable[[Group[Any] | None, Group[Any], Iterable[MemberId]], Iterable[str]]
    """The same of a group and these members, in time independent of its size; it gets the group
    before they were touched."""

    # Members, whose class is the type's own.
    members: Callable[[Group[Any]], PMap[MemberId, Any]]
    """The members by their ids."""
    holder: Callable[[Group[Any], InstanceId], MemberId | None]
    """The member that holds an instance id now."""
    had_members: Callable[[Group[Any]], bool]
    """Whether there ever was a member, unlike in a group of simple commits."""
    heard: Callable[[D, CommitOffsets], None]
    """Takes a member's accepted commit as a sign of life (K-F12)."""
    session_ms: Callable[[D, MemberId], int]
    """How long a member may be silent."""
    weigh_member: Callable[[Any], int]
    """About how many bytes a member takes (S23)."""
    growth: Callable[[Group[Any] | None, Group[Any] | None, Any], Growth]
    """What one of `calls` that enlarged the state has enlarged; it gets the group before and
    now."""

    # Questions of other rooms.
    is_empty: Callable[[Group[Any]], bool]
    """It has no members and forms no generation, so it may be deleted."""
    may_commit: Callable[[State, Group[Any], CommitOffsets], Rejection | None]
    """Why a caller may not commit offsets now (K-J1 to K-J8); the state has who may do what."""
    may_fetch: Callable[[Group[Any], Fetcher], Rejection | None]
    """Why a caller may not read offsets; it names a member, or is an onlooker (KIP-848)."""
    expiry_rule: Callable[[Group[Any]], str]
    """The rule by which its offsets age now; "" if none does (K-J29)."""
    tells_topics: Callable[[Group[Any]], bool]
    """Whether its members' subscriptions can be read at all (K-J23)."""
    subscribed: Callable[[Group[Any]], Subscribed]
    """What they subscribe to (K-J24, K-J25)."""
    names: Callable[[Group[Any], Container[TopicName]], frozenset[TopicName]]
    """Those of some topics that a member names."""

    # Descriptions for people.
    describe: Callable[[Group[Any]], DescribedBody]
    """What is shown of the group beside what all groups have (K-K2)."""
    describe_member: Callable[[State, Group[Any], Any], DescribedMember] | None
    """What is shown of a member; None: DescribeGroups knows no group of the type (K-K3)."""
    seniority: Callable[[Any], int]
    """The key by which members are sorted."""
    identify: Callable[[Any], Identity]
    """The ids by which a member is known."""
    held: Callable[[Any], bytes]
    """A member's assignment as bytes, or the last one, if that was abandoned (K-D10): projections
    find by it what moved in a rebalance."""

    # What not every type has.
    first_generation: int = 0
    """Of a new group."""
    derived: Callable[[Group[Any]], str] | None = None
    """The state of a group, if it follows from the rest and is never stored; `target` then only
    says which events may happen."""
    beside: tuple[Beside, ...] = ()
    """What has records of its own beside the members."""
    misplaced: Callable[[Group[Any], Any], Rejection] = _other_type
    """Why a command that it decides is refused by a group of another type, which it gets."""
    install: Callable[[D, InstallRegexes | InstallTarget], None] = _nothing_to_install
    """Takes what the node has found, or computed, beside the group's work."""
    regex_users: Callable[[Group[Any]], Iterable[tuple[str, Principal]]] = _nobody_uses
    """The regular expressions of members, each with the principal whose member it is (K-P9)."""
    rests: Callable[[Group[Any], MemberId], bool] = _never_rests
    """Whether a member's next plain heartbeat has the answer of the last one until an event says
    otherwise: one that names the member, that all members depend on, or that changes topics,
    settings or rights."""
    has_epochs: bool = False
    """Whether its story is told by epochs and their targets, and not by rebalances."""
    meant: Callable[[Group[Any], MemberId], tuple[TopicPartitions, ...]] = _means_nothing
    """What the target says that a member is to own."""
    target_due_ms: Callable[[State, Group[Any]], int | None] = _never_awaits
    """The log time, in ms, from which on the heartbeat of any member would have the assignment
    computed; None: nobody waits for one, or somebody computes it."""
    move: Callable[[Group[Any], MemberId], Move | None] = _never_moves
    """What a member has to do until it owns what it is to own; None: nothing. Asked for hints."""
    describe_whole: Callable[[State, Group[Any]], DescribedConsumerGroup] | None = None
    """What ConsumerGroupDescribe shows; None: it knows no group of the type (K-K6)."""
    prepare: (
        Callable[
            [State, Group[Any], MemberId, int, Principal],
            PreparedAssignment | Rejection,
        ]
        | None
    ) = None
    """What the member needs, at this epoch and of this principal, that is to compute the target;
    None: no member of the type does (KIP-848)."""

    _answered: frozenset[type] = field(init=False)
    """The classes of `heartbeats` and `calls`."""
    _taken: frozenset[type] = field(init=False)
    """The classes of all commands that it decides; each command is looked up here."""
    records: tuple[type, ...] = field(init=False)
    """The classes of its members, and of what is beside them."""

    def __post_init__(self) -> None:
        """Collect the classes once."""
        object.__setattr__(self, "_answered", frozenset(self.heartbeats + self.calls))
        object.__setattr__(self, "_taken", self._answered | frozenset(self.one_shots))
        object.__setattr__(self, "records", (self.member, *(each.kind for each in self.beside)))

    @property
    def moves(self) -> bool:
        """Whether its members come to own what they are to own step by step (`move`)."""
        return self.move is not _never_moves

    def answers(self, command: object) -> bool:
        """Return whether a command of this class is a call or a heartbeat of the type."""
        return type(command) in self._answered

    def takes(self, command: object) -> bool:
        """Return whether the type decides commands of this class."""
        return type(command) in self._taken


Types = Mapping[str, GroupType[Any]]
"""All types by name, as `Group.group_type` has it."""


class Rules(NamedTuple):
    """What a draft needs: the fold of every replica, and the types of groups."""

    evolve: Callable[[State, Record], State]
    types: Types
