"""What the golden files of schema version 2 hold of the state, written by hand.

That version gave groups a body of their type; of events it changed nothing, so those are version
1's. Never changed, as `values_v1`.
"""

from __future__ import annotations

from golden.values_v1 import STATE as STATE_V1
from holdfast.coordinator.classic.state import ClassicBody
from holdfast.coordinator.model.state import Group
from holdfast.storage.codec.event_codec import StateItem

STATE = (
    *STATE_V1,
    StateItem(
        ("shards",),
        Group(
            group_id="shards",
            group_type="classic",
            body=ClassicBody(
                protocol_type="shards",
                protocol_name="",
                leader="shard-1",
                rejoined=("shard-1",),
                initial=True,
                round_timeout_ms=60_000,
                predecessors_until_ms=1_700_000_010_000,
            ),
            state="PreparingRebalance",
            generation=3,
            version=51,
            seq=12,
            state_since_ms=1_700_000_000_002,
            quarantined="entry 51 cannot be applied",
        ),
    ),
)
