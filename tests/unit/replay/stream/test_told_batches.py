"""What a tail's folder tells of batches that another process does: each once, when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.replay.stream.output import Output
from holdfast.replay.stream.told_batches import Batch, tell_of_files


def write(output: Output, number: int, places: Sequence[tuple[int, int]], alerts: int) -> None:
    def made(folder: str) -> None:
        Path(folder).mkdir()
        index, ordinal = zip(*places, strict=True)
        pq.write_table(pa.table({"idx": index, "ordinal": ordinal}), f"{folder}/part.parquet")

    output.add_events(number, made)
    output.add_alerts(number, [{"kind": "storm"}] * alerts)


def told(output: Output, before: int, looks: Sequence[int]) -> list[Batch]:
    """What is told of batches that are done one after the other, each before one of the looks."""
    found, to_do = list[Batch](), list(looks)

    def wait(_: float) -> bool:
        if to_do:
            output.add_state(to_do.pop(0), {})
        return not to_do

    tell_of_files(output, before, found.append, wait)
    return found


def test_each_batch_is_told_once_also_if_two_are_done_between_two_looks(tmp_path: Path) -> None:
    output = Output(tmp_path)
    write(output, 0, [(1, 0), (1, 1)], 2)
    write(output, 1, [(2, 0), (2, 11), (2, 3)], 0)
    write(output, 2, [(9, 9)], 1)
    output.add_state(0, {})

    assert told(output, -1, [2]) == [
        Batch(0, 2, 2, (1, 1)),
        Batch(1, 3, 0, (2, 11)),
        Batch(2, 1, 1, (9, 9)),
    ]


def test_what_was_done_before_is_not_told_and_what_is_not_done_neither(tmp_path: Path) -> None:
    """A batch is done when what the next one needs of it is there."""
    output = Output(tmp_path)
    for number in range(3):
        write(output, number, [(number, 0)], 0)
    output.add_state(0, {})

    assert told(output, output.last_done(), [1]) == [Batch(1, 1, 0, (1, 0))]


def test_nothing_is_done_in_a_new_folder(tmp_path: Path) -> None:
    output = Output(tmp_path)

    assert output.last_done() == -1
    assert told(output, -1, []) == []
