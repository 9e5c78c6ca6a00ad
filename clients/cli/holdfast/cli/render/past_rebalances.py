"""A rebalance that a replay found, in the words of `holdfast group explain`.

It becomes the message that a node tells of it, so that one place has the words for both. Asks no
node and reads no log.
"""

from __future__ import annotations

from typing import Any

from holdfast.v1 import admin_pb2 as a
from holdfast.v1.extras_pb2 import Position


def as_message(told: Any) -> a.DescribedRebalance:  # noqa: ANN401 - replay's, unknown here
    """Make the message. Durations are log time (S8)."""
    begun_ms = told.log_time_ms
    return a.DescribedRebalance(
        **{name: getattr(told, name) for name in _SAME},
        group_instance_id=told.instance_id,
        join_phase_ms=told.closed_ms - begun_ms if told.closed_ms else None,
        assigned_after_ms=told.assigned_ms - begun_ms if told.assigned_ms else None,
        from_generation_id=told.from_generation,
        generation_id=told.generation,
        joined=told.came,
        gone=told.went,
        changes=[a.RebalanceChange(name=each.name, how=each.how) for each in told.changes],
        partitions_compared=told.counted,
        moves=[
            a.RebalanceMove(topic=m.topic, partition=m.partition, before=m.before, after=m.after)
            for m in told.moves
        ],
        position=Position(index=told.at.index, ordinal=told.at.ordinal),
    )


_SAME = (
    *("reason", "rule", "command", "principal", "member_id", "client_id", "wall_time_ms"),
    *("log_time_ms", "members", "reassigned", "reassigned_names", "moved", "given", "dropped"),
)
"""What has the same name on both sides."""
