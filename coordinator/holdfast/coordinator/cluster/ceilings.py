"""Ceilings on what all groups and topics of the cluster may take up together (S7, S23).

One caller can make up names as fast as it can ask; without a ceiling it would fill the memory of
every node. A command that would make the cluster larger than a setting allows is refused whole, and
what was chosen for it is forgotten, so nothing of it is recorded. What makes nothing larger is
never refused: a full cluster can be emptied, and its groups go on.

Bytes have a reserve above their ceiling, for a group that is there cannot do without some growth:
its members offer more when they join again, its leader's assignments are larger than the last ones.
Newcomers stop at the ceiling. Commits that only overwrite, whose stored answers fill the table of
requests, have an eighth more, members that are there a quarter. An assignment that is no larger
than the last one is never refused, nor is what frees something for the answer that it leaves
behind: else a ceiling that was lowered would break groups that go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.usage import PENDING_BYTES, Change, difference_by
from holdfast.coordinator.model.commands import (
    AlterSettings,
    CommitOffsets,
    CreatePartitions,
    CreateTopics,
    Growing,
    RaiseLevel,
    ReportBackup,
    SealLog,
)
from holdfast.coordinator.model.ids import TopicPartition
from holdfast.coordinator.model.rejections import PolicyViolation
from holdfast.coordinator.model.usage import MORE, NEW, NOTHING, SAME, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.coordinator.groups.draft import Draft, Mark
    from holdfast.coordinator.model.state import State
    from holdfast.coordinator.model.usage import Growth

LITTLE_BYTES: Final = 4_096
"""What a call that frees something may leave behind: the record of a rebalance, a stored answer."""
RESERVE: Final = 4
"""A quarter of the ceiling on bytes is kept for groups that are there, above it."""
HALVES: Final = 2
"""Of the reserve; what overwrites has the first of them."""
_COUNTS: Final = (  # the first fields of `Usage`
    ("groups", "cluster.groups_max"),
    ("topics", "cluster.topics_max"),
    ("partitions", "cluster.partitions_max"),
    ("members", "cluster.members_max"),
)
_BYTES: Final = "cluster.state_bytes_max"
_EXTRAS: Final[Mapping[Growth, int | None]] = {NEW: 0, MORE: HALVES, SAME: None}
"""How many halves of the reserve a call of a type may use; None: as many bytes as it takes."""


def exceeded(draft: Draft, since: Mark, command: Growing) -> PolicyViolation | None:
    """Return the ceiling that the draft exceeds by what it chose since the mark; None if none.

    `draft.used` is what everything took at the mark. If no ceiling is exceeded, it is increased by
    what was chosen; a member id that was given out counts as a member.
    """
    grown = more = _grown(draft, since, draft.state, command)
    handed_out = len(draft.volatile.pending) - len(since.volatile.pending)
    if handed_out:
        more = grown.plus(Usage(members=handed_out, state_bytes=handed_out * PENDING_BYTES))
    if more == NOTHING:
        return None
    over = _over_in_number(draft, more) or _over_in_bytes(draft, since, command, more)
    if over is None:
        draft.used, draft.grown = draft.used.plus(more), draft.grown.plus(grown)
    return over


def _grown(draft: Draft, since: Mark, after: State, command: Growing) -> Usage:
    """Return what this state takes more than that of the mark; only the draft's group differs.

    Of its offsets a commit changes none but those that it names.
    """
    places = None
    if isinstance(command, CommitOffsets):
        places = {TopicPartition(each.topic, each.partition) for each in command.offsets}
    change = Change(since.found, draft.found, places)
    return difference_by(change, since.state, after, draft.rules.types)


def _over_in_number(draft: Draft, grown: Usage) -> PolicyViolation | None:
    if max(grown[: len(_COUNTS)]) <= 0:
        return None  # as most commands: they change what is there
    limits = settings.of_cluster(draft.state).ceilings
    for what, name in _COUNTS:
        used, more, most = (getattr(each, what) for each in (draft.used, grown, limits))
        if more > 0 and used + more > most:
            return PolicyViolation(name, most, what, used, more)
    return None


def _over_in_bytes(
    draft: Draft, since: Mark, command: Growing, grown: Usage
) -> PolicyViolation | None:
    used, more = draft.used.state_bytes, grown.state_bytes
    most = settings.of_cluster(draft.state).ceilings.state_bytes
    if more <= 0 or used + more <= most:
        return None
    extra = _extra(draft, since, command, grown)
    if extra is None or used + more <= most + extra * most // (HALVES * RESERVE):
        return None
    return PolicyViolation(_BYTES, most, "bytes of state", used, more)


def _extra(draft: Draft, since: Mark, command: Growing, grown: Usage) -> int | None:
    """Return how many halves of the reserve a command may use; None: as many bytes as it takes.

    None is for what is never more than a record of a rebalance, of which a group keeps few.
    """
    match command:
        case CreateTopics() | CreatePartitions():
            return 0
        case AlterSettings(group_id=group_id):
            return 0 if group_id else None  # it is how a ceiling is raised
        case RaiseLevel() | ReportBackup() | SealLog():
            return None
        case CommitOffsets():
            return 0 if _offsets_grew(draft, since, command) else 1
        case _ if _is_call(draft, since, command):
            return _EXTRAS[draft.group_type.growth(since.found, draft.found, command)]
        case _:
            frees = min(grown.groups, grown.topics, grown.members) < 0
            return None if frees or grown.state_bytes <= LITTLE_BYTES else HALVES


def _is_call(draft: Draft, since: Mark, command: Growing) -> bool:
    """Return whether the group's type decides a command, and can say what it enlarges.

    It cannot if the group was of another type before.
    """
    was, now = since.found, draft.found
    if now is None or (was is not None and was.group_type != now.group_type):
        return False
    return isinstance(command, draft.group_type.calls)


def _offsets_grew(draft: Draft, since: Mark, command: CommitOffsets) -> bool:
    """Return whether the group itself takes more than before, beside the record of the request."""
    after, before = draft.state, since.state
    alone = after._replace(requests=before.requests)
    return _grown(draft, since, alone, command).state_bytes > 0
