"""A batch that is being decided: commands in order, on a state of its own.

The state includes the batch's own events before their commit; grants have the entry index
`UNCOMMITTED` until the entry has one. Pure: no loop, no replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.kernel.group_types import type_of
from holdfast.coordinator.kernel.invariants import check_group, check_touched
from holdfast.coordinator.model import events as ev
from holdfast.coordinator.model.commands import (
    ConsumerGroupHeartbeat,
    Heartbeat,
    SealLog,
    SealSegment,
)
from holdfast.coordinator.model.effects import Answer
from holdfast.coordinator.model.membership import (
    CONVERTED,
    ENDED,
    FREED,
    GRANTED,
    REPLACED,
    UNTOUCHED,
    line_of,
)
from holdfast.coordinator.model.text import truncate
from holdfast.coordinator.model.usage import NOTHING
from holdfast.runtime.groups import weights
from holdfast.runtime.groups.grants import Grants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.coordinator.model.commands import Caller, Command
    from holdfast.coordinator.model.effects import Decision, Effect
    from holdfast.coordinator.model.ids import CallId, GroupId, MemberId
    from holdfast.coordinator.model.membership import Line
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.volatile import Volatile

COMMANDS_MAX: Final = 1_024
WEIGHT_MAX: Final = 256 * 1024
"""Bytes at which a batch is cut: about S7's target for one entry, or half of a smaller limit."""
TOLD_MAX: Final = 8
"""Calls that a log line names; the others are counted."""


