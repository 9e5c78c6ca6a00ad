"""The columns of a segment's files. Knows Arrow only, which a node loads when it needs it first."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_PARTITIONS: Final = pa.list_(
    pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))])
)
_PLACE: Final = pa.struct(
    [
        ("idx", pa.int64()),
        ("ordinal", pa.int32()),
        ("log_time_ms", pa.int64()),
        ("digest", pa.binary()),
    ]
)
_ACL: Final = pa.struct(
    [
        *[(name, pa.string()) for name in ("principal", "role", "kind", "name")],
        ("granted", pa.bool_()),
    ]
)
_REVOCATION: Final = pa.struct(
    [
        ("fingerprint", pa.string()),
        ("principal", pa.string()),
        ("expires_ms", pa.int64()),
        ("reason", pa.string()),
        ("revoked_ms", pa.int64()),
    ]
)
_REQUEST: Final = pa.struct(
    [("request_id", pa.string()), ("digest", pa.binary()), ("answer", pa.binary())]
)
_PROTOCOLS: Final = pa.list_(
    pa.struct([("name", pa.string()), ("metadata", pa.binary()), ("topics", pa.list_(pa.string()))])
)
_ASSIGNOR: Final = pa.struct(
    [
        ("name", pa.string()),
        ("minimum_version", pa.int32()),
        ("maximum_version", pa.int32()),
        ("reason", pa.int32()),
        ("version", pa.int32()),
        ("metadata", pa.binary()),
    ]
)
_PROFILE: Final = pa.struct(
    [
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rebalance_timeout_ms", pa.int32()),
        ("session_timeout_ms", pa.int32()),
        ("protocols", _PROTOCOLS),
        ("rack_id", pa.string()),
        ("server_assignor", pa.string()),
        ("client_assignors", pa.list_(_ASSIGNOR)),
    ]
)
_CLASSIC_PROFILE: Final = pa.struct(
    [("session_timeout_ms", pa.int32()), ("protocols", _PROTOCOLS), ("request_id", pa.string())]
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
        # Not in segments of builds before these told the whole state: `WHOLE`.
        ("name", pa.string()),
        ("number", pa.int64()),
        ("place", _PLACE),
        ("scope", pa.string()),
        ("settings", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))),
        ("sizes", pa.list_(pa.struct([("name", pa.string()), ("num_partitions", pa.int32())]))),
        ("acls", pa.list_(_ACL)),
        ("revocations", pa.list_(_REVOCATION)),
        ("request", _REQUEST),
        ("beside", pa.list_(pa.struct([("leader_epoch", pa.int32()), ("metadata", pa.string())]))),
        ("profile", _PROFILE),
        ("classic_profile", _CLASSIC_PROFILE),
        ("join_id", pa.string()),
        ("predecessor_ms", pa.int64()),
        ("life", pa.string()),
        ("beat", pa.int64()),
        ("session_timeout_ms", pa.int32()),
        ("absence_ms", pa.int32()),
        ("protocol_type", pa.string()),
        ("protocol_name", pa.string()),
        ("leader", pa.string()),
        ("initial", pa.bool_()),
        ("timeout_ms", pa.int64()),
        ("topics_digest", pa.binary()),
    ]
)
"""Columns are added at the end; what earlier versions have sealed is read as if it had them, and
they were null."""

LATER: Final = frozenset({"classic", "assignor", "late", "installed_by", "converted"})
"""The columns that segments of builds between 0.1.0 and 0.2 lack, though these builds had events
that would have told something in them; none of these builds was released."""
WHOLE: Final = frozenset(SCHEMA.names[SCHEMA.names.index("name") :])
"""The columns that tell the rest of the state; segments of release 0.1.0, and of builds before they
came, lack them, though the events that these tell of were there."""
LATER_OF_TARGETS: Final = frozenset({"version", "metadata"})
"""What such segments lack of each of the `targets`."""


def types_of(name: str) -> tuple[pa.DataType, ...]:
    """Return the types that a column has in some version, the present one first."""
    present = SCHEMA.field(name).type
    if name != "targets":
        return (present,)
    fields = [field for field in present.value_type if field.name not in LATER_OF_TARGETS]
    return present, pa.list_(pa.struct(fields))
