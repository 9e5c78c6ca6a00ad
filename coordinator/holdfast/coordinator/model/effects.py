"""What a decision asks of the node beside its events: answers to calls, and deadlines.

Effects are carried out in order, after the decision's events are committed (or at once if it has
none and no earlier batch of the group is under way). They are values; they change no state. What a
node has found, or computed, at an effect's bidding comes back as a command, which is here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from holdfast.coordinator.model import replies
from holdfast.coordinator.model.consumer_events import MemberTarget, ResolvedRegex
from holdfast.coordinator.model.events import Proposed
from holdfast.coordinator.model.ids import CallId, GroupId, MemberId, TopicName
from holdfast.coordinator.model.member_profile import GroupSpec
from holdfast.coordinator.model.replies import Reply
from holdfast.coordinator.model.state import State
from holdfast.coordinator.model.usage import NOTHING, Usage
from holdfast.coordinator.model.volatile import DeadlineKey, Volatile


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the call. A call that gets no answer by its own decision is parked (S17)."""

    call: CallId
    reply: Reply


@dataclass(frozen=True, slots=True)
class Arm:
    """Start a deadline, or start it over; it fires as `DeadlineFired` with this arming (S9)."""

    key: DeadlineKey
    arming: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a deadline."""

    key: DeadlineKey


@dataclass(frozen=True, slots=True)
class Renew:
    """Restart a member's session in full, because it was heard. The most frequent effect."""

    member_id: MemberId
    session_timeout_ms: int
    renewals: int
    """The new count; a deadline that fires carries the count that it saw (S9)."""


@dataclass(frozen=True, slots=True)
class ResolveRegexes:
    """Look up which topics these regular expressions match; send `InstallRegexes` (K-P1, K-P8)."""

    regexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """Compute a target of the group beside its work; send `InstallTarget` (K-M20)."""

    epoch: int
    """The group epoch that it is to answer."""
    assignor: str
    spec: GroupSpec
    sizes: Mapping[TopicName, int]
    """How many partitions each topic has that exists and is subscribed to."""


@dataclass(frozen=True, slots=True)
class InstallRegexes:
    """The node has looked up which topics some regular expressions of a group match.

    Resolution takes a library and time, so it is done outside, after `effects.ResolveRegexes`.
    """

    group_id: GroupId
    resolved: tuple[ResolvedRegex, ...]
    newest_index: int
    """When the newest of all topics was created that were looked at (K-P8)."""
    looked_index: int
    """The last entry that was applied when they were looked at."""
    in_vain: tuple[str, ...] = ()
    """Regular expressions that match more topics than an entry of the log can name (S7)."""


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """A target of the group was computed beside its work, after `effects.ComputeTarget` (K-M20).

    The group may have changed meanwhile, so the decision looks whether the target is true of it. A
    target that a member hands in becomes one of these, once it is known who hands it in.
    """

    group_id: GroupId
    epoch: int
    """The group epoch that it answers."""
    assignor: str
    targets: tuple[MemberTarget, ...]
    """Of all members that are to own something."""
    installed_by: MemberId = ""
    """The member whose assignor has computed it; "": the node has."""


Effect: TypeAlias = Answer | Arm | Cancel | Renew | ResolveRegexes | ComputeTarget


def settled(effects: Iterable[Effect], token: int) -> tuple[Effect, ...]:
    """Return the effects of a committed decision: its own grants get their token (S13).

    `token` is `ids.fencing_token` of the entry that holds the decision's events. Answers without
    a grant, or with an older one, stay as they are.
    """
    return tuple([_settled(effect, token) for effect in effects])


def _settled(effect: Effect, token: int) -> Effect:
    if not isinstance(effect, Answer):
        return effect
    reply = replies.with_token(effect.reply, token)
    return effect if reply is effect.reply else Answer(effect.call, reply)


class Decision(NamedTuple):
    """What `decide` chose: events for the log, the leader-local part to adopt, and effects."""

    events: tuple[Proposed, ...]
    volatile: Volatile
    effects: tuple[Effect, ...]
    state: State
    """The state with the events in it, before their commit: what they grant has the entry index
    `UNCOMMITTED`. Further commands of a batch are decided on it."""
    growth: Usage = NOTHING
    """By how much the events enlarge the state, as far as ceilings limit it."""
