"""Reads what the invariants speak of, and stops the node if one does not hold (`invariants`).

Looked at when something is about to be relied on: before answers leave, before what is committed
is handed over, and before a leader's heartbeat. Each look reads a few dozen numbers, whatever the
size of log and state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core.invariants import (
    LEADING,
    POSITIONS,
    STANDING,
    Leading,
    PeerPlace,
    Positions,
    Standing,
    judge,
)
from holdfast.raft.core.switches import ALL

if TYPE_CHECKING:
    from holdfast.raft.api import SnapshotSource
    from holdfast.raft.core.apply import Delivery
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.learners import Learners
    from holdfast.raft.core.lease import Lease
    from holdfast.raft.core.node_identity import NodeIdentity
    from holdfast.raft.core.proposals import Proposals
    from holdfast.raft.core.replication import Replication


class Watch:
    """Tick thread only."""

    def __init__(
        self,
        ctx: Context,
        *,
        identity: NodeIdentity,
        lease: Lease,
        delivery: Delivery,
        proposals: Proposals,
        replication: Replication,
        learners: Learners,
        snapshots: SnapshotSource,
    ) -> None:
        """Start without earlier values.

        A test that takes a defence out wants to see the harm, so nothing is checked in it.
        """
        self._ctx, self._identity, self._lease = ctx, identity, lease
        self._delivery, self._proposals = delivery, proposals
        self._replication, self._learners, self._snapshots = replication, learners, snapshots
        self._is_on = ctx.switches == ALL
        self._before: tuple[Positions, Standing, Leading] | None = None

    def look(self, *, leaving: bool = False) -> None:
        """Raise EngineInvariantBroken if one does not hold. `leaving`: messages go out next."""
        if not self._is_on:
            return
        positions, standing, leading = self._positions(leaving), self._standing(), self._leading()
        was = self._before or (positions, standing, leading)
        self._before = positions, standing, leading
        judge(POSITIONS, was[0], positions)
        judge(STANDING, was[1], standing)
        judge(LEADING, was[2], leading)

    def _positions(self, leaving: bool) -> Positions:  # noqa: FBT001 - private
        mark = self._snapshots.latest()  # first: it may grow meanwhile, and so may `evolved`
        evolved = self._delivery.evolved_index
        journal, state = self._ctx.journal, self._ctx.state
        commit, last = state.commit_index, journal.last_index
        earlier = self._before[0].commit if self._before else commit
        return Positions(
            mark=mark,
            mark_term=journal.term_at(mark.index),
            anchor=journal.anchor_index,
            durable=journal.durable_index,
            waiting=journal.waiting,
            last=last,
            leaving=leaving,
            is_flushed=journal.is_flushed,
            commit=commit,
            noted_commit=journal.commit_index,
            commit_term=journal.term_at(commit),
            earlier_commit_term=journal.term_at(earlier),
            handed=state.handed_index,
            evolved=evolved,
        )

    def _standing(self) -> Standing:
        state, journal, identity = self._ctx.state, self._ctx.journal, self._identity
        term, leader, leads = state.term, state.leader, state.is_leader
        stands = leads or state.is_candidate
        led_by = self._before[1].led_by if self._before else (0, "")
        return Standing(
            at=self._ctx.now(),
            node=self._ctx.node_id,
            term=term,
            stored_term=journal.stored_term,
            vote=journal.vote,
            led_by=led_by if leader is None else (term, leader),
            leads=leads,
            stands=stands,
            may_stand=not stands or (identity.is_member and not identity.is_silent),
            is_rebuilding=identity.stage == "rebuilding",
            last=journal.last_index,
            last_term=journal.last_term,
        )

    def _leading(self) -> Leading:
        state, journal, leads = self._ctx.state, self._ctx.journal, self._ctx.state.is_leader
        return Leading(
            leads=leads,
            term=state.term,
            lease_term=self._lease.term,
            ready_term=self._lease.ready_term,
            stamped_bytes=self._proposals.stamped_bytes,
            no_op=(state.own_no_op or 0) if leads else 0,
            last=journal.last_index,
            commit=state.commit_index if leads else 0,
            commit_term=journal.term_at(state.commit_index) if leads else None,
            evolved=self._delivery.evolved_index,
            majority=state.majority,
            peers=tuple(map(self._place, state.peers)) if leads else (),
        )

    def _place(self, peer: str) -> PeerPlace:
        matched, progress = self._ctx.state.matched(peer), self._replication.progress[peer]
        return PeerPlace(peer, matched, progress.acked, progress.next, self._learners.is_new(peer))
