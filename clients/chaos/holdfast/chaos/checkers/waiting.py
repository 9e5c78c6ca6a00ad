"""INV-17: in a group of the heartbeat protocol nothing waits for ever.

Each thing that somebody waits for ends within a bounded time of a leader that no fault disturbs; a
new leader begins it in full. A member that is asked for a partition gives it up, or is taken out,
within its rebalance timeout (K-M25); one of the classic protocol has to be told first, by a
heartbeat of its own (K-Q9, K-Q10). A partition that a target gives to a member comes to it: its
holder is asked within a session, and it takes it within one, once it has given up what is asked of
itself (K-O5). A raised epoch has its target within a session, since the next heartbeat computes it,
or has a member compute it: then that hands one in, or another is chosen, within its rebalance
timeout (KIP-848); after the pause between two targets that the settings have (K-P15). Topics that
have changed are found within a session (K-M27), and a member that has only to be heard is. Where
child processes compute the targets of small groups, too, they have their time.
Whoever is not heard for a session is taken out (INV-12), so a group with members that want
partitions becomes Stable. That epochs are in order, INV-3 looks at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import calls_of
from holdfast.chaos.evidence.heartbeats.group import RELEASED, HeartbeatGroup, Partition
from holdfast.chaos.evidence.log_view import NOTHING, View, fold, records_of, seconds
from holdfast.chaos.evidence.sessions import Told, session_us, sessions_told
from holdfast.chaos.evidence.settings import Settings
from holdfast.chaos.evidence.tenures import (
    LAG_US,
    Span,
    conditions,
    covered,
    disturbed,
    tenures,
)
from holdfast.chaos.evidence.topics import Sizes, Topics
from holdfast.chaos.history.happenings import Happening, Recorded

INVARIANT: Final = "I17"

GRACE_US: Final = 2_000_000
"""To find out and to record it, of an undisturbed leader."""

CHILDREN_US: Final = 20_000_000
"""What a node waits for children that compute a target: ten seconds for each of two (ADR 51)."""
_BESIDE: Final = "group.consumer_inline_work"
_PAUSE: Final = "group.consumer_assignment_interval_ms"

What: TypeAlias = tuple[str, str, Partition]
"""What is waited for, by whom, and which partition; the last two may be empty."""

_NONE: Final[Partition] = ("", 0)
_TARGET: Final[What] = ("target", "", _NONE)


class Wait(NamedTuple):
    """Something that was waited for, from `since_us` until `until_us`."""

    group: str
    what: What
    since_us: int
    until_us: int
    most_us: int
    """How long it may take."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find what was waited for too long."""
    source, error = conditions(history)
    end_us = history[-1].at_us if history else 0
    served, broken = tenures(history, end_us), disturbed(history, end_us)
    told = sessions_told(calls_of(history))
    counts: Counter[str] = Counter(dict.fromkeys(_TOLD.values(), 0))
    found: list[Violation] = []
    for wait in _waits(records_of(history), told, end_us):
        counts[_TOLD[wait.what[0]]] += 1
        most_us = int(wait.most_us / (1 - error)) + GRACE_US + LAG_US[source]
        found += _too_long(wait, most_us, served, broken)
    return Verdict(counts, found)


def _too_long(
    wait: Wait, most_us: int, served: Iterable[Span], broken: Sequence[Span]
) -> Iterator[Violation]:
    if wait.until_us - wait.since_us <= most_us:
        return
    for tenure in served:
        span = (max(wait.since_us, tenure[0]), min(wait.until_us, tenure[1]))
        idle_us = span[1] - span[0] - covered(span, broken)
        if idle_us > most_us:
            yield Violation(INVARIANT, span[1], _sentence(wait, idle_us, most_us))
            return


def _sentence(wait: Wait, idle_us: int, most_us: int) -> str:
    kind, member_id, (topic, number) = wait.what
    who = f" {member_id}" if member_id else ""
    which = f" {topic}/{number}" if topic else ""
    return (
        f"{wait.group!r} waited from {seconds(wait.since_us)} to {seconds(wait.until_us)} for "
        f"{_WORDS[kind]}{who}{which}, though one leader had {seconds(idle_us)}, and "
        f"{seconds(most_us)} are enough"
    )


_TOLD: Final = {
    "asked": "partitions asked back",
    "owed": "partitions owed",
    "target": "targets owed",
    "computed": "targets asked of members",
    "step": "steps owed",
    "topics": "topics changed",
}
_WORDS: Final = {
    "asked": "what is asked back of",
    "owed": "what is to be owned by",
    "target": "a target of its epoch",
    "computed": "a target, or another choice, after that of",
    "step": "a step of",
    "topics": "an epoch for topics that have changed",
}


# --- what is waited for ---


