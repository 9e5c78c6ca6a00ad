"""INV-12: no session expires early, and every silent one expires (S8-S11).

Early: between the last accepted sign of life, or the beginning of the leader that expires it (S9),
and the expiry lies a whole session timeout, by a clock that may be wrong by the history's
`clock_error`. A sign of life counts from when it was sent: the node heard it no earlier.

Never: a member that gave no sign of life is gone before one leader has had, undisturbed by faults,
its session timeout and a grace of two seconds to find out. A call that waits for its answer
suspends the session (K-A23): a join until its join phase ends, though its client was cut off
meanwhile, which the service need not hear of. A new leader begins in full.

In the heartbeat protocol the session is the group's, as its answers tell; one that nobody was told
of is not judged. A heartbeat by which a static member stops renews nothing (K-N3), and a commit
neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from holdfast.chaos.checkers.verdict import Verdict, Violation
from holdfast.chaos.evidence.calls import NEVER, Call, calls_of
from holdfast.chaos.evidence.commits import Commits, commits_of
from holdfast.chaos.evidence.log_view import NOTHING, by_group, records_of, seconds, views
from holdfast.chaos.evidence.membership_timeline import MembershipTimeline, timelines
from holdfast.chaos.evidence.sessions import Told, session_us, sessions_told
from holdfast.chaos.evidence.tenures import (
    LAG_US,
    Span,
    conditions,
    covered,
    disturbed,
    tenures,
)
from holdfast.chaos.history.happenings import Happening, Recorded, Role

INVARIANT: Final = "I12"

GRACE_US: Final = 2_000_000
"""To find out and to record it, of an undisturbed leader."""

_WALL_US: Final = 1_000
"""How exact the time is that a record has."""

Key: TypeAlias = tuple[str, str]
"""Group and member id."""


class Life(NamedTuple):
    """A membership."""

    key: Key
    since_us: int
    until_us: int
    end: Recorded | None
    """The record that ended it; None: it did not end."""
    session_us: int
    """Its session timeout at the end."""


class Signs(NamedTuple):
    """A member's signs of life."""

    sent: Sequence[tuple[int, int]]
    """When each was sent, and which entry its answer names; 0: none."""
    spans: Sequence[Span]
    """From when each was sent until its answer was heard."""


def check(history: Sequence[Happening]) -> Verdict:
    """Find sessions that expired too early, and silent ones that did not expire."""
    source, error = conditions(history)
    end_us = history[-1].at_us if history else 0
    told = sessions_told(calls_of(history))
    lives = [life for life in _lives(records_of(history), end_us, told) if life.session_us]
    signs = _signs(calls_of(history), records_of(history), timelines(history))
    served = tenures(history, end_us)
    begun = {each.term: each.earliest_us or each.at_us for each in history if _leads(each)}
    expired = [life for life in lives if life.end and life.end.fields.get("deadline") == "session"]
    found: list[Violation] = []
    if source == "cluster":
        commits = commits_of(history)
        expired = [_latest(life, commits) for life in expired]
    for life in expired:
        found += _early(life, signs[life.key], begun, error, LAG_US[source])
    broken = disturbed(history, end_us)
    for life in lives:
        found += _never(life, signs[life.key], served, broken, error, LAG_US[source])
    return Verdict({"sessions expired": len(expired), "sessions": len(lives)}, found)


def _leads(happening: Happening) -> TypeGuard[Role]:
    return isinstance(happening, Role) and happening.role == "leader"


# --- what happened ---


def _lives(records: Iterable[Recorded], end_us: int, told: Told) -> Iterator[Life]:
    for group, own in by_group(records).items():
        since: dict[str, int] = {}
        last = NOTHING
        for before, record, after in views(own):
            for member_id in after.members.keys() - before.members.keys():
                since[member_id] = record.at_us
            for member_id in before.members.keys() - after.members.keys():
                whole_us = session_us(told, group, before.members[member_id])
                key, begin = (group, member_id), since.pop(member_id)
                yield Life(key, begin, record.at_us, record, whole_us)
            last = after
        for member_id, begin in since.items():
            whole_us = session_us(told, group, last.members[member_id])
            yield Life((group, member_id), begin, end_us, None, whole_us)


def _signs(
    calls: Iterable[Call],
    records: Sequence[Recorded],
    groups: Mapping[str, MembershipTimeline],
) -> Mapping[Key, Signs]:
    """Sort signs of life by member; an unanswered join belongs to the member that it made."""
    made = {
        (record.group, request_id): record.fields.get("new_member_id") or record.fields["member_id"]
        for record in records
        if record.kind in {"MemberJoined", "StaticMemberReplaced"} or record.fields.get("joined")
        for request_id in record.request_ids
    }
    found: dict[Key, Signs] = defaultdict(lambda: Signs([], []))
    for key, span in _armed(records):
        found[key].spans.append(span)  # type: ignore[attr-defined]  # built as lists
    for call in calls:
        joined = made.get((call.group, call.request_id), "")
        member_id = call.member_id or str(call.result.get("member_id") or "") or joined
        if not member_id or (call.outcome in _DEAF and not call.alive):
            continue
        sent, spans = found[call.group, member_id]
        spans.append((call.start_us, call.end_us))  # type: ignore[attr-defined]  # built as lists
        if _renews(call, groups.get(call.group)):
            index = call.position[0] if call.position else 0
            sent.append((call.start_us, index))  # type: ignore[attr-defined]  # as above
    return found


