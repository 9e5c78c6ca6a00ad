"""Calls that wait: joins for the end of the join phase, syncs for the assignment (S16, S17).

A member whose call is parked cannot be late, so its session is suspended (K-A23). Parked calls are
leader-local and end with the leadership.
"""

from __future__ import annotations

from typing import Final

from holdfast.coordinator.classic import answers
from holdfast.coordinator.groups.draft import NOBODY, Draft
from holdfast.coordinator.model.commands import Caller
from holdfast.coordinator.model.ids import CallId, MemberId
from holdfast.coordinator.model.rejections import Rejection, Superseded
from holdfast.coordinator.model.replies import SyncReply
from holdfast.coordinator.model.volatile import (
    JOIN_GUARD,
    SESSION,
    DeadlineKey,
    ParkedJoin,
    ParkedSync,
)

NEW_MEMBER_JOIN_MS: Final = 300_000
"""The first join of a new member is parked for 5 minutes at most (K-A21), as in Kafka."""


def park_join(draft: Draft, caller: Caller, member_id: MemberId, *, is_new: bool = False) -> None:
    """Park a join, in place of an earlier one of this member (S17)."""
    earlier = draft.volatile.joins.get(member_id)
    if earlier is not None:
        _release(draft, earlier.call)
        draft.answer(earlier.call, answers.refused_join(Superseded(), member_id))
        is_new = earlier.is_new
    parked = ParkedJoin(caller.call, caller.request_id, is_new)
    draft.volatile = draft.volatile._replace(
        joins=draft.volatile.joins.set(member_id, parked),
        calls=draft.volatile.calls.set(caller.call, member_id),
    )
    draft.cancel(DeadlineKey(SESSION, member_id))
    if is_new and DeadlineKey(JOIN_GUARD, member_id) not in draft.volatile.armed:
        draft.arm(DeadlineKey(JOIN_GUARD, member_id), NEW_MEMBER_JOIN_MS)


def park_sync(draft: Draft, caller: Caller, member_id: MemberId) -> None:
    """Park a sync, in place of an earlier one of this member (S17)."""
    earlier = draft.volatile.syncs.get(member_id)
    if earlier is not None:
        _release(draft, earlier.call)
        draft.answer(earlier.call, SyncReply(Superseded()))
    parked = ParkedSync(caller.call, caller.request_id)
    draft.volatile = draft.volatile._replace(
        syncs=draft.volatile.syncs.set(member_id, parked),
        calls=draft.volatile.calls.set(caller.call, member_id),
    )
    draft.cancel(DeadlineKey(SESSION, member_id))


def take_join(draft: Draft, member_id: MemberId) -> ParkedJoin | None:
    """Take a parked join out, to answer it."""
    parked = draft.volatile.joins.get(member_id)
    if parked is not None:
        _release(draft, parked.call)
        draft.volatile = draft.volatile._replace(joins=draft.volatile.joins.remove(member_id))
        draft.cancel(DeadlineKey(JOIN_GUARD, member_id))
    return parked


def take_sync(draft: Draft, member_id: MemberId) -> ParkedSync | None:
    """Take a parked sync out, to answer it."""
    parked = draft.volatile.syncs.get(member_id)
    if parked is not None:
        _release(draft, parked.call)
        draft.volatile = draft.volatile._replace(syncs=draft.volatile.syncs.remove(member_id))
    return parked


def refuse(draft: Draft, member_id: MemberId, error: Rejection, shown_id: MemberId = "") -> None:
    """Answer a member's parked calls with an error; `shown_id` is the member id of a join's."""
    join = take_join(draft, member_id)
    if join is not None:
        draft.answer(join.call, answers.refused_join(error, shown_id))
    sync = take_sync(draft, member_id)
    if sync is not None:
        draft.answer(sync.call, SyncReply(error))


def break_call(draft: Draft, call: CallId) -> None:
    """Drop a parked call that was cancelled or broke: the member's session runs again (S17).

    A join that broke still counts as a rejoin, as in Kafka: its member will ask again, and then
    finds the generation that it is part of.
    """
    member_id = draft.volatile.calls.get(call)
    if member_id is None:
        return
    _release(draft, call)
    volatile = draft.volatile
    join, sync = volatile.joins.get(member_id), volatile.syncs.get(member_id)
    if join is not None and join.call == call:
        broken = join._replace(call=NOBODY, is_new=False)
        draft.volatile = volatile._replace(joins=volatile.joins.set(member_id, broken))
        draft.cancel(DeadlineKey(JOIN_GUARD, member_id))
    elif sync is not None and sync.call == call:
        draft.volatile = volatile._replace(syncs=volatile.syncs.remove(member_id))
    draft.arm_session(member_id)


def forget(draft: Draft, member_id: MemberId) -> None:
    """Drop all that is kept of a member that is gone; its parked calls were answered before."""
    draft.cancel(DeadlineKey(SESSION, member_id))
    draft.cancel(DeadlineKey(JOIN_GUARD, member_id))
    take_join(draft, member_id)
    take_sync(draft, member_id)


def _release(draft: Draft, call: CallId) -> None:
    draft.volatile = draft.volatile._replace(calls=draft.volatile.calls.remove(call))
