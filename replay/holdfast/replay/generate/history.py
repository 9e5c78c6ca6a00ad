"""Plays a whole history: entry after entry, until the log has as many records as are wanted.

An entry holds what several groups did at the same time. Groups are picked by popularity; a giant
group is given as many commits in each entry as keep its share. What is written goes out segment by
segment, so memory holds the state and the records of one segment, whatever the length. Knows the
players (`deeds`, `commits`), the leader and where rows go; no folder and no clock.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.coordinator.model.commands import (
    CreateTopics,
    DeleteTopics,
    ExpireOffsets,
    FormCluster,
    SealSegment,
)
from holdfast.coordinator.model.events import SettingChange
from holdfast.coordinator.model.levels import LEVEL_MAX
from holdfast.replay.generate.boundaries import Boundaries
from holdfast.replay.generate.cast import GIANT_MEMBERS, cast
from holdfast.replay.generate.commits import OUTSIDE, Commits
from holdfast.replay.generate.deeds import Deeds
from holdfast.replay.generate.entry import EntryDraft
from holdfast.replay.generate.leader import HistoryBroken, Leader
from holdfast.replay.generate.plan import DELETIONS, FAILOVERS, GROUPS_MAX, Plan
from holdfast.replay.generate.popularity import Popularity
from holdfast.replay.generate.schedule import Schedule
from holdfast.replay.generate.world import CLUSTER_ID, World

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.coordinator.model.commands import Command
    from holdfast.coordinator.model.effects import InstallTarget
    from holdfast.coordinator.model.ids import GroupId
    from holdfast.replay.generate.cast import Cast
    from holdfast.replay.generate.leader import Written
    from holdfast.replay.generate.witness import Witness

DEEDS: Final = 0.04
"""How often a group that could commit does something else."""
PARTS_MAX: Final = 32
"""Groups in an entry, the giant and those that are swept aside."""
PART_EVENTS_MAX: Final = 24
"""No part of a group with few members has more events."""
GIANT_EVENTS_MAX: Final = 4 * GIANT_MEMBERS + PART_EVENTS_MAX
"""Nor has one of the giant, but for commits."""
GIANT_COMMITS_MAX: Final = 1_000
STEP_MS_MAX: Final = 20
FAILOVER_MS: Final = 3_000
"""How long nobody leads."""
WALL_SKEW_MS: Final = 40
FAILOVERS_IN_ALL: Final = 12
TOPICS_IN_ALL: Final = 8
"""About so many are in a whole history, and fewer in a short one."""
APART_MIN: Final = 250
"""So many records are between two of them, on average at least."""
SWEPT_AT_ONCE: Final = 4


class Sink(Protocol):
    """Where the records go."""

    def seal(self, written: Sequence[Written]) -> None:
        """Take a sealed segment."""

    def export(self, written: Sequence[Written]) -> None:
        """Take what is not sealed in the end."""


class History:
    """One history; `play` makes it."""

    def __init__(self, plan: Plan, out: Sink, witness: Witness) -> None:
        self.leader = Leader()
        self._plan, self._out, self._witness = plan, out, witness
        self._chance = Random(plan.seed)  # noqa: S311 - to be made again by its seed
        self._world = World(self.leader, self._chance)
        self._commits = Commits(self._world, aside=plan.has(DELETIONS))
        self._deeds = Deeds(self._world, self._commits, plan)
        first = 1 if plan.giant else 0
        self._popularity = Popularity(first, plan.groups, plan.skew, self._chance)
        self._failovers = self._scheduled(FAILOVERS, FAILOVERS_IN_ALL)
        self._turnovers = self._scheduled(DELETIONS, TOPICS_IN_ALL)
        self._boundaries = Boundaries()
        self._held: list[Written] = []
        self._targets: dict[GroupId, InstallTarget] = {}
        self._to_sweep: deque[GroupId] = deque()
        self._giant_events = 0

    def _scheduled(self, fault: str, in_all: int) -> Schedule:
        apart = max(self._plan.events // in_all, APART_MIN) if self._plan.has(fault) else 0
        return Schedule(apart, self._chance)

    @property
    def left(self) -> int:
        """How many records are still to be made."""
        return self._plan.events - self.leader.count

    @property
    def held(self) -> int:
        """How many records wait for their segment."""
        return len(self._held)

    def play(self, told: Callable[[int], None]) -> None:
        """Make the whole log. `told`: called with the number of records after each entry."""
        self._begin()
        while self.left:
            self._happen()
            told(self.leader.count)
        if self.left < 0:
            raise HistoryBroken(f"{-self.left} records too many")
        if self._held:
            self._out.export(self._held)
            self._held = []

    def _begin(self) -> None:
        most = max(self._plan.groups + 1, 100_000)
        changes = (
            SettingChange("cluster.groups_max", str(min(most, GROUPS_MAX))),
            SettingChange("group.initial_rebalance_delay_ms", "0"),
            SettingChange("log.segment_events_max", str(self._plan.segment_events)),
        )
        self._of_cluster(FormCluster(CLUSTER_ID, changes, LEVEL_MAX))
        topics = (*self._world.topics, self._world.next_side_topic())
        self._of_cluster(CreateTopics(self._world.operator(), topics))
        self._commit_from_outside(1)

    def _happen(self) -> None:
        """Make the next entry, or a change of leaders or of topics."""
        at = self.leader.count
        if self._boundaries.due(self.leader.state):
            self._seal()
        elif self.left < PART_EVENTS_MAX:
            self._fill()
        elif self._failovers.due(at):
            self._fail_over()
        elif self._turnovers.due(at):
            self._replace_side_topic()
        else:
            self._play_groups()

    def _seal(self) -> None:
        """Seal all that there is: a boundary is behind an entry, and the log tells it next."""
        self._out.seal(self._held)
        last, self._held = self._held[-1].row.position, []
        self._boundaries.restart()  # before the record that tells of it, which is the next one's
        self._of_cluster(SealSegment(last, self.leader.state.sealed))

    def _fail_over(self) -> None:
        self.leader.now_ms += FAILOVER_MS
        self.leader.fail_over(self._chance.randint(-WALL_SKEW_MS, WALL_SKEW_MS))
        self._witness.failed_over()
        self._targets.clear()

    def _replace_side_topic(self) -> None:
        """Delete a topic, whose offsets a sweep takes from each group, and make another one."""
        gone = self._world.side_topic
        self._of_cluster(DeleteTopics(self._world.operator(), (gone,)))
        topic = self._world.next_side_topic()
        self._of_cluster(CreateTopics(self._world.operator(), (topic,)))
        self._to_sweep.extend(sorted(self._commits.aside_of))
        self._commits.aside_of.clear()

    def _of_cluster(self, command: Command) -> None:
        draft = self._draft()
        draft.decide("", [command])
        self._commit(draft)

    def _draft(self) -> EntryDraft:
        self.leader.now_ms += self._chance.randint(1, STEP_MS_MAX)
        return EntryDraft(self.leader, self._commits, self._witness)

    def _commit(self, draft: EntryDraft) -> None:
        written, targets = draft.commit()
        self._targets.update(targets)
        self._boundaries.wrote(written)
        self._held += written

    # --- groups ---

    def _play_groups(self) -> None:
        draft = self._draft()
        parts = min(self._chance.randint(1, PARTS_MAX), self.left // PART_EVENTS_MAX)
        for number in self._popularity.some(parts):
            self._play(draft, cast(number, self._world.topics, giant=False))
        if self._plan.giant:
            self._play_giant(draft)
        self._sweep(draft)
        self._commit(draft)

    def _play(self, draft: EntryDraft, group: Cast) -> None:
        """Have a group do the next thing: most often a commit."""
        commits = self._chance.random() >= DEEDS
        proposed = self._commits.proposed(group, 1) if commits else ()
        if proposed:
            draft.add(group.group_id, proposed)
        else:
            self._play_deed(draft, group, only_commit=commits)

    def _play_deed(self, draft: EntryDraft, group: Cast, *, only_commit: bool) -> None:
        """Have a group do what is decided by the rules: what is due, or a deed."""
        group_id = group.group_id
        draft.add(group_id, self.leader.take_over(group_id))
        if group_id in draft:
            return
        target = self._targets.pop(group_id, None)
        if target is None:
            draft.decide(group_id, self._deeds.next_of(group, only_commit=only_commit))
        else:
            draft.decide(group_id, [target])

    def _play_giant(self, draft: EntryDraft) -> None:
        """Give the giant what it lacks of its share, with what the others have in this entry."""
        before, share = draft.events, self._plan.giant
        others = self.leader.count + before - self._giant_events
        lacking = int(others * share / (1 - share)) - self._giant_events
        room = self.left - before
        if lacking < 1 or room < 1:
            return
        giant = cast(0, self._world.topics, giant=True)
        commits = self._chance.random() >= DEEDS
        count = min(lacking, room, GIANT_COMMITS_MAX) if commits else 0
        proposed = self._commits.proposed(giant, count)
        if proposed:
            draft.add(giant.group_id, proposed)
        elif room >= GIANT_EVENTS_MAX:
            self._play_deed(draft, giant, only_commit=commits)
        self._giant_events += draft.events - before

    def _sweep(self, draft: EntryDraft) -> None:
        """Take the offsets of topics that are gone from some groups (K-J34)."""
        room = (self.left - draft.events) // PART_EVENTS_MAX
        for _ in range(min(room, SWEPT_AT_ONCE, len(self._to_sweep))):
            group_id = self._to_sweep.popleft()
            if group_id in draft:
                self._to_sweep.append(group_id)
            else:
                draft.add(group_id, self.leader.take_over(group_id))
                draft.decide(group_id, [ExpireOffsets(group_id, self.leader.now_ms)])

    def _fill(self) -> None:
        """Make the last records, one each, so that there are exactly as many as are wanted."""
        self._commit_from_outside(min(self.left, PART_EVENTS_MAX))

    def _commit_from_outside(self, count: int) -> None:
        """Commit offsets without a group; its name is no number's."""
        outside = cast(0, self._world.topics, giant=False)._replace(group_id=OUTSIDE)
        draft = self._draft()
        commits = self._commits.proposed(outside, count)
        if commits:
            draft.add(OUTSIDE, commits)
        else:
            draft.decide(OUTSIDE, [self._commits.command(outside, None)])
        self._commit(draft)
