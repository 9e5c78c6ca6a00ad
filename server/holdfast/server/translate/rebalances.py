"""A rebalance as people are told of it: what is remembered becomes a message. Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.v1 import admin_pb2 as a
from holdfast.v1.extras_pb2 import Position

if TYPE_CHECKING:
    from holdfast.coordinator.projections.history import Rebalance


def described(rebalance: Rebalance) -> a.DescribedRebalance:
    """Describe one rebalance with its cause and its result. Durations are log time (S8)."""
    begun_ms = rebalance.log_time_ms
    return a.DescribedRebalance(
        reason=rebalance.reason,
        rule=rebalance.rule,
        command=rebalance.command,
        principal=rebalance.principal,
        member_id=rebalance.member_id,
        group_instance_id=rebalance.instance_id,
        client_id=rebalance.client_id,
        wall_time_ms=rebalance.wall_time_ms,
        log_time_ms=begun_ms,
        join_phase_ms=rebalance.closed_ms - begun_ms if rebalance.closed_ms else None,
        assigned_after_ms=rebalance.assigned_ms - begun_ms if rebalance.assigned_ms else None,
        from_generation_id=rebalance.from_generation,
        generation_id=rebalance.generation,
        members=rebalance.members,
        joined=rebalance.came,
        gone=rebalance.went,
        changes=[a.RebalanceChange(name=each.name, how=each.how) for each in rebalance.changes],
        reassigned=rebalance.reassigned,
        reassigned_names=rebalance.reassigned_names,
        partitions_compared=rebalance.counted,
        moved=rebalance.moved,
        given=rebalance.given,
        dropped=rebalance.dropped,
        moves=[
            a.RebalanceMove(
                topic=move.topic, partition=move.partition, before=move.before, after=move.after
            )
            for move in rebalance.moves
        ],
        position=Position(index=rebalance.at.index, ordinal=rebalance.at.ordinal),
        relieved=rebalance.relieved,
        problem=rebalance.problem,
    )
