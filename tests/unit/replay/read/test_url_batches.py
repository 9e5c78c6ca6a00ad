"""What workers hand to Spark of a file behind a URL is what the JVM reads of one here (S22)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.replay.read.url_batches import read_batches
from holdfast.storage.segments.columns import SCHEMA, types_of
from spark.archive_damage import data, sound_nodes


def test_all_columns_are_those_of_the_file(tmp_path: Path) -> None:
    file = data(sound_nodes(tmp_path)[0])

    (batch,) = read_batches([(f"file://{file}", "s1")], SCHEMA.names)

    assert batch.to_pylist() == [
        {**row, "segment": "s1"} for row in pq.ParquetFile(file).read().to_pylist()
    ]


def test_what_an_earlier_version_did_not_write_is_null(tmp_path: Path) -> None:
    """A column, and a field within the values of one."""
    file = data(sound_nodes(tmp_path)[0])
    targets = SCHEMA.get_field_index("targets")
    table = pq.ParquetFile(file).read().drop_columns(["late"])
    told = [{"member_id": "m", "partitions": None}]
    old = pa.array([told] * len(table), types_of("targets")[1])
    pq.write_table(table.set_column(targets, "targets", old), file)

    (batch,) = read_batches([(f"file://{file}", "s1")], ["idx", "late", "targets"])

    assert batch.schema.field("targets").type == SCHEMA.field("targets").type
    assert {str(row["late"]) for row in batch.to_pylist()} == {"None"}
    assert batch.to_pylist()[0]["targets"] == [{**told[0], "version": None, "metadata": None}]