class Batch:
    """The content of one part of an entry, and the effects to carry out after its commit."""

    __slots__ = (
        "_added",
        "_ahead",
        "_closed",
        "_grants",
        "_named",
        "_undecided",
        "_weighed",
        "_weight",
        "_weight_max",
        "_whole_max",
        "base",
        "commands",
        "effects",
        "events",
        "group_id",
        "growth",
        "state",
        "touched",
        "unrecorded",
        "volatile",
    )

    def __init__(self, group_id: GroupId, base: State, volatile: Volatile) -> None:
        """Begin a batch on the applied state `base`, whose version is expected (S2)."""
        self.group_id = group_id
        self.base = self.state = base
        self.volatile = volatile
        self.commands: list[Command] = []
        self.events: list[ev.Proposed] = []
        self.effects: list[Effect] = []
        self.touched: set[MemberId] = set()
        self.unrecorded: set[CallId] = set()
        """Calls that are answered with the batch, but for which it records nothing."""
        self._named: set[MemberId] | None = set()
        self.growth = NOTHING
        """The growth of the cluster's state by the batch, as far as ceilings bound it."""
        self._weight = self._weighed = 0  # of the first commands, and how many those are
        self._added = 0  # what the decisions add to the commands' own weight
        self._whole_max = settings.of_cluster(base).entry_bytes_max
        self._weight_max = min(WEIGHT_MAX, self._whole_max // 2)
        self._closed = False
        self._grants = Grants()
        self._undecided: list[Command] = []
        self._ahead: Decision | None = None

    def takes(self, command: Command) -> bool:
        """Return whether a further command fits; after one that does not, none does.

        A command that fits into an entry alone must not fail because of others in its batch (S7),
        and later commands must not overtake it. A boundary behind records that were applied since
        the batch began would have no effect on the batch's state (S22).
        """
        full = self._commands_weight() + weights.of_command(command) > self._weight_max
        newer = (
            isinstance(command, SealSegment | SealLog)
            and command.last.index > self.base.applied_index
        )
        self._closed = self._closed or full or newer or len(self.commands) >= COMMANDS_MAX
        return not self._closed

    def _commands_weight(self) -> int:
        """Return the weight of the commands; each is weighed once."""
        self._weight += sum(map(weights.of_command, self.commands[self._weighed :]))
        self._weighed = len(self.commands)
        return self._weight

    def fits(self, decision: Decision) -> bool:
        """Return whether a decision may share the entry with what is there.

        It may be as long as the group is large: a target, or steps towards it (S7). And it must not
        give to another what the entry has just granted: both would have one token (S13).
        """
        added = self._added + weights.of_events(decision.events)
        overflows = added + self._commands_weight() > self._whole_max
        return not overflows and not self._grants.clash(decision.events)

    def give_back(self, count: int) -> Sequence[Command]:
        """Take so many commands from the end, which nothing was adopted of; let no more in."""
        first = len(self.commands) - count
        rest = self.commands[first:]
        del self.commands[first:]
        self._weight, self._weighed, self._closed = 0, 0, True
        return rest

    @property
    def closed(self) -> bool:
        """Whether no further command fits."""
        return self._closed

    @property
    def calls(self) -> set[CallId]:
        """The calls whose commands are in it; their outcome is the batch's (S5)."""
        return {call for command in self.commands if (call := call_of(command))}

    def put_off(self, command: Command, ahead: Decision | None = None) -> None:
        """Take a command that is decided together with those like it that follow.

        `ahead`: its decision on this batch's state, if it stays alone.
        """
        self._ahead = ahead if not self._undecided else None
        self._undecided.append(command)
        self.commands.append(command)

    def undecided(self) -> tuple[Sequence[Command], Decision | None]:
        """Return what was put off, and the decision of it if there is one; it counts as decided."""
        commands, ahead = self._undecided, self._ahead
        self._undecided, self._ahead = [], None
        return commands, ahead

    def add(self, command: Command, decision: Decision) -> None:
        """Add a command with the decision that was made on this batch's state and volatile part."""
        self.commands.append(command)
        self.adopt(decision)

    def adopt(self, decision: Decision) -> None:
        """Adopt a decision on commands that are in the batch already."""
        self.growth = self.growth.plus(decision.growth) if self.events else decision.growth
        self.volatile = decision.volatile
        self.effects.extend(decision.effects)
        if not decision.events:
            answers = (each for each in decision.effects if isinstance(each, Answer))
            self.unrecorded.update(answer.call for answer in answers)
        self._added += weights.of_events(decision.events)
        for proposed in decision.events:
            self._note(proposed.event)
            self._grants.note(proposed)
        self.events.extend(decision.events)
        self.state = decision.state

    def _note(self, event: ev.Event) -> None:
        """Note the members that an event names (None: all), and those whose calls must wait."""
        line = line_of(event)
        if line is UNTOUCHED:
            return
        group = self.state.groups.get(self.group_id)
        self.touched.update(_touched(event, line, type_of(group).members(group) if group else ()))
        if line.everyone in _WHOLE:
            self._named = None
        elif self._named is not None:
            self._named.update(line.came(event), line.named(event))

    def problems(self) -> Sequence[str]:
        """Check the invariants of what the batch touched (S6); the time is linear in the batch."""
        group = self.state.groups.get(self.group_id)
        if group is None:
            return ()
        if self._named is None:
            return check_group(group)
        before = self.base.groups.get(self.group_id)
        return check_touched(before, group, self._named | self.touched)

    def part(self, term: int) -> ev.Part:
        """Make the part to propose: it is applied whole or not at all."""
        version = self.base.version_of(self.group_id)
        return ev.Part(self.group_id, term, version, tuple(self.events))


_WHOLE: Final = frozenset({FREED, GRANTED, CONVERTED, ENDED})
"""Kinds of events that change every member, so that their cost grows with the group anyway."""


def shares(command: Command) -> bool:
    """Return whether a command is decided together with those like it that stand beside it.

    Each may need a new target of its group, which costs much: all of them share one (K-M20).
    """
    return isinstance(command, ConsumerGroupHeartbeat)


def call_of(command: Command) -> CallId:
    """Return the call that waits for this command's answer; 0: none does."""
    caller = getattr(command, "caller", None)
    return caller.call if caller is not None else 0


def told(commands: Sequence[Command]) -> dict[str, str]:
    """Return what a log line says of the calls that caused it: `extra` of a logger's method."""
    calls = [each for each in commands if call_of(each)]
    names = [f"{type(each).__name__} {_request_id(each)}".rstrip() for each in calls[:TOLD_MAX]]
    more = [f"{len(calls) - TOLD_MAX} more"] if len(calls) > TOLD_MAX else []
    return {"call": ", ".join([*names, *more])}


def _request_id(command: Command) -> str:
    caller: Caller | None = getattr(command, "caller", None)
    return truncate(caller.request_id) if caller is not None else ""


def _touched(event: ev.Event, line: Line, everyone: Iterable[MemberId]) -> Iterator[MemberId]:
    """Yield members whose calls must wait for the batch: removed, replaced or fenced (S9)."""
    yield from line.went(event)
    yield from line.fenced(event)
    if line.kind == REPLACED:
        yield from line.came(event)
    if line.everyone == ENDED:
        yield from everyone


def waits(batch: Batch, command: Command) -> bool:
    """Return whether a command that arrives meanwhile must wait for the batch (S9).

    Only a plain heartbeat of a member that the batch does not touch need not, and of the classic
    protocol: in the other one it may be a step towards what the member is to own.
    """
    if not isinstance(command, Heartbeat) or command.release:
        return True
    if command.member_id in batch.touched:
        return True
    group = batch.base.groups.get(command.group_id)
    holder = type_of(group).holder(group, command.instance_id or "") if group else None
    return holder in batch.touched
