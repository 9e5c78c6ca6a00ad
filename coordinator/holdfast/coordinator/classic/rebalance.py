"""The join phase: how it opens, when it closes, and what closing decides (K-D1 to K-D16, S16)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.coordinator.classic import answers, parked_calls, protocol_votes
from holdfast.coordinator.classic.state import ClassicGroup, Member
from holdfast.coordinator.classic.transitions import COMPLETING, PREPARING
from holdfast.coordinator.cluster import settings
from holdfast.coordinator.groups.draft import NOBODY, Draft
from holdfast.coordinator.model.events import (
    GenerationStarted,
    GroupEmptied,
    MemberExpired,
    RebalanceStarted,
    Rejoin,
)
from holdfast.coordinator.model.ids import MemberId
from holdfast.coordinator.model.rejections import RebalanceInProgress
from holdfast.coordinator.model.replies import SyncReply
from holdfast.coordinator.model.state import EMPTY, STABLE
from holdfast.coordinator.model.volatile import (
    JOIN_PHASE,
    SYNC,
    DeadlineKey,
    InitialDelay,
    ParkedJoin,
)
from holdfast.coordinator.structures.pmap import PMap

_KEY = DeadlineKey(JOIN_PHASE)
_SYNC_KEY = DeadlineKey(SYNC)
_REASON_MAX = 255
_AGAIN_MS = 1_000
"""The least time between two looks at an open join phase: a rebalance timeout may be 0."""


def open_join_phase(
    draft: Draft,
    rule: str,
    reason: str,
    member_id: MemberId = "",
    *,
    leaving: Collection[MemberId] = (),
    joining_ms: int = 0,
) -> None:
    """Open a join phase if none is open (K-D12). It may last as long as the slowest member asks.

    `leaving` are about to leave and do not count; `joining_ms` is what a newcomer asks for. The
    caller continues with what caused the phase, and ends with `close_if_complete`.
    """
    group = draft.group
    if group.state == PREPARING:
        return
    initial = group.state == EMPTY
    timeout_ms = max(joining_ms, _longest_ms(group, leaving))
    draft.emit(RebalanceStarted(reason[:_REASON_MAX], member_id, initial, timeout_ms), rule)
    for waiting in tuple(draft.volatile.syncs):  # K-D10
        parked = parked_calls.take_sync(draft, waiting)
        if parked is not None:
            draft.answer(parked.call, SyncReply(RebalanceInProgress()))
            draft.arm_session(waiting)
    draft.cancel(_SYNC_KEY)  # K-E14
    draft.volatile = draft.volatile._replace(awaiting_sync=PMap())
    if initial:
        _delay(draft, timeout_ms)


def too_large(draft: Draft) -> bool:
    """Return whether the group has more members than a limit lowered since allows (K-I13)."""
    most = settings.of(draft.state, draft.group_id).max_size
    return draft.group.state in {COMPLETING, STABLE} and len(draft.group.body.members) > most


def shrink(draft: Draft) -> None:
    """Let all members join again: the last ones find no room (K-I10, K-I13)."""
    if too_large(draft):
        open_join_phase(draft, "I13", "the group has more members than its size limit allows")
        close_if_complete(draft)


def _longest_ms(group: ClassicGroup, leaving: Collection[MemberId]) -> int:
    return max(
        (
            m.profile.rebalance_timeout_ms
            for m in group.body.members.values()
            if m.member_id not in leaving
        ),
        default=0,
    )


def _delay(draft: Draft, timeout_ms: int) -> None:
    """Delay the first join phase of an empty group for other members (K-D1, K-D2)."""
    delay_ms = settings.of(draft.state, draft.group_id).initial_rebalance_delay_ms
    delay = InitialDelay.begin(delay_ms, timeout_ms)
    draft.volatile = draft.volatile._replace(initial_delay=delay)
    draft.arm(_KEY, delay_ms)


def close_if_complete(draft: Draft) -> None:
    """Close the join phase if all members are there and no pending id is awaited (K-D4, K-A6)."""
    group, volatile = draft.group, draft.volatile
    if group.state != PREPARING or volatile.initial_delay is not None:
        return
    if len(volatile.joins) == len(group.body.members) and not volatile.pending:
        close(draft, "D4")
    elif _KEY not in volatile.armed:
        draft.arm(_KEY, group.body.round_timeout_ms)


def fired(draft: Draft) -> None:
    """Prolong the initial delay, or close the join phase: delay or rebalance timeout is over."""
    delay = draft.volatile.initial_delay
    if delay is None:
        close(draft, "D5")
        return
    delay_ms = settings.of(draft.state, draft.group_id).initial_rebalance_delay_ms
    following = delay.prolonged(delay_ms)
    if following is None:
        close(draft, "D1")
        return
    draft.volatile = draft.volatile._replace(initial_delay=following)
    draft.arm(_KEY, following.length_ms)


def close(draft: Draft, rule: str) -> None:
    """Close the join phase with the rejoined members; static ones stay anyway (K-D5 to K-D9)."""
    joins, members = draft.volatile.joins, draft.group.body.members
    absent = [m for m in members.values() if m.member_id not in joins]
    removed = [m.member_id for m in absent if m.instance_id is None]
    draft.cancel(_KEY)
    draft.volatile = draft.volatile._replace(initial_delay=None)
    if joins:
        _start_generation(draft, rule, removed, [m.member_id for m in absent if m.instance_id])
        return
    _expire(draft, removed)
    if draft.group.body.members:  # K-D8: only static members, and none came
        draft.arm(_KEY, max(draft.group.body.round_timeout_ms, _AGAIN_MS))
    else:
        draft.emit(GroupEmptied(draft.group.generation + 1), "D9")


def _expire(draft: Draft, member_ids: Iterable[MemberId]) -> None:
    for member_id in member_ids:
        draft.emit(MemberExpired(member_id, JOIN_PHASE), "D5")
        parked_calls.forget(draft, member_id)


def _start_generation(
    draft: Draft, rule: str, removed: list[MemberId], absent: list[MemberId]
) -> None:
    joins = draft.volatile.joins
    gone = frozenset(removed)
    staying = [m for m in draft.group.body.members.values() if m.member_id not in gone]
    event = GenerationStarted(
        generation=draft.group.generation + 1,
        protocol_name=protocol_votes.vote(staying, protocol_votes.count(staying)),
        leader=_elect(draft.group, staying, joins),
        rejoined=tuple(Rejoin(member_id, join.request_id) for member_id, join in joins.items()),
        absent=tuple(absent),
        removed=tuple(removed),
    )
    draft.emit(event, rule)
    for member_id in removed:
        parked_calls.forget(draft, member_id)
    _answer_all(draft)
    awaiting = PMap((rejoin.member_id, True) for rejoin in event.rejoined)
    draft.volatile = draft.volatile._replace(awaiting_sync=awaiting)
    draft.arm(_SYNC_KEY, _longest_ms(draft.group, ()))


def _elect(
    group: ClassicGroup, staying: list[Member], joins: PMap[MemberId, ParkedJoin]
) -> MemberId:
    """Choose the leader: the old one if it rejoined (K-D13), else the oldest member (K-D7)."""
    if group.body.leader is not None and group.body.leader in joins:
        return group.body.leader
    rejoined = (member for member in staying if member.member_id in joins)
    return min(rejoined, key=lambda member: member.joined_seq).member_id


def _answer_all(draft: Draft) -> None:
    """Answer every parked join; sessions start (K-A22), absent members' continue (K-D15)."""
    group = draft.group
    for member_id in tuple(draft.volatile.joins):
        join = parked_calls.take_join(draft, member_id)
        if join is None or join.call == NOBODY:
            continue
        members = answers.member_list(group) if group.body.is_leader(member_id) else ()
        draft.answer(join.call, answers.joined(draft.state, group, member_id, members=members))
        draft.arm_session(member_id)
