"""Tell of the batches of a stream by what lies in its folder, when other processes do them.

With Spark Connect each batch is done in a process of the server, which nobody here hears of. Knows
files, no Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from holdfast.replay.stream.output import Output

LOOKS_EVERY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that is done, for people."""

    number: int
    events: int
    alerts: int
    last: tuple[int, int]
    """The position of its last record."""


def nobody(_: Batch) -> None:
    """Tell nobody: a name of a module, so that it reaches other processes by pickle."""


def tell_of_files(
    output: Output, before: int, told: Callable[[Batch], None], wait: Callable[[float], bool]
) -> None:
    """Tell of each batch behind `before` once it is done, until `wait` says that it is over."""
    over = False
    while not over:
        over = wait(LOOKS_EVERY_S)
        for number in range(before + 1, output.last_done() + 1):
            told(_batch(output, number))
            before = number


def _batch(output: Output, number: int) -> Batch:
    places = pq.read_table(output.events(number), columns=["idx", "ordinal"])
    last = max(zip(*(column.to_pylist() for column in places.columns), strict=True), default=(0, 0))
    return Batch(number, places.num_rows, output.count_alerts(number), last)
