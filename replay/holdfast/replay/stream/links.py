"""Whether the records that were read are all there are, by the chain over all of them (S3).

Each of the cluster's own records has the head of that chain, so nothing before it can lack, be
added or be another record: also if a node left it out, or the log is another one since a restore.
Knows rows; no Spark, and not where they come from.
"""

from __future__ import annotations

import pyarrow as pa

from holdfast.coordinator.model.ids import Position
from holdfast.replay.findings import place_of
from holdfast.replay.stream.endings import TailStopped
from holdfast.storage.codec.event_codec import chain_hash

COLUMNS: tuple[str, ...] = ("idx", "ordinal", "grp", "payload", "chain")
"""The columns that are needed."""


def head_after(head: bytes | None, rows: pa.Table) -> bytes | None:
    """Return the head of the chain after these rows, which are in the order of the log.

    `head`: that before them; None: it is not known before the next of the cluster's own records.
    Raises TailStopped at one that has another head.
    """
    for batch in rows.select(COLUMNS).to_batches(max_chunksize=10_000):
        places = zip(batch["idx"].to_pylist(), batch["ordinal"].to_pylist(), strict=True)
        columns = (batch[name].to_pylist() for name in COLUMNS[2:])
        for place, group, payload, chain in zip(places, *columns, strict=True):
            if head is not None:
                head = chain_hash(head, payload)
            if not group and head is None:
                head = chain
            elif not group and head != chain:
                raise TailStopped(_broken(Position(*place)))
    return head


def _broken(place: Position) -> str:
    return (
        f"the records up to {place_of(place)} are not all there are, or not those that were "
        "followed before: the hash chain over them breaks. A restore from a backup does so, and "
        "then begin again with another --out; else see what is wrong with `holdfast replay verify`"
    )