def _armed(records: Sequence[Recorded]) -> Iterator[tuple[Key, Span]]:
    """Find when records armed sessions anew, and for how long they were suspended before.

    A conversion arms all; a generation those of its members, whose joins had waited at the service,
    as far as the log tells when they came.
    """
    came: dict[Key, int] = {}
    for record in records:
        if record.kind in {"MemberJoined", "MemberUpdated", "StaticMemberReplaced"}:
            for request_id in record.request_ids:
                came[record.group, request_id] = record.at_us
        if record.kind == "GenerationStarted":
            for each in record.fields["rejoined"]:
                begin_us = came.pop((record.group, each["request_id"]), record.at_us)
                yield (record.group, each["member_id"]), (begin_us, record.at_us)
        if record.kind == "GroupConverted":
            for each in record.fields["members"]:
                yield (record.group, each["member_id"]), (record.at_us, record.at_us)


def _renews(call: Call, group: MembershipTimeline | None) -> bool:
    """Return whether a call that was sent renewed its member's session.

    A commit does in the classic protocol alone; one that repeats a request may have been answered
    by the table of requests (S14). A heartbeat by which a member goes, or stops, does not.
    """
    if not call.alive:
        return False
    if call.op == "ConsumerGroupHeartbeat":
        return bool(call.invoked.arguments.get("generation", 0) >= 0)
    if call.op != "OffsetCommit":
        return True
    repeated = call.invoked.arguments.get("duplicate")
    of_heartbeats = group and call.position and group.ahead_of(call.position).is_consumer
    return not repeated and not of_heartbeats


_DEAF: Final = frozenset({"rejected", "not-applied"})


# --- early ---


def _latest(life: Life, commits: Commits) -> Life:
    """Move a life's end to its latest possible moment; a record's own time may be earlier."""
    proved_us = commits.proved_by(life.end.index) if life.end else NEVER
    return life if proved_us == NEVER else life._replace(until_us=max(life.until_us, proved_us))


def _early(
    life: Life, signs: Signs, begun: Mapping[int, int], error: float, lag_us: int
) -> Iterator[Violation]:
    if life.end is None:
        return
    expired_us = life.until_us
    # An unsure clock may run fast; a record may be seen late, which is no excuse the other way.
    whole_us = int(life.session_us * (1 - error)) - lag_us
    # What a later entry accepted began the member's next life: it came too late for this one.
    signs_before = [
        sent_us
        for sent_us, index in signs.sent
        if sent_us <= expired_us and index <= life.end.index
    ]
    last_us = max(signs_before, default=0)
    if signs_before and expired_us - last_us < whole_us:
        yield Violation(INVARIANT, expired_us, _sentence(life, last_us, "its last sign of life"))
    leader_us = begun.get(life.end.term)
    if leader_us is None or life.end.at_us < leader_us - _WALL_US:
        return  # the leader before it decided that, and it has committed it
    if expired_us - leader_us < whole_us:
        yield Violation(INVARIANT, expired_us, _sentence(life, leader_us, "its leader began"))


def _sentence(life: Life, since_us: int, what: str) -> str:
    group, member_id = life.key
    return (
        f"{member_id} of {group!r} expired {seconds(life.until_us - since_us)} after {what} at "
        f"{seconds(since_us)}, with a session of {seconds(life.session_us)}"
    )


# --- never ---


def _never(
    life: Life,
    signs: Signs,
    served: Sequence[Span],
    broken: Sequence[Span],
    error: float,
    lag_us: int,
) -> Iterator[Violation]:
    most_us = int(life.session_us / (1 - error)) + GRACE_US + lag_us
    for begin, end in _silences(life, signs):
        if end - begin <= most_us:
            continue
        for tenure in served:
            span = (max(begin, tenure[0]), min(end, tenure[1]))
            idle_us = span[1] - span[0] - covered(span, broken)
            if idle_us > most_us:
                group, member_id = life.key
                what = (
                    f"{member_id} of {group!r} gave no sign of life from {seconds(begin)} to "
                    f"{seconds(end)} and did not expire, though one leader had {seconds(idle_us)}; "
                    f"its session is {seconds(life.session_us)}"
                )
                yield Violation(INVARIANT, span[1], what)
                return


def _silences(life: Life, signs: Signs) -> Iterator[Span]:
    """Yield the times in a life in which nothing was sent and nothing waited for an answer."""
    reached = life.since_us
    for begin, end in sorted(signs.spans):
        if begin > reached:
            yield reached, min(begin, life.until_us)
        reached = max(reached, min(end, NEVER))
        if reached >= life.until_us:
            return
    yield reached, life.until_us
