"""One entry in the making: parts of several groups, decided at the same time, committed together.

Effects are carried out when it is committed, as on a node: answers are looked at, and what the
coordinator asks to have computed is computed. Knows the leader and the witness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast.coordinator.consumer.assignors import ASSIGNORS
from holdfast.coordinator.model.commands import CommitOffsets, JoinGroup
from holdfast.coordinator.model.consumer_events import MemberTarget
from holdfast.coordinator.model.effects import Answer, ComputeTarget, InstallTarget
from holdfast.coordinator.model.rejections import MemberIdRequired, UnreleasedInstanceId
from holdfast.replay.generate.leader import HistoryBroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.effects import Effect
    from holdfast.coordinator.model.events import Proposed
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.coordinator.model.replies import Reply
    from holdfast.replay.generate.commits import Commits
    from holdfast.replay.generate.leader import Leader, Written
    from holdfast.replay.generate.witness import Witness

_FORESEEN: Final = (MemberIdRequired, UnreleasedInstanceId)
"""Refusals that clients reckon with: a dynamic member's first join, and a process that returns
before its predecessor's session has ended."""


class EntryDraft:
    """What is to become one entry."""

    def __init__(self, leader: Leader, commits: Commits, witness: Witness) -> None:
        self._leader, self._commits, self._witness = leader, commits, witness
        self._decided: dict[GroupId, tuple[Proposed, ...]] = {}
        self._effects: list[tuple[GroupId, Effect]] = []
        self.events = 0

    def __contains__(self, group_id: GroupId) -> bool:
        """Return whether the group has a part already; it can have but one."""
        return group_id in self._decided

    def add(self, group_id: GroupId, events: tuple[Proposed, ...]) -> None:
        """Take in what was chosen for a group."""
        if events:
            self._decided[group_id] = events
            self.events += len(events)

    def decide(self, group_id: GroupId, commands: Sequence[Command]) -> None:
        """Have commands of one group decided, and take in what was chosen."""
        before = self._leader.group(group_id)
        decision = self._leader.decide(group_id, commands)
        for command in commands:
            if isinstance(command, JoinGroup):
                self._witness.asked(command)
        match commands:
            case [CommitOffsets(caller=caller)] if before is not None and not caller.request_id:
                self._commits.learn(before, decision.events)
        self.add(group_id, decision.events)
        self._effects += [(group_id, effect) for effect in decision.effects]

    def commit(self) -> tuple[list[Written], dict[GroupId, InstallTarget]]:
        """Append the entry, answer; return what was written, and targets to be installed."""
        written = self._leader.commit(self._decided.items()) if self._decided else []
        self._witness.committed(written)
        targets: dict[GroupId, InstallTarget] = {}
        for group_id, effect in self._effects:
            if isinstance(effect, Answer):
                accepted = not _refused(effect.reply)
                self._witness.answered(effect.call, accepted=accepted)
            elif isinstance(effect, ComputeTarget):
                targets[group_id] = _computed(group_id, effect)
        return written, targets


def _refused(reply: Reply) -> bool:
    """Return whether a call was refused. Raises HistoryBroken for what no client reckons with."""
    errors = list(_errors(reply))
    if any(not isinstance(error, _FORESEEN) for error in errors):
        raise HistoryBroken(f"a call that should be valid was refused: {errors[0]!r}")
    return bool(errors)


def _errors(reply: Any) -> Iterator[Any]:  # noqa: ANN401 - of whatever class, with parts or without
    parts = (getattr(reply, name, ()) for name in ("results", "partitions"))
    for each in (reply, *(part for several in parts for part in several)):
        if getattr(each, "error", None) is not None:
            yield each.error


def _computed(group_id: GroupId, asked: ComputeTarget) -> InstallTarget:
    """Compute a target as a node does, beside the group's work (K-M20)."""
    found = ASSIGNORS[asked.assignor](asked.spec, asked.sizes)
    targets = tuple(MemberTarget(*each) for each in sorted(found.items()) if each[1])
    return InstallTarget(group_id, asked.epoch, asked.assignor, targets)
