"""Segments as earlier versions sealed them: with the columns that there were then (S22)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.storage.segments.columns import LATER, LATER_OF_TARGETS, SCHEMA, WHOLE

_OLD: Final = SCHEMA.names[: SCHEMA.names.index("chain") + 1]


def _of_a_build() -> pa.Schema:
    """The columns of builds before 0.2, none of which was released."""
    targets = SCHEMA.field("targets").type.value_type
    kept = [field for field in targets if field.name not in LATER_OF_TARGETS]
    at = SCHEMA.names.index("targets")
    whole = SCHEMA.set(at, pa.field("targets", pa.list_(pa.struct(kept))))
    return pa.schema([field for field in whole if field.name not in LATER | WHOLE])


RELEASE_0_1_0: Final = pa.schema([SCHEMA.field(name) for name in _OLD])
"""The columns of versions without the heartbeat protocol, in their order."""
BUILD_BEFORE_0_2: Final = _of_a_build()
BEFORE_WHOLE: Final = pa.schema([field for field in SCHEMA if field.name not in WHOLE])
"""The columns of builds that did not tell the whole state yet."""


def seal_again(segment: Path, schema: pa.Schema) -> None:
    """Write the files of a segment with these columns alone."""
    for path in segment.glob("*.parquet"):
        rows = pq.read_table(path).to_pylist()
        pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="zstd")
