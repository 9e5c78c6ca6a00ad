"""Reads what the invariants speak of, and stops the node if one does not hold (`invariants`).

Looked at when something is about to be relied on: before answers leave, before what is committed
is handed over, and before a leader's heartbeat. Each look reads a few dozen numbers, whatever the
size of log and state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.raft.core.context import ALL
from holdfast.raft.core.invariants import (
    CLOCK,
    LEADING,
    POSITIONS,
    STANDING,
    Leading,
    PeerPlace,
    Positions,
    Standing,
    judge,
)

if TYPE_CHECKING:
    from holdfast.raft.api import SnapshotSource
    from holdfast.raft.core.apply import Delivery
    from holdfast.raft.core.context import Context
    from holdfast.raft.core.lease import Lease
    from holdfast.raft.core.membership.node_identity import NodeIdentity
    from holdfast.raft.core.membership.rebuild import RebuildingDisks
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
        rebuilding: RebuildingDisks,
        snapshots: SnapshotSource,
    ) -> None:
        """Start without earlier values.

        A test that takes a defence out wants to see the harm, so nothing is checked in it.
        """
        self._ctx, self._identity, self._lease = ctx, identity, lease
        self._delivery, self._proposals = delivery, proposals
        self._replication, self._rebuilding, self._snapshots = replication, rebuilding, snapshots
        self._is_on = ctx.switches == ALL
        self._before: tuple[float, Positions, Standing, Leading] | None = None

    def look(self, *, leaving: bool = False) -> None:
        """Raise EngineInvariantBroken if one does not hold. `leaving`: messages go out next.

        What is as it was at the last look held then, and is not judged again.
        """
        if not self._is_on:
            return
        at, leads = self._ctx.now(), self._ctx.state.is_leader
        positions, standing = self._positions(leaving), self._standing(leads)
        leading = self._leading(leads)
        before = self._before
        was = before or (at, positions, standing, leading)
        judge(CLOCK, was[0], at)
        if before is None or was[1] != positions:
            judge(POSITIONS, was[1], positions)
        if before is None or was[2] != standing:
            judge(STANDING, was[2], standing)
        if before is None or was[3] != leading:
            judge(LEADING, was[3], leading)
        self._before = at, positions, standing, leading

    # Positional, because keywords would cost as much as the judging. Each field's own break in the
    # tests of the invariants shows that it is in its place.

    def _positions(self, leaving: bool) -> Positions:  # noqa: FBT001 - private
        mark = self._snapshots.latest()  # first: it may grow meanwhile, and so may `evolved`
        evolved = self._delivery.evolved_index
        log, state = self._ctx.log, self._ctx.state
        commit, term_at = state.commit_index, log.term_at
        commit_term = term_at(commit)
        earlier = self._before[1].commit if self._before else commit
        earlier_commit_term = commit_term if earlier == commit else term_at(earlier)
        return Positions(
            mark,
            term_at(mark.index),
            log.anchor_index,
            log.durable_index,
            log.waiting,
            log.last_index,
            leaving,
            log.is_flushed,
            commit,
            log.commit_index,
            commit_term,
            earlier_commit_term,
            state.handed_index,
            evolved,
        )

    def _standing(self, leads: bool) -> Standing:  # noqa: FBT001 - private
        state, log, identity = self._ctx.state, self._ctx.log, self._identity
        term, leader = state.term, state.leader
        stands = leads or state.is_candidate
        led_by = self._before[2].led_by if self._before else (0, "")
        may_stand = not stands or (
            identity.is_member and not identity.is_silent and self._ctx.node_id in state.voters.all
        )
        return Standing(
            self._ctx.node_id,
            term,
            log.stored_term,
            log.vote,
            led_by if leader is None else (term, leader),
            leads,
            stands,
            may_stand,
            identity.stage == "rebuilding",
            log.last_term,
        )

    def _leading(self, leads: bool) -> Leading:  # noqa: FBT001 - private
        state, lease, stamped = self._ctx.state, self._lease, self._proposals.stamped_bytes
        if not leads:
            return Leading(leads, state.term, lease.term, lease.ready_term, stamped)
        log, commit = self._ctx.log, state.commit_index
        return Leading(
            leads,
            state.term,
            lease.term,
            lease.ready_term,
            stamped,
            state.own_no_op or 0,
            log.last_index,
            commit,
            log.term_at(commit),
            self._delivery.evolved_index,
            state.voters.majority,
            tuple(map(self._place, state.peers)),
            log.open_memberships(max(commit + 1, state.own_no_op or 0)),
        )

    def _place(self, peer: str) -> PeerPlace:
        matched, progress = self._ctx.state.matched(peer), self._replication.progress[peer]
        rebuilds, votes = self._rebuilding.is_new(peer), peer in self._ctx.state.voters.all
        return PeerPlace(peer, matched, progress.acked, progress.next, rebuilds, votes)