def _waits(records: Iterable[Recorded], told: Told, end_us: int) -> Iterator[Wait]:
    waiting: dict[str, dict[What, Wait]] = defaultdict(dict)
    topics = Topics()
    groups: dict[str, View] = {}
    raised: dict[str, Sizes] = {}
    settings = Settings()
    for record in records:
        topics.follow(record)
        settings.follow(record)
        if record.group:
            groups[record.group] = fold(groups.get(record.group, NOTHING), record)
        if record.kind == "EpochRaised":
            raised[record.group] = dict(topics.sizes)
        for group in [record.group] if record.group else list(groups):
            view, open_now = groups[group], waiting[group]
            now = _open(group, view, told, _Sizes(raised.get(group, {}), topics.sizes))
            if _TARGET in now:
                now[_TARGET] += _put_off_us(settings, group)
            for what in [each for each in open_now if each not in now]:
                yield open_now.pop(what)._replace(until_us=record.at_us)
            for what, most_us in now.items():
                known = open_now.get(what) or Wait(group, what, record.at_us, end_us, 0)
                open_now[what] = known._replace(most_us=max(known.most_us, most_us))
    for open_now in waiting.values():
        yield from open_now.values()


def _put_off_us(settings: Settings, group: str) -> int:
    """Return how much longer than a heartbeat the settings let a target take.

    The last one may be a while ago, or child processes compute all of them, however small.
    """
    pause_us = int(settings.of(_PAUSE, group) or 0) * 1_000
    return pause_us + (CHILDREN_US if settings.of(_BESIDE, group) is not None else 0)


class _Sizes(NamedTuple):
    """Of all topics: as they were when the group's epoch was raised, and as they are."""

    raised: Sizes
    now: Sizes

    def differ(self, group: HeartbeatGroup) -> bool:
        """Return whether those that the group wants are others now."""
        wanted = {topic for each in group.standings for topic in group.wants(each)}
        return any(self.raised.get(topic) != self.now.get(topic) for topic in wanted)


def _open(group: str, view: View, told: Told, sizes: _Sizes) -> dict[What, int]:
    """Return what is waited for in a group as it is, and how long that may take."""
    if view.beats is None or not view.members:
        return {}
    sessions = {name: session_us(told, group, each) for name, each in view.members.items()}
    if not all(sessions.values()):
        return {}  # a member that nobody has told its session yet
    times = _Times(view, view.beats, sessions)
    found: dict[What, int] = {}
    if view.generation > view.beats.target_epoch:
        found |= times.of_target()
    if sizes.differ(view.beats):
        found["topics", "", _NONE] = max(sessions.values())
    for member_id in view.members.keys() & view.beats.standings.keys():
        found |= times.of_member(member_id)
    return found


class _Times:
    """How long members of a group may take, in microseconds."""

    def __init__(self, view: View, beats: HeartbeatGroup, sessions: Mapping[str, int]) -> None:
        self._view, self._beats, self._sessions = view, beats, sessions
        self._holders = dict(beats.owners())

    def of_member(self, member_id: str) -> dict[What, int]:
        """Return what a member waits for, or is waited for."""
        beats, standing = self._beats, self._beats.standings[member_id]
        found: dict[What, int] = {
            ("asked", member_id, each): self._giving_up_us(member_id) for each in standing.revoking
        }
        if standing.epoch == RELEASED:
            return found  # its process has stopped; its session will end
        wants = beats.wants(member_id)
        target = {each for each in beats.targets.get(member_id, ()) if each[0] in wants}
        for each in target - standing.owned.keys():
            found["owed", member_id, each] = self._coming_us(member_id, each)
        if not found and not beats.is_settled(member_id):
            found["step", member_id, _NONE] = self._sessions[member_id]
        return found

    def of_target(self) -> dict[What, int]:
        """Return how long the next target may take: that of a member, or of a heartbeat.

        A member that computes one is relieved after its rebalance timeout, or after the time to its
        next heartbeat. It goes on for a newer epoch, once somebody has beaten in that.
        """
        beats, found = self._beats, dict[What, int]()
        chosen = beats.computing()
        if chosen in self._view.members:
            rebalance_us = self._view.members[chosen].rebalance_timeout_ms * 1_000
            what = ("computed", chosen, ("", beats.choices))
            found[what] = max(rebalance_us, self._sessions[chosen])
        if not found or beats.chosen_for < self._view.generation:
            found[_TARGET] = max(self._sessions.values())
        return found

    def _giving_up_us(self, member_id: str) -> int:
        rebalance_us = self._view.members[member_id].rebalance_timeout_ms * 1_000
        if not self._beats.standings[member_id].classic:
            return rebalance_us
        return self._sessions[member_id] + 2 * rebalance_us  # told, joined, and answered by a sync

    def _coming_us(self, member_id: str, partition: Partition) -> int:
        holder = self._holders.get(partition)
        taking_us = self._sessions[member_id] + self._giving_up_first_us(member_id)
        if holder is None or holder == member_id:
            return taking_us
        return self._sessions.get(holder, 0) + self._giving_up_us(holder) + taking_us

    def _giving_up_first_us(self, member_id: str) -> int:
        """Return how long it may give up what it keeps no more: only then it takes (K-O5)."""
        standing, target = self._beats.standings[member_id], self._beats.targets.get(member_id, ())
        gives = standing.revoking or standing.owned.keys() - target
        return self._giving_up_us(member_id) if gives else 0
