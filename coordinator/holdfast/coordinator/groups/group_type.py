"""What a type of group answers: the table by which everything else asks, and never names a type.

A type is one package beside `classic` and one line in `kernel.group_types`. Its functions get the
draft of a decision, or plain values; they say what is particular to the type, and the kernel, the
offsets and the cluster's own rules do the rest. Knows no type.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from holdfast.coordinator.model.described import DescribedBody, DescribedMember, Identity
from holdfast.coordinator.model.events import Event, GroupEvent, Record
from holdfast.coordinator.model.ids import CallId, InstanceId, MemberId, TopicName
from holdfast.coordinator.model.pmap import PMap
from holdfast.coordinator.model.rejections import Rejection
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import Group, State
from holdfast.coordinator.model.stored_replies import StoredReply
from holdfast.coordinator.model.subscriptions import Subscribed
from holdfast.coordinator.model.usage import Growth
from holdfast.coordinator.model.volatile import Volatile

if TYPE_CHECKING:
    from holdfast.coordinator.model.commands import CommitOffsets, DeadlineFired


D = TypeVar("D")


class Fetcher(NamedTuple):
    """Who reads a group's offsets: a member of the heartbeat protocol, or an onlooker (KIP-848)."""

    member_id: MemberId | None = None
    """None: an onlooker."""
    member_epoch: int = -1
    """Below 0: not to be checked."""


class GroupType(NamedTuple, Generic[D]):
    """One type of group. `D`: the draft of a decision (`groups.draft`).

    Storing. `body`: the class of what its groups have beside the head (`model.state.Group`); it can
    be made without arguments, for a new group. Members are stored one by one, and maps of a body
    are not stored: `restore` makes them, given the rest of the body and all members in any order.

    Commands, by their classes. `heartbeats`: signs of life, which never make the state larger;
    `calls`: all others that the type answers, or parks, by itself; `one_shots`: those whose answer
    is kept for a repetition (S15).

    Deciding. `call`: decide one of the first two kinds. `refused`: their answer if they are refused
    whole. `one_shot`: decide one of the third; gives its reply. `fired`: judge a deadline that
    fired (S9). `call_broken`: nobody waits for a parked call any more (S17). `on_leading`: what a
    new leader arms before it serves the group (S16). `follow`: what the leader keeps beside the
    log, after an event; it is given the group before.

    Folding. `target`: the state that an event leads to from a state; raises InvariantBroken.
    `evolve`: the group after an event of the type's own. `check`: sentences on what does not hold
    of a group and its members (S6); `check_touched`: of it and these members, in time that does not
    follow its size, given the group before they were touched.

    Members, whose class is the type's own. `members`: by their ids. `holder`: the member that is an
    instance now. `had_members`: whether there ever was one, unlike in a group of simple commits.
    `heard`: a commit of a member that was accepted is a sign of life (K-F12). `session_ms`: how
    long a member may be silent. `weigh_member`: about how many bytes one takes (S23). `growth`:
    what one of `calls` has made larger that made the state larger, given the group before and now.

    Asking. `is_empty`: it has no members and forms no generation, so it may be deleted.
    `may_commit`: why a caller may not commit offsets now (K-J1 to K-J8). `may_fetch`: why a caller
    may not read them; it says who it is, or is an onlooker (KIP-848). `expiry_rule`: by which
    rule its offsets grow old now; "" if none does (K-J29). `tells_topics`: whether its members'
    subscriptions can be read at all (K-J23); `subscribed`: to what (K-J24, K-J25); `names`: those
    of some topics that a member names.

    Telling. `describe`: what is shown of the group beside what all groups have (K-K2);
    `describe_member`: of a member; `seniority`: in which order members are told. `identify`: who a
    member is; `held`: its assignment as bytes, or the last one, if that was abandoned (K-D10): what
    moved in a rebalance is told by these.
    """

    name: str
    body: type[Any]
    restore: Callable[[Any, Iterable[Any]], Any]
    heartbeats: tuple[type, ...]
    calls: tuple[type, ...]
    one_shots: tuple[type, ...]

    call: Callable[[D, Any], None]
    refused: Callable[[Any, Rejection], Reply]
    one_shot: Callable[[D, Any], StoredReply]
    fired: Callable[[D, DeadlineFired], None]
    call_broken: Callable[[D, CallId], None]
    on_leading: Callable[[D], None]
    follow: Callable[[Volatile, Group[Any] | None, Event], Volatile]

    target: Callable[[str, GroupEvent], str]
    evolve: Callable[[Group[Any], GroupEvent, Record], Group[Any]]
    check: Callable[[Group[Any]], Iterable[str]]
    check_touched: Callable[[Group[Any] | None, Group[Any], Iterable[MemberId]], Iterable[str]]

    members: Callable[[Group[Any]], PMap[MemberId, Any]]
    holder: Callable[[Group[Any], InstanceId], MemberId | None]
    had_members: Callable[[Group[Any]], bool]
    heard: Callable[[D, CommitOffsets], None]
    session_ms: Callable[[D, MemberId], int]
    weigh_member: Callable[[Any], int]
    growth: Callable[[Group[Any] | None, Group[Any] | None, Any], Growth]

    is_empty: Callable[[Group[Any]], bool]
    may_commit: Callable[[Group[Any], CommitOffsets], Rejection | None]
    may_fetch: Callable[[Group[Any], Fetcher], Rejection | None]
    expiry_rule: Callable[[Group[Any]], str]
    tells_topics: Callable[[Group[Any]], bool]
    subscribed: Callable[[Group[Any]], Subscribed]
    names: Callable[[Group[Any], Container[TopicName]], frozenset[TopicName]]

    describe: Callable[[Group[Any]], DescribedBody]
    describe_member: Callable[[State, Group[Any], Any], DescribedMember]
    seniority: Callable[[Any], int]
    identify: Callable[[Any], Identity]
    held: Callable[[Any], bytes]

    def takes(self, command: object) -> bool:
        """Whether the type decides commands of this class."""
        return isinstance(command, self.heartbeats + self.calls + self.one_shots)


Types = Mapping[str, GroupType[Any]]
"""All types by name, as `Group.group_type` has it."""


class Rules(NamedTuple):
    """What a draft is written by: the fold of every replica, and the types of groups."""

    evolve: Callable[[State, Record], State]
    types: Types
