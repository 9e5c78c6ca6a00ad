"""The columns of a segment's files. Knows Arrow only, which a node loads when it needs it first."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_PARTITIONS: Final = pa.list_(
    pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])
)

SCHEMA: Final = pa.schema(
    [
        ("idx", pa.int64()),
        ("ordinal", pa.int32()),
        ("grp", pa.string()),
        ("grp_seq", pa.int64()),
        ("log_time_ms", pa.int64()),
        ("wall_time_ms", pa.int64()),
        ("type", pa.string()),
        ("rule", pa.string()),
        ("command", pa.string()),
        ("principal", pa.string()),
        ("request_id", pa.string()),
        ("generation", pa.int32()),
        ("member_id", pa.string()),
        ("old_member_id", pa.string()),
        ("instance_id", pa.string()),
        ("members", pa.list_(pa.string())),
        ("removed", pa.list_(pa.string())),
        ("served", pa.list_(pa.string())),
        ("grants", pa.list_(pa.struct([("member_id", pa.string()), ("assignment", pa.binary())]))),
        (
            "offsets",
            pa.list_(
                pa.struct(
                    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())]
                )
            ),
        ),
        ("reason", pa.string()),
        ("payload", pa.binary()),
        ("chain", pa.binary()),
        # Not in segments that versions without the heartbeat protocol have sealed.
        ("group_type", pa.string()),
        ("epoch", pa.int32()),
        ("joined", pa.bool_()),
        ("topics", pa.list_(pa.string())),
        ("regex", pa.string()),
        (
            "targets",
            pa.list_(
                pa.struct(
                    [
                        ("member_id", pa.string()),
                        ("partitions", _PARTITIONS),
                        ("version", pa.int32()),
                        ("metadata", pa.binary()),
                    ]
                )
            ),
        ),
        ("asked_back", _PARTITIONS),
        ("freed", _PARTITIONS),
        ("granted", _PARTITIONS),
        ("waiting", pa.bool_()),
        ("classic", pa.bool_()),
        ("assignor", pa.string()),
        ("late", pa.string()),
        ("installed_by", pa.string()),
        (
            "converted",
            pa.list_(
                pa.struct(
                    [
                        ("member_id", pa.string()),
                        ("topics", pa.list_(pa.string())),
                        ("partitions", _PARTITIONS),
                    ]
                )
            ),
        ),
    ]
)
"""Columns are added at the end, and are null for all events of earlier releases: what these have
sealed is read as if it had them."""

LATER: Final = frozenset({"classic", "assignor", "late", "installed_by", "converted"})
"""The columns that segments of builds between 0.1.0 and 0.2 lack, though these builds had events
that would have told something in them; none of these builds was released."""
LATER_OF_TARGETS: Final = frozenset({"version", "metadata"})
"""What such segments lack of each of the `targets`."""


def types_of(name: str) -> tuple[pa.DataType, ...]:
    """Return the types that a column has in some version, the present one first."""
    present = SCHEMA.field(name).type
    if name != "targets":
        return (present,)
    fields = [field for field in present.value_type if field.name not in LATER_OF_TARGETS]
    return present, pa.list_(pa.struct(fields))
